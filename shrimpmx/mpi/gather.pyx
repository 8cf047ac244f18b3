"""Gather and scatter: each message to its root, or by a binomial tree.

A tree counts ranks from the root. A rank has in its room the parts of the ranks from its own on
that are behind it in the tree.
"""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.collective cimport is_root
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.parts cimport Parts, part_at, part_bytes
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_keep, schedule_receive, schedule_round, schedule_send,
    schedule_take,
)
from shrimpmx.mpi.selection cimport (
    ALGORITHM_BINOMIAL, COLLECTIVE_GATHER, COLLECTIVE_SCATTER, EVEN, Collective, selected,
)


cdef bint by_tree(Schedule *schedule, Collective collective, int64_t length,
                  bint even) noexcept nogil:
    cdef const Comm *comm = schedule.comm
    return (comm.size > 1 and comm.remote == NULL and ALGORITHM_BINOMIAL == selected(
            collective, length, comm.size, EVEN if even else 0))


cdef void build_gather(Schedule *schedule, const void *own, int64_t length, const Parts *parts,
                       int root, bint even) noexcept nogil:
    cdef int rank
    cdef bint at_root = is_root(schedule.comm, root)
    if by_tree(schedule, COLLECTIVE_GATHER, parts.length if at_root else length, even):
        gather_tree(schedule, own, length, parts, root)
    elif not at_root:
        schedule_send(schedule, root, own, length)
    else:
        if own != NULL:
            schedule_keep(schedule, own, length, part_at(parts, root), part_bytes(parts, root))
        for rank in range(schedule.comm.peers):
            if rank != root:
                schedule_receive(schedule, rank, part_at(parts, rank), part_bytes(parts, rank))


cdef void gather_tree(Schedule *schedule, const void *own, int64_t length, const Parts *parts,
                      int root) noexcept nogil:
    cdef int size = schedule.comm.size, bit = 1, count = 1
    cdef int rank = (schedule.comm.rank - root + size) % size
    cdef uint8_t *room
    cdef int64_t each = parts.length if rank == 0 else length
    if rank % 2 == 1:
        schedule_send(schedule, (rank - 1 + root) % size, own, length)
        return
    room = schedule_take(schedule, size * each)
    if own != NULL:
        schedule_keep(schedule, own, length, room, each)
    while bit < size and not rank & bit:
        if rank + bit < size:
            count = min(2 * bit, size - rank)
            schedule_receive(schedule, (rank + bit + root) % size, room + bit * each,
                             (count - bit) * each)
        bit *= 2
    schedule_round(schedule)
    if rank != 0:
        schedule_send(schedule, (rank - bit + root) % size, room, count * each)
        return
    if own != NULL:
        schedule_copy(schedule, room, part_at(parts, root), each)
    schedule_copy(schedule, room + each, part_at(parts, root) + each, (size - 1 - root) * each)
    schedule_copy(schedule, room + (size - root) * each, parts.data, root * each)


cdef void build_scatter(Schedule *schedule, const Parts *parts, void *own, int64_t length,
                        int root, bint even) noexcept nogil:
    cdef int rank
    cdef bint at_root = is_root(schedule.comm, root)
    if by_tree(schedule, COLLECTIVE_SCATTER, parts.length if at_root else length, even):
        scatter_tree(schedule, parts, own, length, root)
    elif not at_root:
        schedule_receive(schedule, root, own, length)
    else:
        if own != NULL:
            schedule_keep(schedule, part_at(parts, root), part_bytes(parts, root), own, length)
        for rank in range(schedule.comm.peers):
            if rank != root:
                schedule_send(schedule, rank, part_at(parts, rank), part_bytes(parts, rank))


cdef void scatter_tree(Schedule *schedule, const Parts *parts, void *own, int64_t length,
                       int root) noexcept nogil:
    cdef int size = schedule.comm.size, bit = 1
    cdef int rank = (schedule.comm.rank - root + size) % size
    cdef uint8_t *room
    cdef int64_t each = parts.length if rank == 0 else length
    if rank % 2 == 1:
        schedule_receive(schedule, (rank - 1 + root) % size, own, length)
        return
    room = schedule_take(schedule, size * each)
    while bit < size and not rank & bit:
        bit *= 2
    if rank == 0:
        schedule_copy(schedule, part_at(parts, root), room, (size - root) * each)
        schedule_copy(schedule, parts.data, room + (size - root) * each, root * each)
    else:
        schedule_receive(schedule, (rank - bit + root) % size, room,
                         min(bit, size - rank) * each)
        schedule_round(schedule)
    if own != NULL:
        schedule_keep(schedule, room, each, own, length)
    bit //= 2
    while bit > 0:
        if rank + bit < size:
            schedule_send(schedule, (rank + bit + root) % size, room + bit * each,
                          min(bit, size - rank - bit) * each)
        bit //= 2
