"""Reduce, allreduce and scan.

An operation computes into = data op into. Where it does not commute, what comes from a lower rank
stands in front. On an inter-communicator each group gets the result of the other one's data.
"""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport MPI_ROOT
from shrimpmx.mpi.collective cimport is_root
from shrimpmx.mpi.exchange cimport build_broadcast, send_to_all
from shrimpmx.mpi.operation cimport operation_commutes
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_receive, schedule_reduce, schedule_round, schedule_send,
    schedule_take,
)


cdef void build_reduce(Schedule *schedule, const void *data, void *into, int64_t count,
                       int64_t unit, int root) noexcept nogil:
    if schedule.comm.remote == NULL and operation_commutes(schedule.operation):
        reduce_by_tree(schedule, data, into, count, unit, root)
    else:
        reduce_in_order(schedule, data, into, count, unit, root)


cdef void reduce_by_tree(Schedule *schedule, const void *data, void *into, int64_t count,
                         int64_t unit, int root) noexcept nogil:
    cdef int64_t length = count * unit
    cdef int size = schedule.comm.size, bit = 1
    cdef int rank = (schedule.comm.rank - root + size) % size  # the root is 0
    cdef uint8_t *sum = schedule_take(schedule, length)
    cdef uint8_t *coming = schedule_take(schedule, length)
    schedule_copy(schedule, data, sum, length)
    while bit < size:
        if rank & bit:
            schedule_send(schedule, (rank - bit + root) % size, sum, length)
            return
        if rank + bit < size:
            schedule_receive(schedule, (rank + bit + root) % size, coming, length)
            schedule_round(schedule)
            schedule_reduce(schedule, coming, sum, count)
        bit *= 2
    schedule_copy(schedule, sum, into, length)


cdef void reduce_in_order(Schedule *schedule, const void *data, void *into, int64_t count,
                          int64_t unit, int root) noexcept nogil:
    cdef int64_t length = count * unit
    cdef int rank, size = schedule.comm.peers
    cdef uint8_t *room
    if not is_root(schedule.comm, root):
        schedule_send(schedule, root, data, length)
        return
    room = schedule_take(schedule, size * length)
    if schedule.comm.remote == NULL:
        schedule_copy(schedule, data, room + root * length, length)
    for rank in range(size):
        if rank != root:
            schedule_receive(schedule, rank, room + rank * length, length)
    schedule_round(schedule)
    for rank in range(size - 2, -1, -1):
        schedule_reduce(schedule, room + rank * length,
                        room + (size - 1) * length, count)
    schedule_copy(schedule, room + (size - 1) * length, into, length)


cdef void build_allreduce(Schedule *schedule, const void *data, void *into, int64_t count,
                          int64_t unit) noexcept nogil:
    if schedule.comm.remote != NULL:
        send_to_all(schedule, data, count * unit)
        reduce_in_order(schedule, data, into, count, unit, MPI_ROOT)
        return
    if operation_commutes(schedule.operation):
        double_recursively(schedule, data, into, count, unit)
        return
    reduce_in_order(schedule, data, into, count, unit, 0)
    schedule_round(schedule)
    build_broadcast(schedule, into, count * unit, 0)


cdef void double_recursively(Schedule *schedule, const void *data, void *into, int64_t count,
                             int64_t unit) noexcept nogil:
    """Ranks beyond a power of two hand theirs to a neighbour first, and get the result back."""
    cdef int64_t length = count * unit
    cdef int rank = schedule.comm.rank, size = schedule.comm.size
    cdef int power = 1, bit = 1, rest, place
    cdef uint8_t *coming = schedule_take(schedule, length)
    while power * 2 <= size:
        power *= 2
    rest = size - power
    if data != into:
        schedule_copy(schedule, data, into, length)
    if rank < 2 * rest and rank % 2 == 0:
        schedule_send(schedule, rank + 1, into, length)
        schedule_round(schedule)
        schedule_receive(schedule, rank + 1, into, length)
        return
    if rank < 2 * rest:
        schedule_receive(schedule, rank - 1, coming, length)
        schedule_round(schedule)
        schedule_reduce(schedule, coming, into, count)
    place = rank // 2 if rank < 2 * rest else rank - rest
    while bit < power:
        peer_exchange(schedule, rank_at(place ^ bit, rest), <uint8_t *>into, coming, length)
        schedule_reduce(schedule, coming, into, count)
        bit *= 2
    if rank < 2 * rest:
        schedule_send(schedule, rank - 1, into, length)


cdef void peer_exchange(Schedule *schedule, int peer, uint8_t *data, uint8_t *coming,
                        int64_t length) noexcept nogil:
    schedule_send(schedule, peer, data, length)
    schedule_receive(schedule, peer, coming, length)
    schedule_round(schedule)


cdef int rank_at(int place, int rest) noexcept nogil:
    """The rank at a place among those that double."""
    return 2 * place + 1 if place < rest else place + rest


cdef void build_scan(Schedule *schedule, const void *data, void *into, int64_t count,
                     int64_t unit, bint exclusive) noexcept nogil:
    cdef int64_t length = count * unit
    cdef int rank = schedule.comm.rank, size = schedule.comm.size
    cdef uint8_t *coming = schedule_take(schedule, length)
    cdef uint8_t *sum = schedule_take(schedule, length)
    schedule_copy(schedule, data, sum, length)
    if rank > 0:
        schedule_receive(schedule, rank - 1, coming, length)
        schedule_round(schedule)
        schedule_reduce(schedule, coming, sum, count)
        if exclusive:
            schedule_copy(schedule, coming, into, length)
    if not exclusive:
        schedule_copy(schedule, sum, into, length)
    if rank + 1 < size:
        schedule_send(schedule, rank + 1, sum, length)
