"""Reduce and allreduce (Thakur, Rabenseifner, Gropp 2005, 4.4 and 4.5).

An operation computes into = data op into. What comes from a lower rank stands in front, so that one
that does not commute sees the ranks in their order. On an inter-communicator each group gets the
result of the other one's data.
"""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.collective cimport is_root
from shrimpmx.mpi.exchange cimport send_to_all
from shrimpmx.mpi.halving cimport (
    NO_PLACE, NO_ROOT, Halving, halving_allgather, halving_begin, halving_gather, halving_partner,
    halving_reduce,
)
from shrimpmx.mpi.operation cimport operation_commutes
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_receive, schedule_reduce, schedule_round, schedule_send,
    schedule_take,
)
from shrimpmx.mpi.selection cimport (
    ALGORITHM_RABENSEIFNER, COLLECTIVE_ALLREDUCE, COLLECTIVE_REDUCE, COMMUTES, selected,
)


cdef int has_of(const Schedule *schedule) noexcept nogil:
    return COMMUTES if operation_commutes(schedule.operation) else 0


cdef void merge(Schedule *schedule, uint8_t **sum, uint8_t **coming, int64_t count,
                bint in_front) noexcept nogil:
    cdef uint8_t *result = coming[0]
    if in_front:
        schedule_reduce(schedule, coming[0], sum[0], count)
        return
    schedule_reduce(schedule, sum[0], result, count)
    coming[0] = sum[0]
    sum[0] = result


# -- reduce ------------------------------------------------------------------------------

cdef void build_reduce(Schedule *schedule, const void *data, void *into, int64_t count,
                       int64_t unit, int root) noexcept nogil:
    if schedule.comm.remote != NULL:
        if is_root(schedule.comm, root):
            reduce_all_peers(schedule, into, count, unit)
        else:
            schedule_send(schedule, root, data, count * unit)
    elif selected(COLLECTIVE_REDUCE, count * unit, schedule.comm.size,
                  has_of(schedule)) == ALGORITHM_RABENSEIFNER:
        reduce_by_halving(schedule, data, into, count, unit, root)
    else:
        reduce_by_tree(schedule, data, into, count, unit, root)


cdef void reduce_all_peers(Schedule *schedule, void *into, int64_t count,
                           int64_t unit) noexcept nogil:
    """The remote group's, when all of them are here."""
    cdef int64_t length = count * unit
    cdef int rank, last = schedule.comm.peers - 1
    cdef uint8_t *room = schedule_take(schedule, (last + 1) * length)
    for rank in range(last + 1):
        schedule_receive(schedule, rank, room + rank * length, length)
    schedule_round(schedule)
    for rank in range(last - 1, -1, -1):
        schedule_reduce(schedule, room + rank * length, room + last * length, count)
    schedule_copy(schedule, room + last * length, into, length)


cdef void reduce_by_tree(Schedule *schedule, const void *data, void *into, int64_t count,
                         int64_t unit, int root) noexcept nogil:
    """A binomial tree. One for an operation that does not commute begins at rank 0."""
    cdef int64_t length = count * unit
    cdef int size = schedule.comm.size, bit = 1
    cdef int top = root if has_of(schedule) else 0
    cdef int rank = (schedule.comm.rank - top + size) % size  # the top is 0
    cdef uint8_t *sum = schedule_take(schedule, length)
    cdef uint8_t *coming = schedule_take(schedule, length)
    schedule_copy(schedule, data, sum, length)
    while bit < size and not rank & bit:
        if rank + bit < size:
            schedule_receive(schedule, (rank + bit + top) % size, coming, length)
            schedule_round(schedule)
            merge(schedule, &sum, &coming, count, False)
        bit *= 2
    if rank != 0:
        schedule_send(schedule, (rank - bit + top) % size, sum, length)
    elif top != root:
        schedule_send(schedule, root, sum, length)
    else:
        schedule_copy(schedule, sum, into, length)
    if top != root and schedule.comm.rank == root:
        schedule_receive(schedule, top, into, length)


