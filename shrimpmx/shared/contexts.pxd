"""Which contexts of MPI's communicators are in use; see contexts.h."""

from libc.stdint cimport uint32_t

from shrimpmx.shared.layout cimport control_header

cdef extern from "shared/contexts.h" nogil:
    enum:
        CONTEXT_SETS
    uint32_t *control_context_uses(control_header *control) noexcept
