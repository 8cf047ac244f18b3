"""Reduce-scatter (Thakur, Rabenseifner, Gropp 2005, 4.3)."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.halving cimport (
    NO_PLACE, NO_ROOT, Halving, halving_begin, halving_partner, halving_reduce,
)
from shrimpmx.mpi.reduction cimport build_allreduce, build_reduce, has_of
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_receive, schedule_reduce, schedule_round, schedule_send,
    schedule_take,
)
from shrimpmx.mpi.selection cimport (
    ALGORITHM_PAIRWISE, ALGORITHM_RECURSIVE_HALVING, COLLECTIVE_REDUCE_SCATTER, Algorithm,
    selected,
)


cdef void build_reduce_scatter(Schedule *schedule, const void *data, void *into, int64_t count,
                               const int *counts, int64_t unit) noexcept nogil:
    cdef int size = schedule.comm.size, rank
    cdef int64_t *ends = <int64_t *>schedule_take(schedule, (size + 1) * sizeof(int64_t))
    cdef Algorithm algorithm
    if ends == NULL:
        return
    ends[0] = 0
    for rank in range(size):
        ends[rank + 1] = ends[rank] + (count if counts == NULL else counts[rank])
    if schedule.comm.remote != NULL:
        from_peers(schedule, data, into, ends, unit)
        return
    algorithm = selected(COLLECTIVE_REDUCE_SCATTER, ends[size] * unit, size, has_of(schedule))
    if algorithm == ALGORITHM_PAIRWISE:
        pairwise(schedule, <const uint8_t *>data, into, ends, unit)
    elif algorithm == ALGORITHM_RECURSIVE_HALVING:
        recursive_halving(schedule, data, into, ends, unit)
    else:
        tree(schedule, data, into, ends, unit)


cdef void from_peers(Schedule *schedule, const void *data, void *into, const int64_t *ends,
                     int64_t unit) noexcept nogil:
    """Each rank of a group takes its part of the other group's sum."""
    cdef int64_t start = ends[schedule.comm.rank] * unit
    cdef uint8_t *sum = schedule_take(schedule, ends[schedule.comm.size] * unit)
    build_allreduce(schedule, data, sum, ends[schedule.comm.size], unit)
    schedule_copy(schedule, sum + start, into, ends[schedule.comm.rank + 1] * unit - start)


cdef void tree(Schedule *schedule, const void *data, void *into, const int64_t *ends,
               int64_t unit) noexcept nogil:
    """To rank 0, which sends each rank its part."""
    cdef int rank, size = schedule.comm.size, own = schedule.comm.rank
    cdef uint8_t *sum = NULL
    if own == 0:
        sum = schedule_take(schedule, ends[size] * unit)
    build_reduce(schedule, data, sum, ends[size], unit, 0)
    schedule_round(schedule)
    if own != 0:
        schedule_receive(schedule, 0, into, (ends[own + 1] - ends[own]) * unit)
        return
    schedule_copy(schedule, sum, into, ends[1] * unit)
    for rank in range(1, size):
        schedule_send(schedule, rank, sum + ends[rank] * unit,
                      (ends[rank + 1] - ends[rank]) * unit)


cdef void recursive_halving(Schedule *schedule, const void *data, void *into,
                            const int64_t *ends, int64_t unit) noexcept nogil:
    """A rank at a place has the block of the one that handed its vector to it as well."""
    cdef Halving halving
    cdef int place, partner, own = schedule.comm.rank
    cdef int64_t length = (ends[own + 1] - ends[own]) * unit
    if not halving_begin(&halving, schedule, NULL, ends[schedule.comm.size], unit, NO_ROOT):
        return
    for place in range(halving.power + 1):
        halving.starts[place] = ends[2 * place if place < halving.rest else place + halving.rest]
    halving_reduce(&halving, data)
    if halving.place == NO_PLACE:
        schedule_round(schedule)
        schedule_receive(schedule, own + 1, into, length)
        return
    schedule_copy(schedule, halving.sum + ends[own] * unit, into, length)
    partner = halving_partner(&halving, halving.place)
    if partner != NO_PLACE:
        schedule_send(schedule, partner, halving.sum + ends[partner] * unit,
                      (ends[partner + 1] - ends[partner]) * unit)


cdef void pairwise(Schedule *schedule, const uint8_t *data, void *into, const int64_t *ends,
                   int64_t unit) noexcept nogil:
    """Each rank sends every other one its part, one at a time."""
    cdef int size = schedule.comm.size, own = schedule.comm.rank, step, source, target
    cdef int64_t count = ends[own + 1] - ends[own]
    cdef uint8_t *sum = schedule_take(schedule, count * unit)
    cdef uint8_t *coming = schedule_take(schedule, count * unit)
    schedule_copy(schedule, data + ends[own] * unit, sum, count * unit)
    for step in range(1, size):
        source = (own - step + size) % size
        target = (own + step) % size
        schedule_send(schedule, target, data + ends[target] * unit,
                      (ends[target + 1] - ends[target]) * unit)
        schedule_receive(schedule, source, coming, count * unit)
        schedule_round(schedule)
        if count > 0:
            schedule_reduce(schedule, coming, sum, count)
    schedule_copy(schedule, sum, into, count * unit)
