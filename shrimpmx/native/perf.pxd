"""What the kernel and the CPU count for a process, and the kernel's record of switches."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.trace cimport Trace

# -- Which process has which CPU: the context switches of a run, and the kernel's record of them.

cdef class SwitchLog:
    cdef readonly list cpus
    cdef Trace trace                 # a ring per CPU
    cdef uint32_t *holders           # the process that has each CPU now

    # A process gets a CPU, given as its place in `cpus`; nothing if it has it.
    cdef void gets(self, uint32_t place, int64_t time_ns, uint32_t process) noexcept nogil
