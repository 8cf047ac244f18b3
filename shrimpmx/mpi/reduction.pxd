"""Collectives that reduce, as steps of a schedule, which has the operation and the datatype.

`data` has `count` elements of `unit` bytes and is left as it is; `into` may be the same.
"""

from libc.stdint cimport int64_t

from shrimpmx.mpi.schedule cimport Schedule

# To the root: a binomial tree (Thakur and others, 4.4), or in the order of ranks if the operation
# does not commute. `into` is the root's alone.
cdef void build_reduce(Schedule *schedule, const void *data, void *into, int64_t count,
                       int64_t unit, int root) noexcept nogil
# Recursive doubling (Thakur and others, 4.5); by way of rank 0 if the operation does not commute.
cdef void build_allreduce(Schedule *schedule, const void *data, void *into, int64_t count,
                          int64_t unit) noexcept nogil
# From rank to rank; `exclusive` leaves out the rank's own.
cdef void build_scan(Schedule *schedule, const void *data, void *into, int64_t count,
                     int64_t unit, bint exclusive) noexcept nogil
