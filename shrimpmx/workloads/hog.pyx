"""Companions that only burn CPU: the "CPU hog" of the waiting paper, section 5.2, and a spinner."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport load_relaxed_u64
from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport COUNTER_loops

# Loads per step: some ten microseconds, so that a stop is seen soon. A spinner's are more, some
# forty: that long it may keep the CPU from another, but a wake-up waits while it yields (ours).
cdef uint32_t LOADS_PER_STEP = 16384
cdef uint32_t SPINNER_LOADS = 65536
# Under a virtual clock, which does not move by itself: about as many as here (ours).
cdef uint32_t LOADS_PER_VIRTUAL_NS = 2


cdef class Hog(Agent):
    """Spins in a tight loop for as long as the run lasts; counts its loops.

    `agent`: its record in the control segment.
    """

    def __init__(self, Control control not None, uint32_t agent):
        info = control.agent_info(agent)
        self.name = info["name"]
        self.record = control.agent(agent)
        self.counters = <uint64_t *>self.record.counters
        self.virtual = control.clock().kind == CLOCK_KIND_VIRTUAL

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef bint looped = self.burn(now_ns, LOADS_PER_STEP)
        if not self.virtual:
            self.next_due_ns = now_ns
        return looped

    cdef bint burn(self, int64_t now_ns, uint32_t loads) noexcept nogil:
        cdef uint32_t _load
        if now_ns < self.busy_until_ns:
            return False
        for _load in range(loads):
            # A load that the compiler may not leave out.
            load_relaxed_u64(&self.counters[COUNTER_loops])
        self.counters[COUNTER_loops] += 1
        if self.virtual:
            self.next_due_ns = self.busy_until_ns = now_ns + loads // LOADS_PER_VIRTUAL_NS
        return True


cdef class Spinner(Hog):
    """Keeps a core from sleeping: after each loop it has nothing to do, so that its process waits.

    It belongs into the idle class, and that is not enough by itself: when a real-time process has
    woken another and sleeps, Linux (EEVDF) may take the spinner first, which then keeps the CPU
    until the next tick (measured: a fifth of the message rate was left). So the strategy to wait by
    is `sched`, which yields.
    """

    cdef int step(self, int64_t now_ns) noexcept nogil:
        self.burn(now_ns, SPINNER_LOADS)
        return 0
