"""The frames that pass the ends of links: one ring of the last ones per end; see capture.h."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "native/capture.h" nogil:
    enum:
        CAPTURE_RECEIVED
        CAPTURE_BAD_FCS
        CAPTURE_LOST
        CAPTURE_CORRUPTED
        CAPTURE_DUPLICATED
        CAPTURE_HELD
    cdef struct captured_frame:
        int64_t time_ns
        uint32_t length
        uint32_t kept
        uint32_t number
        uint32_t flags
        uint32_t dropped
        uint8_t bytes[1]
    cdef struct capture_ring:
        uint64_t next
        uint32_t frames
        uint32_t snap_bytes
        uint64_t stride
    cdef struct capture_header:
        uint32_t ends_count
        uint32_t frames
        uint32_t snap_bytes
        uint64_t stride
    capture_ring *capture_ring_at(capture_header *capture, uint32_t end) noexcept
    captured_frame *capture_frame_at(capture_ring *ring, uint64_t index) noexcept
    uint32_t capture_write(capture_ring *ring, int64_t time_ns, uint32_t flags,
                           const uint8_t *frame, uint32_t length) noexcept
    void capture_fault(capture_ring *ring, uint32_t number, uint32_t flag) noexcept
    void capture_drop(capture_ring *ring, uint32_t number, uint32_t kind,
                      uint32_t counter) noexcept


cdef class Capture:
    cdef capture_header *header
    cdef readonly object segment

    cdef capture_ring *ring(self, uint32_t end) noexcept nogil
    cdef capture_ring *checked_ring(self, uint32_t end) except NULL
    cdef object shown(self, uint32_t end, const captured_frame *frame)
