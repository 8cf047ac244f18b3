"""What a process asks of its core: affinity, scheduling class, timers, names.

A real-time process that never sleeps can freeze a machine. So `set_realtime` also
sets RLIMIT_RTTIME, whose signal nothing may keep from the process, and `die_with_parent` lets an
agent die with its supervisor.
"""

import os
import resource

from cpython.exc cimport PyErr_SetFromErrno
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from shrimpmx.errors import InputError, MachineError

cdef extern from "<signal.h>":
    ctypedef void (*signal_handler)(int) noexcept
    signal_handler SIG_DFL
    signal_handler signal(int number, signal_handler handler) noexcept
    enum:
        SIGKILL
        SIGXCPU

cdef extern from "<sys/prctl.h>":
    int prctl(int option, ...) noexcept
    enum:
        PR_GET_DUMPABLE
        PR_SET_PDEATHSIG
        PR_SET_NAME
        PR_SET_TIMERSLACK
        PR_GET_TIMERSLACK

cdef extern from *:
    """
    #include <sys/resource.h>
    """
    enum:
        RLIMIT_RTTIME

cdef extern from *:
    """
    #include <stdint.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    /* As the kernel has it (sched_setattr(2)); not every C library knows it. */
    struct sched_attributes {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    };
    static long scheduler_set(struct sched_attributes *attributes) {
        return syscall(SYS_sched_setattr, 0, attributes, 0);
    }
    static long scheduler_get(int pid, struct sched_attributes *attributes) {
        return syscall(SYS_sched_getattr, pid, attributes, sizeof *attributes, 0);
    }
    """
    cdef struct sched_attributes:
        uint32_t size
        int32_t nice
        uint64_t runtime
    long scheduler_set(sched_attributes *attributes) noexcept
    long scheduler_get(int pid, sched_attributes *attributes) noexcept

# CPU time that a real-time process may use without sleeping before the kernel ends it
# (SIGXCPU). Long enough for a measured livelock, short enough to save the machine (ours).
REALTIME_LIMIT_NS = 5_000_000_000
# What survives that signal is killed so much later (SIGKILL): the hard limit (ours).
HARD_LIMIT_LATER_US = 1_000_000
# To ask whether there are time slices: not the default of any kernel.
TIME_SLICE_NS = 7_000_000


def pin(cpus):
    """Bind the calling process to `cpus`, an iterable of CPU numbers; InputError if one is not
    usable here."""
    wanted = sorted(set(cpus))
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, wanted)
        usable = os.sched_getaffinity(0)
    except (OSError, ValueError, OverflowError):
        usable = before
    if usable != set(wanted):
        # The kernel takes a set in which only some CPUs exist, and leaves out the others.
        os.sched_setaffinity(0, before)
        raise InputError(
            f"cannot run on CPU {', '.join(map(str, wanted)) or '(none)'}: "
            f"this machine has {os.cpu_count()} CPUs; see `shrimpmx doctor`"
        )


