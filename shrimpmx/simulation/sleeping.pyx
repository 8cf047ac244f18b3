"""A CPU that sleeps when it has nothing to do, alone or with others, and how it is woken.

Cores may share what is switched off while they sleep, as those of the multiqueue paper's dual-core
dies (4.3): then they sleep together, or not at all.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.random cimport random_bits, random_state
from shrimpmx.simulation.agents cimport DRAWN_INTERRUPTS, DRAWN_WAKE_UPS, drawn_for

from shrimpmx.native.drawing import seed_of


cdef wake_ups wake_ups_of(model) except *:
    cdef wake_ups found
    found.count, found.ratios = 0, 0
    for ratio in model.wake_jitter[:RATIOS_MAX]:
        found.ratio[found.ratios] = ratio
        found.ratios += 1
    depths = model.idle_states()
    if any(exit_ns for _, exit_ns in depths):
        for after_ns, exit_ns in depths[:IDLE_STATES_MAX]:
            found.state[found.count] = idle_state(after_ns, exit_ns)
            found.count += 1
    return found


cdef class SleepingCpu(HandlerCpu):
    """Base of the emulated CPUs; a subclass says what tasks it has."""

    def __cinit__(self, *_arguments):
        self.others, self.ratio = [], 1.0

    cdef bint has_tasks(self) noexcept:
        return False

    cdef int draw_from(self, seed, uint32_t number) except -1:
        if self.wakes.ratios < 2:
            return 0  # one ratio is not drawn
        self.random[<int>DRAWN_INTERRUPTS] = random_state(seed_of("interrupts", seed, number))
        self.random[<int>DRAWN_WAKE_UPS] = random_state(seed_of("wake-ups", seed, number))
        return 0

    cdef int sleep_with(self, SleepingCpu other) except -1:
        self.others.append(other)
        other.others.append(self)
        return 0

    cdef bint is_idle(self, int64_t now_ns) noexcept:
        return now_ns >= self.handling_until_ns and not self.has_tasks()

    cdef int64_t idle_ns(self, int64_t now_ns) noexcept:
        return now_ns - max(self.left_ns, self.handling_until_ns) if self.is_idle(now_ns) else 0

    cdef int64_t wake_up_ns(self, int64_t now_ns) noexcept:
        cdef SleepingCpu other
        cdef int64_t idle_ns, exit_ns = 0
        cdef int depth
        if self.wakes.count == 0:
            return 0
        idle_ns = self.idle_ns(now_ns)
        for other in self.others:
            idle_ns = min(idle_ns, other.idle_ns(now_ns))
        for depth in range(self.wakes.count):
            if idle_ns > self.wakes.state[depth].after_ns:
                exit_ns = self.wakes.state[depth].exit_ns
        return <int64_t>(exit_ns * self.ratio)

    cdef int64_t drawn_ns(self, int64_t cost_ns, drawn_for purpose) noexcept:
        cdef uint64_t drawn = random_bits(&self.random[<int>purpose]) >> 32
        self.ratio = self.wakes.ratio[drawn % <uint64_t>self.wakes.ratios]
        return <int64_t>(cost_ns * self.ratio)
