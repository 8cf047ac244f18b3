"""Broadcast (Thakur, Rabenseifner, Gropp 2005, 4.2).

Ranks are counted from the root here.
"""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport MPI_ROOT
from shrimpmx.mpi.allgather cimport allgather_ring
from shrimpmx.mpi.exchange cimport send_to_all
from shrimpmx.mpi.parts cimport Parts
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_receive, schedule_round, schedule_send, schedule_take,
)
from shrimpmx.mpi.selection cimport ALGORITHM_BINOMIAL, COLLECTIVE_BCAST, selected


cdef void build_broadcast(Schedule *schedule, void *data, int64_t length,
                          int root) noexcept nogil:
    if schedule.comm.remote != NULL:
        if root == MPI_ROOT:
            send_to_all(schedule, data, length)
        else:
            schedule_receive(schedule, root, data, length)
    elif selected(COLLECTIVE_BCAST, length, schedule.comm.size, 0) == ALGORITHM_BINOMIAL:
        binomial(schedule, data, length, root)
    else:
        van_de_geijn(schedule, <uint8_t *>data, length, root)


cdef void binomial(Schedule *schedule, void *data, int64_t length, int root) noexcept nogil:
    cdef int size = schedule.comm.size, bit = 1
    cdef int rank = (schedule.comm.rank - root + size) % size
    # It comes from the rank without its lowest bit.
    while bit < size and not rank & bit:
        bit *= 2
    if rank != 0:
        schedule_receive(schedule, (rank - bit + root) % size, data, length)
        schedule_round(schedule)
    bit //= 2
    while bit > 0:
        if rank + bit < size:
            schedule_send(schedule, (rank + bit + root) % size, data, length)
        bit //= 2


cdef void van_de_geijn(Schedule *schedule, uint8_t *data, int64_t length,
                       int root) noexcept nogil:
    """Each rank gets its block by a binomial tree, and those of all others in a ring."""
    cdef int size = schedule.comm.size, bit = 1, rank
    cdef int own = (schedule.comm.rank - root + size) % size
    cdef int64_t *ends = <int64_t *>schedule_take(schedule, (3 * size + 1) * sizeof(int64_t))
    cdef Parts parts
    if ends == NULL:
        return
    ends[0] = 0
    for rank in range(size):
        ends[rank + 1] = length * (rank + 1) // size
    while bit < size and not own & bit:
        bit *= 2
    if own != 0:
        schedule_receive(schedule, (own - bit + root) % size, data + ends[own],
                         ends[min(own + bit, size)] - ends[own])
        schedule_round(schedule)
    bit //= 2
    while bit > 0:
        if own + bit < size:
            schedule_send(schedule, (own + bit + root) % size, data + ends[own + bit],
                          ends[min(own + 2 * bit, size)] - ends[own + bit])
        bit //= 2
    schedule_round(schedule)
    parts = Parts(data, 0, ends + size + 1, ends + 2 * size + 1)
    for rank in range(size):
        parts.offsets[(rank + root) % size] = ends[rank]
        parts.lengths[(rank + root) % size] = ends[rank + 1] - ends[rank]
    allgather_ring(schedule, &parts)
