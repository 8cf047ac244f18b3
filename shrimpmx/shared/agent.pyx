"""An agent: a step machine that one runner drives.

`step(now_ns)` does what is due without blocking and returns how much it did. It
never reads the clock, never sleeps and never forks, so that one test process can
drive the same compiled agents under a virtual clock, in any interleaving.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.trace cimport Capture, Trace


cdef class Agent:
    """Base of every agent; subclasses override the compiled `step`."""

    def __cinit__(self, *args, **kwargs):
        self.next_due_ns = NEVER_NS
        self.busy_until_ns = 0
        self.keeps_waiting = False
        self.wants_demotion = False
        self.failure = None
        self.trace = NULL

    cdef int step(self, int64_t now_ns) noexcept nogil:
        return 0

    def step_at(self, int64_t now_ns) -> int:
        """Run one step at `now_ns` (ns) and return how many things it did; for tests."""
        cdef int done
        with nogil:
            done = self.step(now_ns)
        if self.failure is not None:
            raise self.failure
        return done

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what it does, in the ring of agent `number`."""
        self.trace = trace.checked_ring(number)
        self.tracing = trace

    def use_capture(self, Capture capture not None, uint32_t end) -> None:
        """Keep from now on the frames that pass its link's end, number `end`, or note there which
        of them it drops; nothing if it has to do with no frames.
        """

    @property
    def keeps_others_waiting(self):
        """Whether a process on its CPU has got work from it that is not done; for tests."""
        return self.keeps_waiting

    @property
    def due_ns(self):
        """When the agent next wants to run by itself, ns; None if only on a wake-up."""
        return None if self.next_due_ns == NEVER_NS else self.next_due_ns