cdef void reduce_by_halving(Schedule *schedule, const void *data, void *into, int64_t count,
                            int64_t unit, int root) noexcept nogil:
    """Rabenseifner: recursive halving, and the root gathers the blocks."""
    cdef Halving halving
    if not halving_begin(&halving, schedule, into if is_root(schedule.comm, root) else NULL, count,
                         unit, root):
        return
    share_out(&halving, count)
    halving_reduce(&halving, data)
    if halving.place != NO_PLACE:
        halving_gather(&halving)


cdef void share_out(Halving *halving, int64_t count) noexcept nogil:
    """Blocks of one size, more or less."""
    cdef int place
    for place in range(halving.power + 1):
        halving.starts[place] = count * place // halving.power


# -- allreduce ---------------------------------------------------------------------------

cdef void build_allreduce(Schedule *schedule, const void *data, void *into, int64_t count,
                          int64_t unit) noexcept nogil:
    if schedule.comm.remote != NULL:
        send_to_all(schedule, data, count * unit)
        reduce_all_peers(schedule, into, count, unit)
    elif selected(COLLECTIVE_ALLREDUCE, count * unit, schedule.comm.size,
                  has_of(schedule)) == ALGORITHM_RABENSEIFNER:
        allreduce_by_halving(schedule, data, into, count, unit)
    else:
        allreduce_by_doubling(schedule, data, into, count, unit)


cdef void allreduce_by_halving(Schedule *schedule, const void *data, void *into, int64_t count,
                               int64_t unit) noexcept nogil:
    """Rabenseifner: recursive halving, and back by recursive doubling."""
    cdef Halving halving
    cdef int partner
    if not halving_begin(&halving, schedule, into, count, unit, NO_ROOT):
        return
    share_out(&halving, count)
    halving_reduce(&halving, data)
    if halving.place == NO_PLACE:
        schedule_round(schedule)
        schedule_receive(schedule, schedule.comm.rank + 1, into, count * unit)
        return
    halving_allgather(&halving)
    partner = halving_partner(&halving, halving.place)
    if partner != NO_PLACE:
        schedule_send(schedule, partner, into, count * unit)


cdef void allreduce_by_doubling(Schedule *schedule, const void *data, void *into, int64_t count,
                                int64_t unit) noexcept nogil:
    """Recursive doubling. Ranks beyond a power of two hand theirs on, and get the result back."""
    cdef int64_t length = count * unit
    cdef int rank = schedule.comm.rank, size = schedule.comm.size
    cdef int power = 1, bit = 1, rest, place, peer
    cdef uint8_t *sum = <uint8_t *>into
    cdef uint8_t *coming = schedule_take(schedule, length)
    while power * 2 <= size:
        power *= 2
    rest = size - power
    if rank < 2 * rest and rank % 2 == 0:
        schedule_send(schedule, rank + 1, data, length)
        schedule_round(schedule)
        schedule_receive(schedule, rank + 1, into, length)
        return
    if data != into:
        schedule_copy(schedule, data, into, length)
    if rank < 2 * rest:
        schedule_receive(schedule, rank - 1, coming, length)
        schedule_round(schedule)
        merge(schedule, &sum, &coming, count, True)
    place = rank // 2 if rank < 2 * rest else rank - rest
    while bit < power:
        peer = place ^ bit
        peer = 2 * peer + 1 if peer < rest else peer + rest
        schedule_send(schedule, peer, sum, length)
        schedule_receive(schedule, peer, coming, length)
        schedule_round(schedule)
        merge(schedule, &sum, &coming, count, peer < rank)
        bit *= 2
    if sum != into:
        schedule_copy(schedule, sum, into, length)
    if rank < 2 * rest:
        schedule_send(schedule, rank - 1, into, length)
