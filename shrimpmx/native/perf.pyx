"""What the kernel and the CPU count for a process, and the kernel's record of switches."""

import errno
import mmap
import os
import resource
import time

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport errno as c_errno
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from posix.unistd cimport read

from shrimpmx.native.atomics cimport load_acquire_u64
from shrimpmx.native.trace cimport Trace, trace_record

from shrimpmx.errors import InputError
from shrimpmx.native.segment import SEGMENT_TRACE, Segment


# -- What the kernel and the CPU count for a process: switches, faults, time, cycles, misses.
#
# Software figures come from getrusage and /proc, hardware ones from
# perf_event_open. A counter that this machine does not give is absent with a reason.

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
        uint64_t sample_type
        unsigned int sample_id_all
        unsigned int context_switch
        unsigned int use_clockid
        unsigned int watermark
        uint32_t wakeup_watermark
        int clockid
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


# -- Which process has which CPU: the context switches of a run, and the kernel's record of them.
#
# The kernel writes them into a ring per CPU (perf_event_open, PERF_RECORD_SWITCH_CPU_WIDE), without
# any counter of the hardware. What is read there goes into a log of the last switches of each CPU,
# which a simulated run writes itself.

cdef extern from "native/atomics.h" nogil:
    void store_release_u64(volatile uint64_t *address, uint64_t value) noexcept

cdef extern from "native/trace.h" nogil:
    enum:
        TRACE_note

cdef extern from *:
    """
    #include <linux/perf_event.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    static long switches_open(struct perf_event_attr *event, int cpu) {
        return syscall(SYS_perf_event_open, event, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    }
    /* What the attributes below make of the records. */
    struct switch_record {
        struct perf_event_header header;
        uint32_t other_pid, other_tid, pid, tid;
        uint64_t time_ns;
        uint32_t cpu, unused;
    };
    struct lost_record {
        struct perf_event_header header;
        uint64_t id, lost;
    };
    """
    enum:
        CLOCK_MONOTONIC
        PERF_COUNT_SW_DUMMY
        PERF_SAMPLE_TID
        PERF_SAMPLE_TIME
        PERF_SAMPLE_CPU
        PERF_RECORD_LOST
        PERF_RECORD_SWITCH_CPU_WIDE
        PERF_RECORD_MISC_SWITCH_OUT
    cdef struct perf_event_header:
        uint32_t type
        uint16_t misc
        uint16_t size
    cdef struct perf_event_mmap_page:
        uint64_t data_head
        uint64_t data_tail
        uint64_t data_offset
        uint64_t data_size
    cdef struct switch_record:
        perf_event_header header
        uint32_t other_pid
        uint32_t pid
        uint64_t time_ns
    cdef struct lost_record:
        perf_event_header header
        uint64_t lost
    long switches_open(perf_event_attr *event, int cpu) noexcept

# In place of a process: none, and one that no record names.
IDLE, UNKNOWN = 0, 0xFFFFFFFF
cdef uint32_t NOT_KNOWN = 0xFFFFFFFF
# The kernel lets every user lock so much for each CPU, and a page (perf_event_mlock_kb): 6500
# switches. The reader is woken when half of it is full.
cdef enum:
    RING_BYTES = 512 << 10
# Where the data of a ring begin.
DATA_OFFSET = mmap.PAGESIZE

NO_MEMORY = (
    "the kernel gives no memory for them: raise kernel.perf_event_mlock_kb by sysctl, or the limit "
    "of locked memory (ulimit -l)"
)


def why_no_switches(int error):
    """Why the kernel gives no switches of a CPU, and what to do, by the errno."""
    if error in (errno.EACCES, errno.EPERM):
        return (
            "the kernel does not permit it: run as root, or set kernel.perf_event_paranoid=0 by "
            "sysctl (containers often forbid the call perf_event_open)"
        )
    if error in (errno.ENOSYS, errno.ENOENT, errno.EOPNOTSUPP, errno.EINVAL):
        return "this kernel does not record them (perf events, Linux 4.3 or newer)"
    return f"perf_event_open failed: {os.strerror(error)}"


cdef class SwitchLog:
    """Which process got which of `cpus` when: the last `entries` switches of each, a power of two.

    A process is a number: its pid, or another one in a simulated run; IDLE: none, UNKNOWN: no
    record says. Before its first switch that is so of each CPU.
    """

    def __cinit__(self, cpus, uint32_t entries):
        cdef uint32_t place
        self.cpus = sorted(set(cpus))
        size_bytes = Trace.size_bytes(len(self.cpus), entries)
        segment = Segment.anonymous(size_bytes, SEGMENT_TRACE, private=True)
        self.trace = Trace.create(segment, len(self.cpus), entries)
        self.holders = <uint32_t *>malloc((len(self.cpus) + 1) * sizeof(uint32_t))
        if self.holders == NULL:
            raise MemoryError
        for place in range(len(self.cpus)):
            self.holders[place] = NOT_KNOWN

    def __dealloc__(self):
        free(self.holders)

    cdef void gets(self, uint32_t place, int64_t time_ns, uint32_t process) noexcept nogil:
        if self.holders[place] != process:
            self.holders[place] = process
            trace_record(self.trace.ring(place), time_ns, TRACE_note, process, 0)

    def note(self, int cpu, int64_t time_ns, uint32_t process):
        """A process gets a CPU, ns; nothing if it has it."""
        self.gets(self.cpus.index(cpu), time_ns, process)

    def end(self, int64_t time_ns):
        """From then on nothing is known."""
        for place in range(len(self.cpus)):
            self.gets(place, time_ns, NOT_KNOWN)

    def begins(self):
        """Of each CPU when which process got it: pairs of time, ns, and process, by time."""
        return {
            cpu: [(record.time_ns, record.a) for record in self.trace.records_of(place)]
            for place, cpu in enumerate(self.cpus)
        }


