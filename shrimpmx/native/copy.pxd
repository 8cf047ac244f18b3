"""Copies of large blocks past the caches; see copy.h."""

from libc.stdint cimport uint64_t

cdef extern from "native/copy.h" nogil:
    # As memcpy; for blocks of COPY_STREAMING_BYTES and more.
    void copy_streaming(void *to, const void *source, uint64_t length) noexcept
    enum:
        COPY_STREAMING_BYTES
