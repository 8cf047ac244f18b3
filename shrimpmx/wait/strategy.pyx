"""Waiting strategies: one interface for ranks and runners.

A strategy waits until `ready(context)` is true, a deadline passes or the run stops. It
keeps the account of its process (struct wait_account): what the waiting cost, in the
terms of the waiting paper, sections 3.2 and 3.3.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.atomics cimport load_relaxed_u32
from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL, NEVER_NS
from shrimpmx.shared.host cimport Host

# Looks between two checks of the stop word and the clock: 16 looks of a few ns each keep a
# check, which touches a shared line and reads the clock, below a tenth of the loop. Under a virtual
# clock neither takes time, and a spin ends exactly at its limit.
cdef uint32_t LOOKS_PER_CHECK = 16

# What the values of WaitResult are called.
RESULTS = {-1: "stopped", 0: "timed out", 1: "ready"}


cdef class Strategy:
    """Base of the waiting strategies; subclasses override the compiled `persist`.

    `sleeps`: waits may arm the wait slot; `stands`: interrupts are enabled from begin() to end(),
    not by each wait.
    """

    sleeps = False
    stands = False

    def __cinit__(self, *args, **kwargs):
        self.name = "none"
        self.failure = None

    @classmethod
    def from_limit(cls, spin_ns):
        """A strategy with this spin limit, ns, if it has one."""
        return cls()

    def __repr__(self) -> str:
        return f"<strategy {self.name}>"

    cdef int begin(self, WaitEnvironment *environment) except -1:
        return 0

    cdef int end(self, WaitEnvironment *environment) except -1:
        return 0

    cdef WaitResult wait(self, WaitEnvironment *environment, ready_function ready,
                         void *context, int64_t deadline_ns) noexcept nogil:
        environment.account.waits += 1
        if ready(context):
            environment.account.at_once += 1
            return WAIT_READY
        return self.persist(environment, ready, context, deadline_ns)

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        return WAIT_TIMED_OUT


cdef WaitResult spin_for(WaitEnvironment *environment, ready_function ready, void *context,
                         int64_t spin_ns, int64_t deadline_ns) noexcept nogil:
    if spin_ns <= 0:
        return WAIT_TIMED_OUT
    return spin_until(environment, ready, context,
                      min((<Host>environment.host).now_c() + spin_ns, deadline_ns))


cdef WaitResult spin_until(WaitEnvironment *environment, ready_function ready,
                           void *context, int64_t limit_ns) noexcept nogil:
    cdef int64_t start_ns = (<Host>environment.host).now_c()
    cdef int64_t now_ns = start_ns
    cdef bint is_virtual = (<Host>environment.host).clock.kind == CLOCK_KIND_VIRTUAL
    cdef uint32_t look = 0, looks_per_check = 1 if is_virtual else LOOKS_PER_CHECK
    cdef WaitResult result
    while True:
        if ready(context):
            environment.account.while_spinning += 1
            result = WAIT_READY
            break
        look += 1
        if look % looks_per_check == 0:
            # A stop comes late by at most that many looks, which is harmless.
            if load_relaxed_u32(environment.stop) != 0:
                result = WAIT_STOPPED
                break
            if limit_ns != NEVER_NS:
                now_ns = (<Host>environment.host).now_c()
                if now_ns >= limit_ns:
                    result = WAIT_TIMED_OUT
                    break
        if not (<Host>environment.host).pause(limit_ns):
            result = WAIT_STOPPED
            break
    if result == WAIT_READY or limit_ns == NEVER_NS:
        now_ns = (<Host>environment.host).now_c()
    environment.account.spin_ns += now_ns - start_ns
    return result