cdef class SwitchRing:
    """The kernel's ring of switches of one CPU, from now on. `lost`: so many records found no room.

    OSError if the kernel does not give it. `buffer` is a ring in place of the kernel's, for tests.
    """

    cdef readonly int cpu
    cdef readonly uint64_t lost
    cdef int descriptor
    cdef object mapping
    cdef Py_buffer view
    cdef perf_event_mmap_page *page
    cdef uint8_t *data
    cdef int64_t last_ns
    cdef set seen

    def __cinit__(self, int cpu, buffer=None):
        self.cpu, self.descriptor, self.seen = cpu, -1, {IDLE, UNKNOWN}
        if buffer is None:
            self.descriptor = open_switches(cpu)
            try:
                buffer = mmap.mmap(self.descriptor, DATA_OFFSET + RING_BYTES)
            except OSError as error:
                self.close()
                raise OSError(error.errno, NO_MEMORY) from error
        PyObject_GetBuffer(buffer, &self.view, PyBUF_WRITABLE)
        self.mapping = buffer
        self.page = <perf_event_mmap_page *>self.view.buf
        self.data = <uint8_t *>self.view.buf + self.page.data_offset

    def __dealloc__(self):
        self.close()

    def fileno(self):
        """Readable when half of the ring is full."""
        return self.descriptor

    cpdef close(self):
        """Give the ring back; closing twice is harmless."""
        if self.mapping is not None:
            PyBuffer_Release(&self.view)
            self.mapping, self.page = None, NULL
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def drain(self, SwitchLog log not None, int64_t ahead_ns=0):
        """Take what is there into a log, whose clock is ahead of the monotonic one by so much, ns;
        the processes that come for the first time.
        """
        cdef uint32_t place = log.cpus.index(self.cpu)
        cdef uint64_t at, head
        cdef int64_t pid
        cdef switch_record record
        cdef lost_record lost
        found = set()
        if self.page == NULL:
            return found
        # The kernel writes the records before the head, and none over what lies behind the tail.
        head = load_acquire_u64(<const void *>&self.page.data_head)
        at = self.page.data_tail
        while at < head:
            self.copy(at, &record, sizeof(perf_event_header))
            if record.header.size < sizeof(perf_event_header):
                raise InputError(f"the kernel's ring of CPU {self.cpu} is damaged")
            if record.header.type == PERF_RECORD_SWITCH_CPU_WIDE:
                self.copy(at, &record, sizeof(switch_record))
                pid = next_of(&record)
                if pid >= 0:
                    # Not before the one before it, though the clocks have been compared anew.
                    self.last_ns = max(self.last_ns, <int64_t>record.time_ns + ahead_ns)
                    log.gets(place, self.last_ns, <uint32_t>pid)
                    if pid not in self.seen:
                        self.seen.add(pid)
                        found.add(pid)
            elif record.header.type == PERF_RECORD_LOST:
                self.copy(at, &lost, sizeof(lost_record))
                self.lost += lost.lost
                log.gets(place, self.last_ns, NOT_KNOWN)
            at += record.header.size
        store_release_u64(<uint64_t *>&self.page.data_tail, at)
        return found

    cdef void copy(self, uint64_t at, void *target, uint64_t size) noexcept nogil:
        """Bytes of the ring, which may end and begin again within them."""
        cdef uint64_t start = at % self.page.data_size
        cdef uint64_t first = min(size, self.page.data_size - start)
        memcpy(target, self.data + start, first)
        memcpy(<uint8_t *>target + first, self.data, size - first)


cdef inline int64_t next_of(const switch_record *record) noexcept nogil:
    """The process that gets the CPU, 0 if none does; -1: another record says it.

    Two records tell of a switch: one of what leaves, and one of what comes. If none comes, Linux
    6.18 writes the second one on the first CPU only.
    """
    if record.header.misc & PERF_RECORD_MISC_SWITCH_OUT:
        return 0 if record.other_pid == 0 else -1
    return record.pid


cdef int open_switches(int cpu) except -1:
    cdef perf_event_attr event
    cdef long descriptor
    memset(&event, 0, sizeof(event))
    event.type = PERF_TYPE_SOFTWARE
    event.size = sizeof(event)
    event.config = PERF_COUNT_SW_DUMMY
    event.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU
    event.sample_id_all = event.context_switch = event.use_clockid = event.watermark = 1
    event.wakeup_watermark = RING_BYTES // 2
    event.clockid = CLOCK_MONOTONIC
    descriptor = switches_open(&event, cpu)
    if descriptor < 0:
        raise OSError(c_errno, why_no_switches(c_errno))
    return <int>descriptor
