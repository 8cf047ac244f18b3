"""Alltoall, as steps of a schedule."""

from shrimpmx.mpi.parts cimport Parts
from shrimpmx.mpi.schedule cimport Schedule

# `even`: all parts of all ranks have one length.
cdef void build_alltoall(Schedule *schedule, const Parts *sent, const Parts *received,
                         bint even) noexcept nogil
