"""Broadcast, as steps of a schedule."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.schedule cimport Schedule

cdef void build_broadcast(Schedule *schedule, void *data, int64_t length, int root) noexcept nogil
