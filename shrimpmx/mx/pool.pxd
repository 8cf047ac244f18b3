"""Room made when an endpoint opens: requests, and bytes of kept messages."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.mx.types cimport ListLink, MxRequest, list_clear, request_of_queue

cdef enum:
    ARENA_BLOCK_BYTES = 256  # the smallest block
    ARENA_ORDERS = 11        # block sizes: 256 B to at most 256 KiB, the longest eager message

cdef struct PoolChunk:
    PoolChunk *next
    uint32_t count
    uint32_t made            # so many have been in the free list; the others are untouched
    MxRequest *requests

cdef struct RequestPool:
    ListLink free            # through MxRequest.queue, last given is first taken
    PoolChunk *chunks
    uint64_t *grown          # counter

cdef struct Arena:
    uint8_t *base
    uint64_t size_bytes
    uint64_t free_bytes
    uint64_t untouched       # from here on no block has ever been taken
    uint8_t *blocks          # per smallest block: what starts there (see pool.pyx)
    uint32_t orders          # block sizes that it has
    ListLink free[ARENA_ORDERS]
    uint64_t *grown          # counter

cdef int pool_open(RequestPool *pool, uint32_t count, uint64_t *grown) except -1
cdef void pool_close(RequestPool *pool) noexcept
# The endpoint closes, before the arena does: frees what kept messages took from the system when
# the arena was full.
cdef void pool_free_kept(RequestPool *pool, const Arena *arena) noexcept
# More free requests; False if the system has no memory left.
cdef bint pool_more(RequestPool *pool) noexcept nogil

# `longest`: what its largest blocks hold.
cdef int arena_open(Arena *arena, uint64_t size_bytes, uint64_t longest,
                    uint64_t *grown) except -1
# Of an arena that is new: fault in its first pages, so that none of these faults when it is taken.
# They and the others are huge ones where the system gives them, and each of the others faults once.
cdef void arena_populate(Arena *arena, uint64_t size_bytes) noexcept nogil
cdef void arena_close(Arena *arena) noexcept
# Room for `size_bytes`, or NULL. may_grow: rather take it from the system.
cdef uint8_t *arena_take(Arena *arena, uint32_t size_bytes, bint may_grow) noexcept nogil
cdef void arena_give(Arena *arena, uint8_t *block) noexcept nogil


cdef inline MxRequest *pool_take(RequestPool *pool) noexcept nogil:
    """A request in no list, its flags 0; NULL only if the system has no memory left."""
    cdef ListLink *link = pool.free.next
    cdef MxRequest *request
    if link == &pool.free:
        if not pool_more(pool):
            return NULL
        link = pool.free.next
    pool.free.next = link.next
    link.next.previous = &pool.free
    request = request_of_queue(link)
    list_clear(&request.queue)
    list_clear(&request.chain)
    list_clear(&request.ending)
    request.flags = 0
    request.status = 0
    request.resends = 0
    request.resends_max = 0
    request.fragments = 0
    request.fragments_sent = 0
    request.received = 0
    request.partner = NULL
    request.region = -1
    return request


cdef inline void pool_give(RequestPool *pool, MxRequest *request) noexcept nogil:
    cdef ListLink *link = &request.queue
    link.next = pool.free.next
    link.previous = &pool.free
    pool.free.next.previous = link
    pool.free.next = link
