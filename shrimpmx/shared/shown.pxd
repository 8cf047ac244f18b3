"""What a rank that waits for long shows of itself; see shown.h."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from shrimpmx.shared.layout cimport control_header

cdef extern from "shared/shown.h" nogil:
    enum:
        SHOWN_CALL_BYTES
        SHOWN_COMM_BYTES
        SHOWN_MESSAGES
    enum:
        SHOWN_NOTHING
        SHOWN_SEND
        SHOWN_RECEIVE
        SHOWN_COLLECTIVE
    struct shown_message:
        uint32_t kind
        int32_t peer
        int32_t world_peer
        int32_t tag
        uint32_t length
        char comm[SHOWN_COMM_BYTES]
    struct shown_wait:
        uint32_t version
        uint32_t unexpected
        int64_t since_ns
        int64_t waited_ns
        char call[SHOWN_CALL_BYTES]
        uint32_t unacked
        uint32_t resends
        shown_message awaited
        shown_message *oldest
        uint32_t thread
    shown_wait *control_shown(control_header *control, uint32_t runner) noexcept
