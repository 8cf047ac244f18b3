"""Which algorithm a collective takes: the table in selection.pyx says so."""

from libc.stdint cimport int64_t

cdef enum Collective:
    COLLECTIVE_BCAST
    COLLECTIVE_GATHER
    COLLECTIVE_SCATTER
    COLLECTIVE_ALLGATHER
    COLLECTIVE_ALLTOALL
    COLLECTIVE_REDUCE
    COLLECTIVE_ALLREDUCE
    COLLECTIVE_REDUCE_SCATTER
    COLLECTIVES

cdef enum Algorithm:
    ALGORITHM_ALL_AT_ONCE
    ALGORITHM_BINOMIAL
    ALGORITHM_BRUCK
    ALGORITHM_LINEAR
    ALGORITHM_PAIRWISE
    ALGORITHM_RABENSEIFNER
    ALGORITHM_RECURSIVE_DOUBLING
    ALGORITHM_RECURSIVE_HALVING
    ALGORITHM_RING
    ALGORITHM_TREE
    ALGORITHM_VAN_DE_GEIJN

# What a call has, and an algorithm may need.
cdef enum:
    EVEN = 1                 # the parts of all ranks have one length
    COMMUTES = 2             # the operation does
    POWER_OF_TWO = 4         # the number of ranks is one

# The same on all ranks, which therefore must give the same arguments. `has`: of EVEN and COMMUTES.
cdef Algorithm selected(Collective collective, int64_t length, int ranks, int has) noexcept nogil
