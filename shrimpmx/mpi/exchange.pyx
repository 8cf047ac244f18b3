"""Barrier, broadcast, gather, scatter, allgather and alltoall.

On an inter-communicator data go from each group to the other one (MPI 3.1, 5.2.2), straight from
rank to rank.
"""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport MPI_ROOT
from shrimpmx.mpi.collective cimport is_root
from shrimpmx.mpi.parts cimport Parts, part_at, part_bytes
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_keep, schedule_receive, schedule_round, schedule_send,
)


cdef void send_to_all(Schedule *schedule, const void *data, int64_t length) noexcept nogil:
    cdef int peer
    for peer in range(schedule.comm.peers):
        schedule_send(schedule, peer, data, length)


cdef void build_barrier(Schedule *schedule) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, distance = 1
    if schedule.comm.remote != NULL:
        send_to_all(schedule, NULL, 0)
        for rank in range(schedule.comm.peers):
            schedule_receive(schedule, rank, NULL, 0)
        return
    while distance < size:
        schedule_send(schedule, (rank + distance) % size, NULL, 0)
        schedule_receive(schedule, (rank - distance + size) % size, NULL, 0)
        schedule_round(schedule)
        distance *= 2


cdef void build_broadcast(Schedule *schedule, void *data, int64_t length,
                          int root) noexcept nogil:
    cdef int size = schedule.comm.size, bit = 1
    cdef int rank = (schedule.comm.rank - root + size) % size  # the root is 0
    if schedule.comm.remote != NULL:
        if root == MPI_ROOT:
            send_to_all(schedule, data, length)
        else:
            schedule_receive(schedule, root, data, length)
        return
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


cdef void build_gather(Schedule *schedule, const void *own, int64_t length, const Parts *parts,
                       int root) noexcept nogil:
    cdef int rank
    if not is_root(schedule.comm, root):
        schedule_send(schedule, root, own, length)
        return
    if own != NULL:
        schedule_keep(schedule, own, length, part_at(parts, root), part_bytes(parts, root))
    for rank in range(schedule.comm.peers):
        if rank != root:
            schedule_receive(schedule, rank, part_at(parts, rank), part_bytes(parts, rank))


cdef void build_scatter(Schedule *schedule, const Parts *parts, void *own, int64_t length,
                        int root) noexcept nogil:
    cdef int rank
    if not is_root(schedule.comm, root):
        schedule_receive(schedule, root, own, length)
        return
    if own != NULL:
        schedule_keep(schedule, part_at(parts, root), part_bytes(parts, root), own, length)
    for rank in range(schedule.comm.peers):
        if rank != root:
            schedule_send(schedule, rank, part_at(parts, rank), part_bytes(parts, rank))


cdef void build_allgather(Schedule *schedule, const void *own, int64_t length,
                          const Parts *parts) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, step, coming
    if schedule.comm.remote != NULL:
        send_to_all(schedule, own, length)
        for rank in range(schedule.comm.peers):
            schedule_receive(schedule, rank, part_at(parts, rank), part_bytes(parts, rank))
        return
    if own != NULL:
        schedule_keep(schedule, own, length, part_at(parts, rank), part_bytes(parts, rank))
    for step in range(size - 1):
        coming = (rank - step - 1 + size) % size
        schedule_send(schedule, (rank + 1) % size, part_at(parts, (coming + 1) % size),
                      part_bytes(parts, (coming + 1) % size))
        schedule_receive(schedule, (rank - 1 + size) % size, part_at(parts, coming),
                         part_bytes(parts, coming))
        schedule_round(schedule)


cdef void build_alltoall(Schedule *schedule, const Parts *sent,
                         const Parts *received) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.peers, first = 0
    cdef int step, source, target
    if schedule.comm.remote == NULL:
        first = 1
        schedule_keep(schedule, part_at(sent, rank), part_bytes(sent, rank),
                      part_at(received, rank), part_bytes(received, rank))
    # Each rank begins with its own neighbour.
    for step in range(first, size):
        source = (rank - step + size) % size
        schedule_receive(schedule, source, part_at(received, source),
                         part_bytes(received, source))
    for step in range(first, size):
        target = (rank + step) % size
        schedule_send(schedule, target, part_at(sent, target), part_bytes(sent, target))
