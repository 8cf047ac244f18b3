"""Reduce-scatter, as steps of a schedule."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.schedule cimport Schedule

# `data`, which is left as it is, has elements of `unit` bytes: `count` for each rank, or as many as
# `counts` has. This rank's go to `into`, which may be `data`.
cdef void build_reduce_scatter(Schedule *schedule, const void *data, void *into, int64_t count,
                               const int *counts, int64_t unit) noexcept nogil
