"""MX's match bits of MPI's messages: one of heads of long messages, 21 of
the context, 14 of the source's rank, 28 of the tag."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mpi.abi cimport MPI_ANY_SOURCE, MPI_ANY_TAG

cdef enum:
    TAG_BITS = 28
    TAG_MAX = 0x0FFFFFFF
    TAG_PERSISTENT = 0x08000000  # a bit of those of persistent collectives
    SOURCE_MAX = 0x3FFF
    CONTEXT_SHIFT = 42
    CONTEXT_MAX = 0x1FFFFF
    MATCH_LONG = 0x8000000000000000  # that bit; no mask of a receive has it


cdef inline uint64_t match_bits(uint32_t context, int source, uint32_t tag) noexcept nogil:
    return (<uint64_t>context << CONTEXT_SHIFT | <uint64_t>(source & SOURCE_MAX) << TAG_BITS
            | (tag & TAG_MAX))


cdef inline uint64_t match_mask(int source, int tag) noexcept nogil:
    """Which bits a receive looks at."""
    cdef uint64_t mask = <uint64_t>CONTEXT_MAX << CONTEXT_SHIFT
    if source != MPI_ANY_SOURCE:
        mask |= <uint64_t>SOURCE_MAX << TAG_BITS
    return mask if tag == MPI_ANY_TAG else mask | TAG_MAX


cdef inline int match_source(uint64_t match) noexcept nogil:
    return <int>(match >> TAG_BITS & SOURCE_MAX)


cdef inline int match_tag(uint64_t match) noexcept nogil:
    return <int>(match & TAG_MAX)
