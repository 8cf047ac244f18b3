"""Scan, as steps of a schedule."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.schedule cimport Schedule

# `exclusive` leaves out the rank's own. `data` is left as it is; `into` may be the same.
cdef void build_scan(Schedule *schedule, const void *data, void *into, int64_t count,
                     int64_t unit, bint exclusive) noexcept nogil
