"""What a run records: what its agents did, and the frames on its links; see trace.h."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

# -- The binary trace: one ring of the last records per agent; see trace.h.

cdef extern from "native/trace.h" nogil:
    enum:
        TRACE_tx_frame
        TRACE_rx_frame
        TRACE_dma_complete
        TRACE_drop
        TRACE_irq_wished
        TRACE_irq_raised
        TRACE_irq_held_back
        TRACE_irq_absorbed
        TRACE_irq_deferred
        TRACE_irq_timer
        TRACE_interrupt
        TRACE_poll_begin
        TRACE_poll_end
        TRACE_event
        TRACE_rank_wake
        TRACE_isend
        TRACE_isend_throttled
        TRACE_resend
        TRACE_acked
        TRACE_ack_sent
        TRACE_unexpected
        TRACE_received
        TRACE_rndv_matched
        TRACE_pull_start
        TRACE_pull_request
        TRACE_pull_again
        TRACE_block_done
        TRACE_pull_done
        TRACE_notified
        TRACE_wait_begin
        TRACE_wait_end
        TRACE_sleep_begin
        TRACE_sleep_end
        TRACE_KINDS_COUNT
    cdef struct trace_entry:
        int64_t time_ns
        uint32_t agent
        uint32_t kind
        uint64_t a
        uint64_t b
    cdef struct trace_ring:
        uint64_t next
        uint32_t agent
        uint32_t entries
        trace_entry slots[1]
    cdef struct trace_header:
        uint32_t rings_count
        uint32_t entries
        uint64_t stride
    trace_ring *trace_ring_at(trace_header *trace, uint32_t index) noexcept
    void trace_record(trace_ring *ring, int64_t time_ns, uint32_t kind, uint64_t a,
                      uint64_t b) noexcept
    uint64_t trace_whole_from(const trace_ring *ring) noexcept
    uint64_t message_word(uint32_t node, uint32_t endpoint, uint32_t seqnum) noexcept
    const char *trace_kind_text(uint32_t kind, uint32_t which) noexcept


cdef class Trace:
    cdef trace_header *header
    cdef readonly object segment

    # The ring of an agent; hand NULL to trace_record() where there is no Trace.
    cdef trace_ring *ring(self, uint32_t agent) noexcept nogil
    cdef trace_ring *checked_ring(self, uint32_t agent) except NULL


# -- The frames that pass the ends of links: one ring of the last ones per end; see trace.h.

cdef extern from "native/trace.h" nogil:
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
