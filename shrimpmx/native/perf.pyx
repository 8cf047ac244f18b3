"""What the kernel and the CPU count for a process: switches, faults, time, cycles, misses.

Software figures come from getrusage and /proc, hardware ones from
perf_event_open. A counter that this machine does not give is absent with a reason.
"""

import errno
import os
import resource
import time

from libc.errno cimport errno as c_errno
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset
from posix.unistd cimport read

from shrimpmx.errors import InputError

cdef extern from *:
    """
    #include <linux/perf_event.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    static long perf_open(struct perf_event_attr *event, int pid) {
        return syscall(SYS_perf_event_open, event, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    """
    enum:
        PERF_TYPE_HARDWARE
        PERF_TYPE_HW_CACHE
        PERF_TYPE_SOFTWARE
        PERF_COUNT_HW_CPU_CYCLES
        PERF_COUNT_HW_INSTRUCTIONS
        PERF_COUNT_HW_CACHE_REFERENCES
        PERF_COUNT_HW_CACHE_MISSES
        PERF_COUNT_HW_BRANCH_MISSES
        PERF_COUNT_HW_CACHE_L1D
        PERF_COUNT_HW_CACHE_OP_READ
        PERF_COUNT_HW_CACHE_RESULT_MISS
        PERF_COUNT_SW_TASK_CLOCK
        PERF_COUNT_SW_CONTEXT_SWITCHES
        PERF_COUNT_SW_CPU_MIGRATIONS
        PERF_COUNT_SW_PAGE_FAULTS
        PERF_FORMAT_TOTAL_TIME_ENABLED
        PERF_FORMAT_TOTAL_TIME_RUNNING
    cdef struct perf_event_attr:
        uint32_t type
        uint32_t size
        uint64_t config
        uint64_t read_format
        unsigned int exclude_user
        unsigned int exclude_kernel
        unsigned int exclude_hv
    long perf_open(perf_event_attr *event, int pid) noexcept

# Counter: (type, number, unit).
EVENTS = {
    "task_clock": (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "ns"),
    "context_switches": (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "switches"),
    "cpu_migrations": (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, "migrations"),
    "page_faults": (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "faults"),
    "cycles": (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles"),
    "instructions": (PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions"),
    "cache_references": (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, "references"),
    "cache_misses": (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "misses"),
    "branch_misses": (PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "misses"),
}

L1D_READ_MISSES = (PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8
                   | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)
# The cache's counters, each in user mode and in the kernel: (type, number, unit, in the kernel).
# References and misses are those of the last-level cache.
CACHE_EVENTS = {
    f"{name}_{mode}": (*event, mode == "kernel")
    for name, event in {
        "cache_references": EVENTS["cache_references"],
        "cache_misses": EVENTS["cache_misses"],
        "l1d_read_misses": (PERF_TYPE_HW_CACHE, L1D_READ_MISSES, "misses"),
    }.items()
    for mode in ("user", "kernel")
}


def usage():
    """What this process has used so far, from getrusage; times in ns.

    Switches made by sched_yield count as involuntary.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "user_ns": round(used.ru_utime * 1e9),
        "system_ns": round(used.ru_stime * 1e9),
        "task_clock_ns": time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID),
        "voluntary_switches": used.ru_nvcsw,
        "involuntary_switches": used.ru_nivcsw,
        "minor_faults": used.ru_minflt,
        "major_faults": used.ru_majflt,
    }


def usage_of(int pid):
    """The same for another process, from /proc; None if it is gone or hidden. Its main thread only
    for switches; user and system times in steps of the kernel's clock tick."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            stat = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/status", errors="replace") as file:
            status = dict(line.split(":", 1) for line in file if ":" in line)
        with open(f"/proc/{pid}/schedstat") as file:
            task_clock_ns = int(file.read().split()[0])
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return None
    return {
        "user_ns": int(stat[11]) * tick_ns,
        "system_ns": int(stat[12]) * tick_ns,
        "task_clock_ns": task_clock_ns,
        "voluntary_switches": int(status.get("voluntary_ctxt_switches", 0)),
        "involuntary_switches": int(status.get("nonvoluntary_ctxt_switches", 0)),
        "minor_faults": int(stat[7]),
        "major_faults": int(stat[9]),
    }


def explain(int error):
    """Why perf_event_open refused, and what to do, by its errno."""
    if error in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return "this CPU or its virtual machine does not give the counter"
    if error in (errno.EACCES, errno.EPERM):
        return (
            "not permitted: lower /proc/sys/kernel/perf_event_paranoid to 1, or run as root "
            "(containers often forbid the call)"
        )
    if error == errno.ENOSYS:
        return "this kernel is built without perf events"
    return f"perf_event_open failed: {os.strerror(error)}"


cdef int open_event(uint32_t kind, uint64_t number, int pid, bint with_user, bint with_kernel):
    """File descriptor of a counter, or minus the errno."""
    cdef perf_event_attr event
    memset(&event, 0, sizeof(event))
    event.type = kind
    event.size = sizeof(event)
    event.config = number
    event.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING
    event.exclude_user = not with_user
    event.exclude_kernel = not with_kernel
    event.exclude_hv = 1
    cdef long descriptor = perf_open(&event, pid)
    return <int>descriptor if descriptor >= 0 else -c_errno


cdef class PerfCounters:
    """Counters of the calling thread (pid 0) or of another process, from now on.

    `names`: of EVENTS, which count in both modes, or of CACHE_EVENTS, which count in one.
    `absent` maps each counter that is not there to the reason, `user_only` names those
    of EVENTS that leave out the kernel because this user may not count there.
    """

    cdef dict descriptors
    cdef readonly dict absent
    cdef readonly list user_only

    def __cinit__(self, names=tuple(EVENTS), int pid=0):
        cdef int descriptor
        self.descriptors = {}
        self.absent = {}
        self.user_only = []
        for name in names:
            if name in EVENTS:
                kind, number, _ = EVENTS[name]
                descriptor = open_event(kind, number, pid, True, True)
                if descriptor in (-errno.EACCES, -errno.EPERM):
                    descriptor = open_event(kind, number, pid, True, False)
                    if descriptor >= 0:
                        self.user_only.append(name)
            elif name in CACHE_EVENTS:
                kind, number, _, in_kernel = CACHE_EVENTS[name]
                descriptor = open_event(kind, number, pid, not in_kernel, in_kernel)
            else:
                raise InputError(f"there is no counter {name!r}; there are "
                                 f"{', '.join(sorted(EVENTS | CACHE_EVENTS))}")
            if descriptor < 0:
                self.absent[name] = explain(-descriptor)
            else:
                self.descriptors[name] = descriptor

    def __dealloc__(self):
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *details):
        self.close()

    cpdef close(self):
        """Give the counters back; closing twice is harmless."""
        while self.descriptors:
            os.close(self.descriptors.popitem()[1])

    def read(self):
        """Counts since the opening, scaled up where counters had to share the hardware.

        A counter that never got the hardware moves to `absent`.
        """
        cdef uint64_t values[3]
        cdef int descriptor
        counts = {}
        for name, descriptor in list(self.descriptors.items()):
            if read(descriptor, values, sizeof(values)) != sizeof(values):
                self.absent[name] = "the kernel could not read the counter"
            elif values[2] == 0 and values[1] != 0:
                self.absent[name] = "the counter never got the hardware; ask for fewer at once"
            elif values[2] < values[1]:
                counts[name] = round(values[0] * (<double>values[1] / values[2]))
            else:
                counts[name] = values[0]
        return counts
