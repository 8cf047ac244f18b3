"""Collectives that move data: barrier, broadcast, gather, scatter, allgather, alltoall."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.schedule cimport Parts, Schedule

# -- Barrier, and a message to all, as steps of a schedule.

# To all that messages may go to.
cdef void send_to_all(Schedule *schedule, const void *data, int64_t length) noexcept nogil
# Dissemination (Hensgen, Finkel, Manber 1988).
cdef void build_barrier(Schedule *schedule) noexcept nogil


# -- Broadcast, as steps of a schedule.

cdef void build_broadcast(Schedule *schedule, void *data, int64_t length, int root) noexcept nogil


# -- Gather and scatter, as steps of a schedule.

# `parts` are the root's alone. `own`: NULL if it is in place. `even`: the parts of all ranks have
# one length, which all of them know.
cdef void build_gather(Schedule *schedule, const void *own, int64_t length, const Parts *parts,
                       int root, bint even) noexcept nogil
cdef void build_scatter(Schedule *schedule, const Parts *parts, void *own, int64_t length,
                        int root, bint even) noexcept nogil


# -- Allgather, as steps of a schedule.

# `own`: NULL if it is in place.
cdef void build_allgather(Schedule *schedule, const void *own, int64_t length,
                          const Parts *parts) noexcept nogil
# Of parts that are in place.
cdef void allgather_ring(Schedule *schedule, const Parts *parts) noexcept nogil


# -- Alltoall, as steps of a schedule.

# `even`: all parts of all ranks have one length.
cdef void build_alltoall(Schedule *schedule, const Parts *sent, const Parts *received,
                         bint even) noexcept nogil
