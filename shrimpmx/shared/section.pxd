"""What an MPI program took, and what agents did meanwhile; see section.h."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport control_header, wait_account

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
        wait_account account
    run_section *control_run_section(control_header *control) noexcept
    process_section *control_process_section(control_header *control, uint32_t runner) noexcept
    uint64_t *control_section_counters(control_header *control, uint32_t agent) noexcept
