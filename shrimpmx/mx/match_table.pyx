"""Where receives wait for messages, and messages for receives; see match_table.pxd.

A group is a ring of requests of one match value and mask, oldest first; only its head stands in
a bucket. A receive's age is a number given when it is hashed: each queue is hashed oldest first,
so numbers tell the order among the masks of one context id.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from shrimpmx.mx.types cimport (
    REQUEST_HASHED, REQUEST_POSTED, REQUEST_UNEXPECTED, REQUEST_UNHASHED, ListLink, MxRequest,
    list_append, list_clear, list_empty, list_insert_after, list_remove, request_of_queue,
)

from shrimpmx.errors import InputError

cdef uint64_t ALL_BITS = <uint64_t>0xFFFFFFFFFFFFFFFF


cdef int matching_open(Matching *matching, uint64_t entries, uint32_t context_bits,
                       uint32_t context_shift, uint64_t *grown,
                       uint64_t *comparisons) except -1:
    memset(matching, 0, sizeof(Matching))
    if context_bits + context_shift > 64:
        raise InputError(
            f"context_id_bits {context_bits} from context_id_shift {context_shift} on reach "
            "beyond the 64 match bits")
    matching.context_shift = context_shift
    matching.context_last = (<uint64_t>1 << context_bits) - 1
    matching.context_bits = matching.context_last << context_shift
    matching.grown = grown
    matching.comparisons = comparisons
    try:
        side_open(&matching.posted, entries, matching.context_last + 1)
        side_open(&matching.unexpected, entries, matching.context_last + 1)
    except MemoryError:
        matching_close(matching)
        raise
    return 0


cdef int side_open(MatchSide *side, uint64_t entries, uint64_t contexts) except -1:
    cdef uint64_t i
    list_clear(&side.unhashed)
    side.buckets_count = 1
    while side.buckets_count < entries:
        side.buckets_count *= 2
    side.buckets = buckets_make(side.buckets_count)
    side.queues = <MatchQueue *>calloc(contexts, sizeof(MatchQueue))
    if side.buckets == NULL or side.queues == NULL:
        raise MemoryError(f"not enough memory for {entries} requests of {contexts} context ids")
    for i in range(contexts):
        list_clear(&side.queues[i].listed)
        side.queues[i].pending = &side.queues[i].listed
    return 0


cdef ListLink *buckets_make(uint64_t count) noexcept nogil:
    cdef uint64_t i
    cdef ListLink *buckets = <ListLink *>malloc(count * sizeof(ListLink))
    if buckets != NULL:
        for i in range(count):
            list_clear(&buckets[i])
    return buckets


cdef void matching_close(Matching *matching) noexcept:
    free(matching.posted.queues)
    free(matching.posted.buckets)
    free(matching.unexpected.queues)
    free(matching.unexpected.buckets)
    memset(matching, 0, sizeof(Matching))


cdef void matching_keep(Matching *matching, MxRequest *kept) noexcept nogil:
    kept.flags |= REQUEST_UNEXPECTED
    kept.mask = ALL_BITS
    queue_add(&matching.unexpected.queues[matching_context(matching, kept.match)], kept)


cdef MxRequest *matching_search_unexpected(Matching *matching, MatchQueue *queue, uint64_t match,
                                           uint64_t mask) noexcept nogil:
    cdef ListLink *link = queue.listed.next
    cdef uint32_t looks = matching_looks(queue)
    while link != &queue.listed:
        if mask == ALL_BITS:
            if looks == 0:
                hash_pending(matching, &matching.unexpected, queue)
                return group_find(matching, &matching.unexpected, match, mask)
            looks -= 1
        matching.comparisons[0] += 1
        if match == (mask & request_of_queue(link).match):
            return request_of_queue(link)
        link = link.next
    return NULL


cdef MxRequest *matching_find_hashed(Matching *matching, MatchQueue *queue,
                                     uint64_t match) noexcept nogil:
    """The oldest of the oldest under each mask."""
    cdef MatchSide *side = &matching.posted
    cdef MxRequest *oldest = NULL
    cdef MxRequest *request
    cdef ListLink *link
    cdef uint32_t i
    hash_pending(matching, side, queue)
    link = side.unhashed.next
    for i in range(side.masks_count):
        request = group_find(matching, side, match & side.masks[i].mask, side.masks[i].mask)
        if request != NULL and (oldest == NULL or request.number < oldest.number):
            oldest = request
    while link != &side.unhashed:
        matching.comparisons[0] += 1
        request = request_of_bucket(link)
        if oldest != NULL and oldest.number < request.number:
            break
        if request.match == (request.mask & match):
            return request
        link = link.next
    return oldest


cdef void matching_remove(Matching *matching, MxRequest *request) noexcept nogil:
    if request.flags & REQUEST_POSTED:
        request.flags &= ~(<uint32_t>REQUEST_POSTED)
        side_remove(matching, &matching.posted, request)
    elif request.flags & REQUEST_UNEXPECTED:
        request.flags &= ~(<uint32_t>REQUEST_UNEXPECTED)
        side_remove(matching, &matching.unexpected, request)


cdef void side_remove(Matching *matching, MatchSide *side, MxRequest *request) noexcept nogil:
    queue_remove(side, &side.queues[matching_context(matching, request.match)], request)


# -- the hash ----------------------------------------------------------------

cdef inline MxRequest *request_of_bucket(ListLink *link) noexcept nogil:
    return <MxRequest *>(<char *>link - <size_t>&(<MxRequest *>NULL).bucket)


cdef inline MxRequest *request_of_same(ListLink *link) noexcept nogil:
    return <MxRequest *>(<char *>link - <size_t>&(<MxRequest *>NULL).same)


cdef inline ListLink *bucket_of(const MatchSide *side, uint64_t match,
                                uint64_t mask) noexcept nogil:
    # Bits of the mask must not cancel bits of the match; both spread by odd multipliers.
    cdef uint64_t mixed = match ^ mask * <uint64_t>0x9E3779B97F4A7C15
    mixed = (mixed ^ mixed >> 32) * <uint64_t>0xD6E8FEB86659FD93
    return &side.buckets[mixed >> 32 & (side.buckets_count - 1)]


cdef inline MxRequest *group_find(Matching *matching, const MatchSide *side, uint64_t match,
                                  uint64_t mask) noexcept nogil:
    """The oldest of a group, or NULL."""
    cdef ListLink *bucket = bucket_of(side, match, mask)
    cdef ListLink *link = bucket.next
    cdef MxRequest *request
    while link != bucket:
        matching.comparisons[0] += 1
        request = request_of_bucket(link)
        if request.match == match and request.mask == mask:
            return request
        link = link.next
    return NULL


cdef void hash_pending(Matching *matching, MatchSide *side, MatchQueue *queue) noexcept nogil:
    while queue.pending != &queue.listed:
        hash_in(matching, side, request_of_queue(queue.pending))
        queue.pending = queue.pending.next


cdef bint mask_add(MatchSide *side, uint64_t mask) noexcept nogil:
    """One more hashed request under `mask`; False if too many masks are in use."""
    cdef uint32_t i
    for i in range(side.masks_count):
        if side.masks[i].mask == mask:
            side.masks[i].count += 1
            return True
    if side.masks_count == MATCH_MASKS:
        return False
    side.masks[side.masks_count].mask = mask
    side.masks[side.masks_count].count = 1
    side.masks_count += 1
    return True


cdef void mask_drop(MatchSide *side, uint64_t mask) noexcept nogil:
    cdef uint32_t i = 0
    while side.masks[i].mask != mask:
        i += 1
    side.masks[i].count -= 1
    if side.masks[i].count == 0:
        side.masks_count -= 1
        side.masks[i] = side.masks[side.masks_count]


cdef void hash_in(Matching *matching, MatchSide *side, MxRequest *request) noexcept nogil:
    cdef MxRequest *head
    list_clear(&request.bucket)
    list_clear(&request.same)
    request.number = side.next_number
    side.next_number += 1
    request.flags |= REQUEST_HASHED
    if not mask_add(side, request.mask):
        request.flags |= REQUEST_UNHASHED
        list_append(&side.unhashed, &request.bucket)
        return
    head = group_find(matching, side, request.match, request.mask)
    if head != NULL:
        list_append(&head.same, &request.same)
        return
    list_append(bucket_of(side, request.match, request.mask), &request.bucket)
    side.groups += 1
    if side.groups > side.buckets_count:
        buckets_grow(matching, side)


cdef void hash_out(MatchSide *side, MxRequest *request) noexcept nogil:
    cdef MxRequest *following
    request.flags &= ~(<uint32_t>REQUEST_HASHED)
    if request.flags & REQUEST_UNHASHED:
        request.flags &= ~(<uint32_t>REQUEST_UNHASHED)
        list_remove(&request.bucket)
        return
    mask_drop(side, request.mask)
    if list_empty(&request.same):
        list_remove(&request.bucket)
        side.groups -= 1
        return
    if not list_empty(&request.bucket):
        # The head: the next oldest takes its place.
        following = request_of_same(request.same.next)
        list_insert_after(&request.bucket, &following.bucket)
        list_remove(&request.bucket)
    list_remove(&request.same)


cdef void buckets_grow(Matching *matching, MatchSide *side) noexcept nogil:
    """Four times as many buckets; if memory is out the groups of a bucket become more."""
    cdef ListLink *old = side.buckets
    cdef uint64_t old_count = side.buckets_count
    cdef ListLink *grown = buckets_make(old_count * 4)
    cdef MxRequest *head
    cdef uint64_t i
    if grown == NULL:
        return
    matching.grown[0] += 1
    side.buckets = grown
    side.buckets_count = old_count * 4
    for i in range(old_count):
        while not list_empty(&old[i]):
            head = request_of_bucket(old[i].next)
            list_remove(&head.bucket)
            list_append(bucket_of(side, head.match, head.mask), &head.bucket)
    free(old)
