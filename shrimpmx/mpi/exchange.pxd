"""Barrier, and a message to all, as steps of a schedule."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.schedule cimport Schedule

# To all that messages may go to.
cdef void send_to_all(Schedule *schedule, const void *data, int64_t length) noexcept nogil
# Dissemination (Hensgen, Finkel, Manber 1988).
cdef void build_barrier(Schedule *schedule) noexcept nogil
