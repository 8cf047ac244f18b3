"""A CPU that logs which process has it, as the kernel records it of a real one.

A process is in the log by its index in the run and one. What else takes time there is that of the
process before it: of a task the calls by which it sleeps and wakes others; of a handler the way
back to what it has interrupted; of none that a sleeping core wakes up for a task.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.clock cimport NEVER_NS


cdef class LoggedCpu(SleepingCpu):
    """Base of the emulated CPUs; a subclass says what tasks it has."""

    def __cinit__(self, *_arguments):
        self.from_ns = NEVER_NS

    def use_log(self, SwitchLog log, int cpu, int64_t now_ns) -> None:
        """Log, from now on, as the CPU of that number; None: do not."""
        self.log = log
        if log is not None:
            self.place = log.cpus.index(cpu)
            log.gets(self.place, now_ns, self.holder)

    def handles(self, int64_t now_ns, int64_t until_ns, uint32_t process=0) -> None:
        """A handler of that process takes the CPU."""
        self.serve(process, now_ns, until_ns)

    cdef void serve(self, uint32_t process, int64_t now_ns, int64_t until_ns) noexcept:
        if self.log is not None:
            self.settle(now_ns)
            self.log.gets(self.place, now_ns, process + 1)
            if self.from_ns == NEVER_NS or until_ns > self.from_ns:
                self.from_ns = until_ns
        self.handle(now_ns, until_ns)

    cdef void gets(self, uint32_t process, int64_t now_ns) noexcept:
        if self.log is not None:
            self.settle(now_ns)
            self.holder, self.from_ns = process + 1, NEVER_NS
            self.log.gets(self.place, now_ns, self.holder)

    cdef void leaves(self, int64_t now_ns) noexcept:
        self.holder, self.from_ns = 0, max(now_ns, self.handling_until_ns)

    cdef void calls(self, int64_t now_ns, int64_t call_ns) noexcept:
        self.handle(now_ns, max(now_ns, self.handling_until_ns) + call_ns)
        if self.from_ns != NEVER_NS:
            self.from_ns = max(self.from_ns, self.handling_until_ns)

    cpdef void settle(self, int64_t now_ns) noexcept:
        """Log what has been so since before now."""
        if self.log is not None and self.from_ns < now_ns:
            self.log.gets(self.place, self.from_ns, self.holder)
            self.from_ns = NEVER_NS
