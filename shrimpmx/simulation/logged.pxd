"""A CPU that logs which process has it."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.perf cimport SwitchLog
from shrimpmx.simulation.sleeping cimport SleepingCpu


cdef class LoggedCpu(SleepingCpu):
    cdef SwitchLog log               # None: it logs nothing
    cdef uint32_t place, holder      # in the log; which process has it, or will from then on
    cdef int64_t from_ns             # NEVER_NS: it has it

    # The task that runs is of that process.
    cdef void gets(self, uint32_t process, int64_t now_ns) noexcept
    # It has slept or moved: when its last call is over, no task has the CPU.
    cdef void leaves(self, int64_t now_ns) noexcept
    # What has just run there makes a call, which takes so long.
    cdef void calls(self, int64_t now_ns, int64_t call_ns) noexcept
    cpdef void settle(self, int64_t now_ns) noexcept
