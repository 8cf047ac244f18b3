"""Reduce and allreduce, as steps of a schedule, which has the operation and the datatype.

`data` has `count` elements of `unit` bytes and is left as it is; `into` may be the same.
"""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.schedule cimport Schedule

# `into` is the root's alone.
cdef void build_reduce(Schedule *schedule, const void *data, void *into, int64_t count,
                       int64_t unit, int root) noexcept nogil
cdef void build_allreduce(Schedule *schedule, const void *data, void *into, int64_t count,
                          int64_t unit) noexcept nogil
# The algorithms' condition of an operation: COMMUTES or 0.
cdef int has_of(const Schedule *schedule) noexcept nogil
# What comes is reduced into the sum; the two change places if it stands behind it.
cdef void merge(Schedule *schedule, uint8_t **sum, uint8_t **coming, int64_t count,
                bint in_front) noexcept nogil
