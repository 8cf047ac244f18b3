"""What is no family of its own: barrier, and a message to all.

On an inter-communicator data go from each group to the other one (MPI 3.1, 5.2.2), straight from
rank to rank.
"""

from libc.stdint cimport int64_t

from shrimpmx.mpi.schedule cimport Schedule, schedule_receive, schedule_round, schedule_send


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
