"""A companion that only burns CPU: the "CPU hog" of the waiting paper, section 5.2."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport load_relaxed_u64
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport COUNTER_loops

# Loads per step: some ten microseconds, so that a stop is seen soon (ours).
cdef uint32_t LOADS_PER_STEP = 16384


cdef class Hog(Agent):
    """Spins in a tight loop for as long as the run lasts; counts its loops.

    `agent`: its record in the control segment.
    """

    def __init__(self, Control control not None, uint32_t agent):
        info = control.agent_info(agent)
        self.name = info["name"]
        self.record = control.agent(agent)
        self.counters = <uint64_t *>self.record.counters

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t _load
        for _load in range(LOADS_PER_STEP):
            # A load that the compiler may not leave out.
            load_relaxed_u64(&self.counters[COUNTER_loops])
        self.counters[COUNTER_loops] += 1
        self.next_due_ns = now_ns
        return 1
