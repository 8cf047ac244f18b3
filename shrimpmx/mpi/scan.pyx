"""Scan and exscan by recursive doubling (Hillis, Steele: Data parallel algorithms, 1986)."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.reduction cimport merge
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_receive, schedule_reduce, schedule_round, schedule_send,
    schedule_take,
)


cdef void build_scan(Schedule *schedule, const void *data, void *into, int64_t count,
                     int64_t unit, bint exclusive) noexcept nogil:
    """The sum is that of the ranks with which this one has exchanged so far."""
    cdef int64_t length = count * unit
    cdef int rank = schedule.comm.rank, bit = 1, peer
    cdef bint has_result = not exclusive
    cdef uint8_t *sum = schedule_take(schedule, length)
    cdef uint8_t *coming = schedule_take(schedule, length)
    schedule_copy(schedule, data, sum, length)
    if not exclusive and data != into:
        schedule_copy(schedule, data, into, length)
    while bit < schedule.comm.size:
        peer = rank ^ bit
        bit *= 2
        if peer >= schedule.comm.size:
            continue
        schedule_send(schedule, peer, sum, length)
        schedule_receive(schedule, peer, coming, length)
        schedule_round(schedule)
        if peer < rank and has_result:
            schedule_reduce(schedule, coming, into, count)
        elif peer < rank:
            schedule_copy(schedule, coming, into, length)
            has_result = True
        merge(schedule, &sum, &coming, count, peer < rank)
