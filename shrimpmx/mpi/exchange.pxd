"""Collectives that move data, as steps of a schedule. Lengths and offsets are bytes."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.parts cimport Parts
from shrimpmx.mpi.schedule cimport Schedule

# To all that messages may go to.
cdef void send_to_all(Schedule *schedule, const void *data, int64_t length) noexcept nogil
# Dissemination (Hensgen, Finkel, Manber 1988).
cdef void build_barrier(Schedule *schedule) noexcept nogil
# A binomial tree (Thakur, Rabenseifner, Gropp 2005, 4.2).
cdef void build_broadcast(Schedule *schedule, void *data, int64_t length, int root) noexcept nogil
# Every rank to the root. `own`: NULL if it is in place.
cdef void build_gather(Schedule *schedule, const void *own, int64_t length, const Parts *parts,
                       int root) noexcept nogil
# The root to every rank. `own`: NULL if it is in place.
cdef void build_scatter(Schedule *schedule, const Parts *parts, void *own, int64_t length,
                        int root) noexcept nogil
# A ring (Thakur and others, 4.1). `own`: NULL if it is in place.
cdef void build_allgather(Schedule *schedule, const void *own, int64_t length,
                          const Parts *parts) noexcept nogil
# All messages at once.
cdef void build_alltoall(Schedule *schedule, const Parts *sent,
                         const Parts *received) noexcept nogil
