"""Copies of a few bytes; see copy_short.h."""

from libc.stdint cimport uint64_t

cdef extern from "native/copy_short.h" nogil:
    # As copy_bytes(), for what is most often short.
    void copy_short(void *to, const void *source, uint64_t length) noexcept
