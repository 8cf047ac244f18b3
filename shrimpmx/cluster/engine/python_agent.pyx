"""An agent written in Python: the door by which tests drive a runner step by step."""

from libc.stdint cimport int64_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.agent cimport Agent


cdef class PythonAgent(Agent):
    """Steps by calling `function(now_ns)`, which takes the GIL.

    It returns how much it did and when it next wants to run (ns, None: on a wake-up). Its
    first exception is the agent's failure; after that it is not called any more.
    """

    cdef object function

    def __init__(self, name, function not None):
        self.name = name
        self.function = function

    cdef int step(self, int64_t now_ns) noexcept nogil:
        with gil:
            if self.failure is not None:
                return 0
            try:
                done, due_ns = self.function(now_ns)
                self.next_due_ns = NEVER_NS if due_ns is None else <int64_t>due_ns
                return done
            except BaseException as error:
                self.failure = error
                return 0
