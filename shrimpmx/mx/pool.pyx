"""Room made when an endpoint opens: requests, and bytes of kept messages.

Nothing on a message's way allocates. If the room made at open does not suffice,
more is taken from the system and counted (`pool_grown`), so that a run shows it.

The arena is a buddy allocator: blocks of 256 B up to the longest eager message, split and
merged by halves, whose free lists lie in the free blocks themselves.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset
from posix.mman cimport MADV_HUGEPAGE, madvise

from shrimpmx.mx.types cimport (
    CACHE_LINE_BYTES, REQUEST_IN_ARENA, REQUEST_KEPT, ListLink, MxRequest, list_clear, list_empty,
    list_insert_after, list_remove,
)

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void **memory, size_t alignment, size_t size)

cdef enum:
    # What starts at a smallest block: one of these plus the order, or 0 inside a block.
    BLOCK_FREE = 0x40
    BLOCK_TAKEN = 0x80
    # Requests that are made at once, and those of a chunk behind the first.
    POOL_BATCH = 64
    POOL_CHUNK = 1024
    # An arena begins at a huge page, and is touched a small one at a time.
    HUGE_PAGE_BYTES = 2 << 20
    PAGE_BYTES = 4096


cdef int pool_open(RequestPool *pool, uint32_t count, uint64_t *grown) except -1:
    list_clear(&pool.free)
    pool.chunks = NULL
    pool.grown = grown
    assert sizeof(MxRequest) % CACHE_LINE_BYTES == 0, "fit REQUEST_UNUSED_BYTES"
    if not pool_grow(pool, count) or not pool_more(pool):
        raise MemoryError(f"not enough memory for {count} requests")
    return 0


cdef void pool_close(RequestPool *pool) noexcept:
    cdef PoolChunk *chunk
    while pool.chunks != NULL:
        chunk = pool.chunks
        pool.chunks = chunk.next
        free(chunk.requests)
        free(chunk)
    list_clear(&pool.free)


cdef void pool_free_kept(RequestPool *pool, const Arena *arena) noexcept:
    cdef PoolChunk *chunk = pool.chunks
    cdef MxRequest *request
    cdef uint32_t i
    while chunk != NULL:
        for i in range(chunk.made):
            request = &chunk.requests[i]
            if (
                request.kind == REQUEST_KEPT
                and request.flags & REQUEST_IN_ARENA
                and not lies_in(arena, request.data)
            ):
                free(request.data)
                request.flags = 0
        chunk = chunk.next


cdef bint pool_grow(RequestPool *pool, uint32_t count) noexcept nogil:
    cdef PoolChunk *chunk = <PoolChunk *>malloc(sizeof(PoolChunk))
    cdef void *memory = NULL
    if chunk == NULL:
        return False
    if posix_memalign(&memory, CACHE_LINE_BYTES, count * sizeof(MxRequest)) != 0:
        free(chunk)
        return False
    chunk.requests = <MxRequest *>memory
    chunk.count = count
    chunk.made = 0
    chunk.next = pool.chunks
    pool.chunks = chunk
    return True


cdef bint pool_more(RequestPool *pool) noexcept nogil:
    cdef PoolChunk *chunk = pool.chunks
    cdef uint32_t i, more
    if chunk.made == chunk.count:
        if not pool_grow(pool, POOL_CHUNK):
            return False
        pool.grown[0] += 1
        chunk = pool.chunks
    more = min(<uint32_t>POOL_BATCH, chunk.count - chunk.made)
    memset(&chunk.requests[chunk.made], 0, more * sizeof(MxRequest))
    chunk.made += more
    for i in range(more):
        pool_give(pool, &chunk.requests[chunk.made - 1 - i])
    return True


cdef int arena_open(Arena *arena, uint64_t size_bytes, uint64_t longest,
                    uint64_t *grown) except -1:
    cdef uint64_t whole = ARENA_BLOCK_BYTES
    cdef uint32_t order
    cdef void *memory = NULL
    arena.orders = 1
    while arena.orders < ARENA_ORDERS and whole < longest:
        arena.orders += 1
        whole <<= 1
    size_bytes = (size_bytes + whole - 1) // whole * whole
    if posix_memalign(&memory, HUGE_PAGE_BYTES, size_bytes) == 0:
        arena.base = <uint8_t *>memory
    arena.blocks = <uint8_t *>calloc(size_bytes // ARENA_BLOCK_BYTES, 1)
    if arena.base == NULL or arena.blocks == NULL:
        arena_close(arena)
        raise MemoryError(f"not enough memory for {size_bytes} bytes of messages")
    arena.size_bytes = size_bytes
    arena.free_bytes = size_bytes
    arena.untouched = 0
    arena.grown = grown
    for order in range(<uint32_t>ARENA_ORDERS):
        list_clear(&arena.free[order])
    return 0


cdef void arena_populate(Arena *arena, uint64_t size_bytes) noexcept nogil:
    cdef uint64_t at = 0
    madvise(arena.base, arena.size_bytes, MADV_HUGEPAGE)
    while at < min(arena.size_bytes, size_bytes):
        arena.base[at] = 0
        at += PAGE_BYTES


cdef void arena_close(Arena *arena) noexcept:
    free(arena.base)
    free(arena.blocks)
    arena.base = NULL
    arena.blocks = NULL
    arena.size_bytes = arena.untouched = 0


cdef inline void arena_put(Arena *arena, uint64_t index, uint32_t order) noexcept nogil:
    """The block of `order` at smallest block `index` becomes free."""
    cdef ListLink *link = <ListLink *>(arena.base + index * ARENA_BLOCK_BYTES)
    arena.blocks[index] = <uint8_t>(BLOCK_FREE | order)
    list_insert_after(&arena.free[order], link)


cdef uint8_t *arena_take(Arena *arena, uint32_t size_bytes, bint may_grow) noexcept nogil:
    cdef uint32_t wanted = 0
    cdef uint32_t order
    cdef uint64_t index
    cdef uint8_t *block
    while (<uint32_t>ARENA_BLOCK_BYTES << wanted) < size_bytes:
        wanted += 1
    order = wanted
    while order < arena.orders and list_empty(&arena.free[order]):
        order += 1
    if order >= arena.orders:
        order = arena.orders - 1
        if wanted <= order and arena.untouched < arena.size_bytes:
            arena_put(arena, arena.untouched // ARENA_BLOCK_BYTES, order)
            arena.untouched += <uint64_t>ARENA_BLOCK_BYTES << order
        elif may_grow:
            arena.grown[0] += 1
            return <uint8_t *>malloc(size_bytes)
        else:
            return NULL
    block = <uint8_t *>arena.free[order].next
    list_remove(<ListLink *>block)
    index = <uint64_t>(block - arena.base) // ARENA_BLOCK_BYTES
    while order > wanted:
        order -= 1
        arena_put(arena, index + (<uint64_t>1 << order), order)
    arena.blocks[index] = <uint8_t>(BLOCK_TAKEN | wanted)
    arena.free_bytes -= <uint64_t>ARENA_BLOCK_BYTES << wanted
    return block


cdef inline bint lies_in(const Arena *arena, const uint8_t *block) noexcept nogil:
    return arena.base <= block < arena.base + arena.size_bytes


cdef void arena_give(Arena *arena, uint8_t *block) noexcept nogil:
    cdef uint64_t index, buddy
    cdef uint32_t order
    if not lies_in(arena, block):
        free(block)  # taken from the system when the arena was full
        return
    index = <uint64_t>(block - arena.base) // ARENA_BLOCK_BYTES
    order = arena.blocks[index] & 0x0F
    arena.free_bytes += <uint64_t>ARENA_BLOCK_BYTES << order
    while order < arena.orders - 1:
        buddy = index ^ (<uint64_t>1 << order)
        if arena.blocks[buddy] != (BLOCK_FREE | order):
            break
        list_remove(<ListLink *>(arena.base + buddy * ARENA_BLOCK_BYTES))
        arena.blocks[index] = 0
        arena.blocks[buddy] = 0
        index &= buddy
        order += 1
    arena_put(arena, index, order)