def set_realtime(int priority, long long limit_ns=REALTIME_LIMIT_NS):
    """Ask for SCHED_FIFO at `priority` (1 to 99); return the priority granted, 0 if none.

    Without the right to it the process stays at normal priority. A limit lower than
    `priority` (RLIMIT_RTPRIO) is used as far as it goes. `limit_ns` is the CPU time that
    the process may then use without sleeping; the limit stays, and SIGXCPU ends the process
    though its parent ignored or blocked it.
    """
    if not 1 <= priority <= 99:
        raise InputError(f"a real-time priority is 1 to 99, not {priority}")
    # Before the change of class: the limit holds from its first moment.
    _limit_realtime(max(limit_ns // 1000, 1))
    allowed = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    for attempt in (priority, min(priority, allowed) if allowed > 0 else 0):
        if attempt == 0:
            continue
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(attempt))
            return attempt
        except PermissionError:
            continue
    return 0


def set_idle():
    """The idle class: runs only when nothing else wants the core."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _limit_realtime(limit_us):
    """Set both limits of RLIMIT_RTTIME, as far as the hard one allows, and let SIGXCPU end us."""
    hard = resource.getrlimit(RLIMIT_RTTIME)[1]
    last = limit_us + HARD_LIMIT_LATER_US
    if hard != resource.RLIM_INFINITY:
        last = min(last, hard)
    resource.setrlimit(RLIMIT_RTTIME, (min(limit_us, last), last))
    import signal as signals  # loads what a rank does not need

    # Not by Python, whose handlers are the main thread's, and run when its interpreter comes to it.
    signal(SIGXCPU, SIG_DFL)
    signals.pthread_sigmask(signals.SIG_UNBLOCK, [SIGXCPU])


def realtime_permitted():
    """Whether this process may use SCHED_FIFO, and one sentence why (not)."""
    error = _tried(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
    if error is None:
        return True, "real-time scheduling is permitted"
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    return False, (
        f"no right to real-time scheduling ({error.strerror}; RLIMIT_RTPRIO is {limit}): "
        "run as root, or give the user an rtprio limit in /etc/security/limits.conf"
    )


def niceness_permitted(int niceness):
    """Whether this process may have that niceness, and one sentence why (not)."""
    error = _tried(lambda: os.setpriority(os.PRIO_PROCESS, 0, niceness))
    if error is None:
        return True, f"niceness {niceness} is permitted"
    return False, (
        f"no right to niceness {niceness} ({error.strerror}): run as root, or give the user a nice "
        "limit in /etc/security/limits.conf"
    )


def _tried(attempt):
    """The OSError of an attempt, None if there is none. It is made by a thread of its own, with
    which what it has changed ends."""
    errors = []

    def attempted():
        try:
            attempt()
        except OSError as error:
            errors.append(error)

    import threading  # loaded on use: a rank needs none

    thread = threading.Thread(target=attempted)
    thread.start()
    thread.join()
    return errors[0] if errors else None


def set_timer_slack(long ns):
    """How late the kernel may wake a normal-priority sleeper, ns; 1 is the least."""
    if ns < 1:
        raise InputError(f"timer slack is at least 1 ns, not {ns}")
    if prctl(PR_SET_TIMERSLACK, <unsigned long>ns, 0, 0, 0) != 0:
        PyErr_SetFromErrno(OSError)


def timer_slack():
    """The timer slack of the calling thread, ns."""
    return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)


def set_time_slice(uint64_t ns):
    """Ask the kernel's scheduler for time slices of `ns`, 0.1 to 100 ms; what it gives, ns.

    For the calling thread and what it starts, at normal priority; its niceness stays. 0 from
    kernels that give all the same (before Linux 6.12).
    """
    cdef sched_attributes attributes
    memset(&attributes, 0, sizeof(attributes))
    attributes.size = sizeof(attributes)
    attributes.nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes.runtime = ns
    return time_slice() if scheduler_set(&attributes) == 0 else 0


def time_slice(int pid=0):
    """The time slice of thread `pid` (0: the calling one), ns; 0 from kernels that do not tell."""
    cdef sched_attributes attributes
    memset(&attributes, 0, sizeof(attributes))
    return attributes.runtime if scheduler_get(pid, &attributes) == 0 else 0


def time_slices_settable():
    """Whether this kernel takes time slices."""
    # Tried in a thread of its own, whose slice ends with it.
    granted = []
    import threading

    thread = threading.Thread(target=lambda: granted.append(set_time_slice(TIME_SLICE_NS)))
    thread.start()
    thread.join()
    return granted == [TIME_SLICE_NS]


def die_with_parent(int parent_pid):
    """Let the kernel kill this process when the thread that forked it ends.

    `parent_pid` is the pid that the parent had at the fork: if it died before this call,
    this process ends at once, as it would have a moment later.
    """
    if prctl(PR_SET_PDEATHSIG, <unsigned long>SIGKILL, 0, 0, 0) != 0:
        PyErr_SetFromErrno(OSError)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), SIGKILL)


def processes_visible():
    """Whether other processes of this user may look into this one and its forks, as the janitor
    does, and one sentence why (not).
    """
    if os.geteuid() == 0 or prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1:
        return True, "processes of a user can look into each other"
    return False, (
        "Python has capabilities of its own (setcap), so the kernel hides its processes from "
        "others of their user"
    )


def set_process_name(str name):
    """The name that ps, top and py-spy show; the kernel keeps its first 15 bytes."""
    encoded = name.encode()[:15]
    cdef char *text = encoded
    if prctl(PR_SET_NAME, text, 0, 0, 0) != 0:
        PyErr_SetFromErrno(OSError)


def start_ticks(pid):
    """When process `pid` started, clock ticks since boot (field 22 of /proc/<pid>/stat).

    None if there is no such process, or only its zombie; also for another user's process where
    /proc is mounted with hidepid.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return None
    except OSError as error:
        raise MachineError(f"/proc/{pid}/stat cannot be read: {error}; is /proc mounted?") from None
    # The name stands in brackets and may hold anything, brackets too.
    fields = text.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
