"""Algorithms of collectives that reduce: trees, recursive halving and doubling, prefixes."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport Counts
from shrimpmx.mpi.schedule cimport Schedule

# -- Recursive halving: ranks share out a reduction, each of them a block of the vector.

cdef struct Halving:
    Schedule *schedule
    uint8_t *sum             # the vector: what is reduced of it so far
    uint8_t *coming          # room for what comes
    int64_t unit             # bytes of an element
    int64_t *starts          # of blocks, in elements, by place; and the end
    int power                # of two: how many places there are
    int rest                 # ranks beyond them
    int root                 # a rank that has a place in any case, or NO_ROOT
    int place                # of this rank; NO_PLACE: it has handed its vector on

cdef enum:
    NO_ROOT = -1
    NO_PLACE = -1

# Takes memory for what comes, the starts, which the caller sets, and the sum unless it is given.
# False: there is none.
cdef bint halving_begin(Halving *halving, Schedule *schedule, void *sum, int64_t count,
                        int64_t unit, int root) noexcept nogil
# Reduces `data`: afterwards this rank's block of the sum is done, if it has a place.
cdef void halving_reduce(Halving *halving, const void *data) noexcept nogil
# The blocks of all, to all that have a place, or to the root.
cdef void halving_allgather(Halving *halving) noexcept nogil
cdef void halving_gather(Halving *halving) noexcept nogil
# The rank at a place, and the one that has handed its vector to it; NO_PLACE: none has.
cdef int halving_rank(const Halving *halving, int place) noexcept nogil
cdef int halving_partner(const Halving *halving, int place) noexcept nogil


# -- Reduce and allreduce, as steps of a schedule, which has the operation and the datatype.
#
# `data` has `count` elements of `unit` bytes and is left as it is; `into` may be the same.

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


# -- Reduce-scatter, as steps of a schedule.

# `data`, which is left as it is, has elements of `unit` bytes: `count` for each rank, or as many as
# `counts` has. This rank's go to `into`, which may be `data`.
cdef void build_reduce_scatter(Schedule *schedule, const void *data, void *into, int64_t count,
                               Counts counts, int64_t unit) noexcept nogil


# -- Scan, as steps of a schedule.

# `exclusive` leaves out the rank's own. `data` is left as it is; `into` may be the same.
cdef void build_scan(Schedule *schedule, const void *data, void *into, int64_t count,
                     int64_t unit, bint exclusive) noexcept nogil
