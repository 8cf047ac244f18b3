"""Gather and scatter, as steps of a schedule."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.parts cimport Parts
from shrimpmx.mpi.schedule cimport Schedule

# `parts` are the root's alone. `own`: NULL if it is in place. `even`: the parts of all ranks have
# one length, which all of them know.
cdef void build_gather(Schedule *schedule, const void *own, int64_t length, const Parts *parts,
                       int root, bint even) noexcept nogil
cdef void build_scatter(Schedule *schedule, const Parts *parts, void *own, int64_t length,
                        int root, bint even) noexcept nogil
