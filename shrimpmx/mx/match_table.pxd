"""Where receives wait for messages, and messages for receives.

Both sides keep what waits in order of age, one queue per context id. A search looks at the
oldest entries first: most often one of them fits. Only when none does is the queue hashed:
by match value, and on the side of the receives under each mask in use; entries of one value
and mask form a group, oldest first. So finding one costs the same however many wait; receives
served in the order of asking are never hashed. The oldest that fits is found either way.
"""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mx.types cimport (
    CACHE_LINE_BYTES, REQUEST_HASHED, REQUEST_POSTED, ListLink, MxRequest, list_append, list_empty,
    list_remove, request_of_queue,
)
from shrimpmx.native.atomics cimport prefetch_write

cdef enum:
    # So many of the oldest entries are looked at before the hash; only the oldest one where the
    # queue had to be hashed before (ours, measured: about as fast as hashing up to 8).
    MATCH_LOOKS = 8
    MATCH_LOOKS_HASHED = 1
    MATCH_MASKS = 16         # masks in use at a time that are hashed; receives under others are not

cdef struct MatchQueue:      # of one context id
    ListLink listed          # oldest first (queue)
    ListLink *pending        # the first that is not hashed, as none behind it; &listed: none

cdef struct MatchMask:
    uint64_t mask
    uint64_t count           # of hashed requests under it

cdef struct MatchSide:       # posted receives, or unexpected messages
    MatchQueue *queues       # [context id]
    ListLink *buckets        # heads of groups (bucket)
    uint64_t buckets_count   # a power of two
    uint64_t groups
    uint64_t next_number     # age of the next request that is hashed
    MatchMask[MATCH_MASKS] masks
    uint32_t masks_count
    ListLink unhashed        # receives under further masks, oldest first (bucket)

cdef struct Matching:
    MatchSide posted
    MatchSide unexpected
    uint32_t context_shift
    uint64_t context_last    # the largest context id
    uint64_t context_bits    # of a match value
    uint64_t *grown          # counters
    uint64_t *comparisons

# `entries`: for how many of each side there is room at first. Raises InputError if the context
# id does not lie within the 64 match bits, MemoryError.
cdef int matching_open(Matching *matching, uint64_t entries, uint32_t context_bits,
                       uint32_t context_shift, uint64_t *grown, uint64_t *comparisons) except -1
cdef void matching_close(Matching *matching) noexcept
# A message waits for a receive.
cdef void matching_keep(Matching *matching, MxRequest *kept) noexcept nogil
# The oldest message of `queue` that waits and fits, or NULL.
cdef MxRequest *matching_search_unexpected(Matching *matching, MatchQueue *queue, uint64_t match,
                                           uint64_t mask) noexcept nogil
# Waits no longer; harmless if it did not.
cdef void matching_remove(Matching *matching, MxRequest *request) noexcept nogil
# A request that was hashed waits no longer.
cdef void hash_out(MatchSide *side, MxRequest *request) noexcept nogil
# For matching_take_posted().
cdef MxRequest *matching_find_hashed(Matching *matching, MatchQueue *queue,
                                     uint64_t match) noexcept nogil


cdef inline uint64_t matching_context(const Matching *matching, uint64_t match) noexcept nogil:
    if matching.context_last == 0:
        return 0
    return match >> matching.context_shift & matching.context_last


cdef inline void queue_add(MatchQueue *queue, MxRequest *request) noexcept nogil:
    list_append(&queue.listed, &request.queue)
    if queue.pending == &queue.listed:
        queue.pending = &request.queue


cdef inline void queue_remove(MatchSide *side, MatchQueue *queue,
                              MxRequest *request) noexcept nogil:
    if queue.pending == &request.queue:
        queue.pending = request.queue.next
    list_remove(&request.queue)
    if request.flags & REQUEST_HASHED:
        hash_out(side, request)


cdef inline void matching_post(Matching *matching, MxRequest *receive) noexcept nogil:
    """A receive waits for a message; no bit of its match lies outside its mask, which has all bits
    of the context id."""
    receive.flags |= REQUEST_POSTED
    queue_add(&matching.posted.queues[matching_context(matching, receive.match)], receive)


cdef inline MxRequest *matching_unexpected(Matching *matching, uint64_t match,
                                           uint64_t mask) noexcept nogil:
    """The oldest message that waits and fits, or NULL."""
    cdef MatchQueue *queue = &matching.unexpected.queues[matching_context(matching, match)]
    if list_empty(&queue.listed):
        return NULL
    return matching_search_unexpected(matching, queue, match, mask)


cdef inline uint32_t matching_looks(const MatchQueue *queue) noexcept nogil:
    """At how many of the oldest entries a search looks before it hashes."""
    return MATCH_LOOKS if queue.pending == queue.listed.next else MATCH_LOOKS_HASHED


cdef inline MxRequest *matching_take_posted(Matching *matching, uint64_t match) noexcept nogil:
    """The oldest receive that takes a message of `match`, waiting no longer; NULL: none does."""
    cdef MatchQueue *queue = &matching.posted.queues[matching_context(matching, match)]
    cdef ListLink *link = queue.listed.next
    cdef uint32_t looks = matching_looks(queue)
    cdef MxRequest *request
    while link != &queue.listed:
        if looks == 0:
            request = matching_find_hashed(matching, queue, match)
            if request != NULL:
                matching_remove(matching, request)
            return request
        looks -= 1
        matching.comparisons[0] += 1
        request = request_of_queue(link)
        link = link.next
        if request.match == (request.mask & match):
            # Most often the one behind it is the next to be taken.
            prefetch_write(link)
            prefetch_write(<char *>link + CACHE_LINE_BYTES)
            request.flags &= ~(<uint32_t>REQUEST_POSTED)
            queue_remove(&matching.posted, queue, request)
            return request
    return NULL
