"""Allgather (Thakur, Rabenseifner, Gropp 2005, 4.1)."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.exchange cimport send_to_all
from shrimpmx.mpi.parts cimport Parts, part_at, part_bytes
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_keep, schedule_receive, schedule_round, schedule_send,
    schedule_take,
)
from shrimpmx.mpi.selection cimport (
    ALGORITHM_BRUCK, ALGORITHM_RING, COLLECTIVE_ALLGATHER, EVEN, Algorithm, selected,
)
from shrimpmx.mx.types cimport MESSAGE_MAX_BYTES


cdef void build_allgather(Schedule *schedule, const void *own, int64_t length,
                          const Parts *parts) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, each
    cdef int64_t total = 0
    cdef Algorithm algorithm
    if schedule.comm.remote != NULL:
        send_to_all(schedule, own, length)
        for each in range(schedule.comm.peers):
            schedule_receive(schedule, each, part_at(parts, each), part_bytes(parts, each))
        return
    if own != NULL:
        schedule_keep(schedule, own, length, part_at(parts, rank), part_bytes(parts, rank))
    for each in range(size):
        total += part_bytes(parts, each)
    # All but the ring send several parts in one message.
    algorithm = selected(COLLECTIVE_ALLGATHER, total, size, EVEN if (
        parts.lengths == NULL and total <= MESSAGE_MAX_BYTES) else 0)
    if algorithm == ALGORITHM_RING:
        allgather_ring(schedule, parts)
    elif algorithm == ALGORITHM_BRUCK:
        bruck(schedule, parts)
    else:
        recursive_doubling(schedule, parts)


cdef void allgather_ring(Schedule *schedule, const Parts *parts) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, step, coming
    for step in range(size - 1):
        coming = (rank - step - 1 + size) % size
        schedule_send(schedule, (rank + 1) % size, part_at(parts, (coming + 1) % size),
                      part_bytes(parts, (coming + 1) % size))
        schedule_receive(schedule, (rank - 1 + size) % size, part_at(parts, coming),
                         part_bytes(parts, coming))
        schedule_round(schedule)


cdef void recursive_doubling(Schedule *schedule, const Parts *parts) noexcept nogil:
    cdef int rank = schedule.comm.rank, bit = 1, first
    while bit < schedule.comm.size:
        first = rank & ~(bit - 1)
        schedule_send(schedule, rank ^ bit, part_at(parts, first), bit * parts.length)
        schedule_receive(schedule, rank ^ bit, part_at(parts, first ^ bit), bit * parts.length)
        schedule_round(schedule)
        bit *= 2


cdef void bruck(Schedule *schedule, const Parts *parts) noexcept nogil:
    """Parts stand in the room by their distance from this rank."""
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, step = 1, count
    cdef int64_t length = parts.length
    cdef uint8_t *room = schedule_take(schedule, size * length)
    schedule_copy(schedule, part_at(parts, rank), room, length)
    while step < size:
        count = min(step, size - step)
        schedule_send(schedule, (rank - step + size) % size, room, count * length)
        schedule_receive(schedule, (rank + step) % size, room + step * length, count * length)
        schedule_round(schedule)
        step *= 2
    schedule_copy(schedule, room, part_at(parts, rank), (size - rank) * length)
    schedule_copy(schedule, room + (size - rank) * length, part_at(parts, 0), rank * length)
