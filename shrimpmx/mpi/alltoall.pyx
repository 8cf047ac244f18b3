"""Alltoall (Thakur, Rabenseifner, Gropp 2005, 4.3)."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.parts cimport Parts, part_at, part_bytes
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_keep, schedule_receive, schedule_round, schedule_send,
    schedule_take,
)
from shrimpmx.mpi.selection cimport (
    ALGORITHM_BRUCK, ALGORITHM_PAIRWISE, COLLECTIVE_ALLTOALL, EVEN, Algorithm, selected,
)


cdef void build_alltoall(Schedule *schedule, const Parts *sent, const Parts *received,
                         bint even) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size
    cdef Algorithm algorithm = selected(
        COLLECTIVE_ALLTOALL, sent.length, size, EVEN if even else 0)
    if schedule.comm.remote != NULL:
        all_at_once(schedule, sent, received, 0)
        return
    if algorithm == ALGORITHM_BRUCK:
        bruck(schedule, sent, received)
        return
    schedule_keep(schedule, part_at(sent, rank), part_bytes(sent, rank), part_at(received, rank),
                  part_bytes(received, rank))
    if algorithm == ALGORITHM_PAIRWISE:
        pairwise(schedule, sent, received)
    else:
        all_at_once(schedule, sent, received, 1)


cdef void all_at_once(Schedule *schedule, const Parts *sent, const Parts *received,
                      int first) noexcept nogil:
    """Each rank begins with the one that is `first` steps away."""
    cdef int rank = schedule.comm.rank, size = schedule.comm.peers, step, source, target
    for step in range(first, size):
        source = (rank - step + size) % size
        schedule_receive(schedule, source, part_at(received, source),
                         part_bytes(received, source))
    for step in range(first, size):
        target = (rank + step) % size
        schedule_send(schedule, target, part_at(sent, target), part_bytes(sent, target))


cdef void pairwise(Schedule *schedule, const Parts *sent, const Parts *received) noexcept nogil:
    """One message from each rank and one to it at a time."""
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, step, source, target
    for step in range(1, size):
        source = (rank - step + size) % size
        target = (rank + step) % size
        schedule_receive(schedule, source, part_at(received, source),
                         part_bytes(received, source))
        schedule_send(schedule, target, part_at(sent, target), part_bytes(sent, target))
        schedule_round(schedule)


cdef void bruck(Schedule *schedule, const Parts *sent, const Parts *received) noexcept nogil:
    """Parts stand in the room by how far they have to go; a step moves those with its bit.

    A part that has gone all its way lies where the one that goes as far did.
    """
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, bit = 1, way, count
    cdef int64_t length = sent.length
    cdef uint8_t *room = schedule_take(schedule, 3 * size * length)
    cdef uint8_t *going
    cdef uint8_t *coming
    if room == NULL:
        return
    going = room + size * length
    coming = going + size * length
    schedule_copy(schedule, part_at(sent, rank), room, (size - rank) * length)
    schedule_copy(schedule, sent.data, room + (size - rank) * length, rank * length)
    while bit < size:
        count = 0
        for way in range(bit, size):
            if way & bit:
                schedule_copy(schedule, room + way * length, going + count * length, length)
                count += 1
        schedule_send(schedule, (rank + bit) % size, going, count * length)
        schedule_receive(schedule, (rank - bit + size) % size, coming, count * length)
        schedule_round(schedule)
        count = 0
        for way in range(bit, size):
            if way & bit:
                schedule_copy(schedule, coming + count * length, room + way * length, length)
                count += 1
        bit *= 2
    for way in range(size):
        schedule_copy(schedule, room + way * length,
                      part_at(received, (rank - way + size) % size), length)
