"""What MPI programs keep behind the agents of the control segment; see section.h."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport control_header, wait_account

# -- What an MPI program took, and what agents did meanwhile; see section.h.

cdef extern from "shared/section.h" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    struct run_section:
        pthread_mutex_t lock
        uint32_t ranks
        uint32_t begun
        uint32_t met
        uint32_t marked
    struct process_section:
        uint32_t working
        uint32_t within
        uint32_t marked
        uint32_t silent
        int64_t began_ns
        int64_t elapsed_ns
        int64_t user_ns
        int64_t system_ns
        int64_t voluntary_switches
        int64_t involuntary_switches
        int64_t minor_faults
        int64_t major_faults
        int64_t waited_ns
        int64_t used_ns
        int64_t agents_ns
        uint32_t communicators
        uint32_t spawned
        uint32_t answers
        wait_account account
    run_section *control_run_section(control_header *control) noexcept
    process_section *control_process_section(control_header *control, uint32_t runner) noexcept
    uint64_t *control_section_counters(control_header *control, uint32_t agent) noexcept


# -- What a rank that waits for long shows of itself; see section.h.

cdef extern from "shared/section.h" nogil:
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
        uint64_t length
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


# -- Which contexts of MPI's communicators are in use, and the files that have them; see section.h.

cdef extern from "shared/section.h" nogil:
    enum:
        CONTEXT_SETS
    uint64_t *control_file_pointers(control_header *control) noexcept
    uint32_t *control_context_uses(control_header *control) noexcept
