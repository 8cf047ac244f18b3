"""Allgather, as steps of a schedule."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.parts cimport Parts
from shrimpmx.mpi.schedule cimport Schedule

# `own`: NULL if it is in place.
cdef void build_allgather(Schedule *schedule, const void *own, int64_t length,
                          const Parts *parts) noexcept nogil
# Of parts that are in place.
cdef void allgather_ring(Schedule *schedule, const Parts *parts) noexcept nogil
