"""An agent: a step machine that one runner drives."""

from libc.stdint cimport int64_t, uint64_t

from shrimpmx.native.trace cimport trace_ring
from shrimpmx.shared.layout cimport agent_record


cdef class Agent:
    cdef public object name
    cdef agent_record *record        # its counters, in the control segment
    cdef uint64_t *counters          # record.counters
    cdef trace_ring *trace           # where it records what it does; NULL: tracing is off
    cdef object tracing              # the Trace that the ring belongs to
    cdef object capturing            # the Capture that it keeps frames in; None: there is none
    cdef int64_t next_due_ns         # when it next wants to run by itself; NEVER_NS: on a wake
    cdef int64_t busy_until_ns       # it works, on its CPU, until then; in the past: it does not
    cdef bint keeps_waiting          # another process, on the same CPU, has work from it to do
    # The runner gives up its real-time priority while this is true, and takes it back after.
    cdef readonly bint wants_demotion
    cdef readonly object failure     # exception raised by user code inside a step, or None

    cdef int step(self, int64_t now_ns) noexcept nogil
