"""Sleeping and waking across processes; see futex.h."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "native/futex.h" nogil:
    enum:
        WAIT_SLOT_IDLE
        WAIT_SLOT_BLOCK
        WAIT_SLOT_NOTIFY
        WAIT_SLOT_WORD
    cdef struct wait_slot:
        uint32_t armed
        uint32_t word
        int32_t pid
        uint32_t signal
        uint64_t wakes
        uint64_t notifications
    int futex_wait(uint32_t *word, uint32_t seen, int64_t timeout_ns) noexcept
    int futex_wake(uint32_t *word, int count) noexcept
    int wait_slot_wake(wait_slot *slot) noexcept
    void wait_slot_rouse(wait_slot *slot) noexcept
    void wait_slot_tell(wait_slot *slot) noexcept
    uint32_t wait_slot_arm(wait_slot *slot) noexcept
    void wait_slot_disarm(wait_slot *slot) noexcept
    int wait_slot_sleep(wait_slot *slot, uint32_t seen, int64_t timeout_ns) noexcept
