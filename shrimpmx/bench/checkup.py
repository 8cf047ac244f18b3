"""What this machine offers: one result per thing that a run may depend on."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Literal

from shrimpmx.bench.probe import probe
from shrimpmx.cluster.engine.switches import in_first_namespace
from shrimpmx.cluster.place.topology import Distance, Topology
from shrimpmx.host.idle import pm_qos_works
from shrimpmx.mpi.library import interpreter
from shrimpmx.native import clock, cores
from shrimpmx.native.copy import process_memory_permitted
from shrimpmx.native.perf import PerfCounters, SwitchRing
from shrimpmx.results.environment import governor, read_text, realtime, virtualised

# Room that a run of two nodes with default rings needs, with a margin (ours).
SHM_WISHED_BYTES = 64 << 20
# The kernel's default: an agent of ours blocks or yields far earlier.
RT_RUNTIME_DEFAULT_US, RT_PERIOD_DEFAULT_US = 950_000, 1_000_000


@dataclass(frozen=True)
class CheckResult:
    """`state`: good, limited (results are worth less) or missing (something cannot be shown)."""

    what: str
    state: Literal["good", "limited", "missing"]
    found: str
    follows: str = ""
    enable: str = ""

    def as_dict(self) -> dict[str, str]:
        """The result as plain data."""
        return asdict(self)


Check = Callable[[Path], "CheckResult"]
CHECKS: list[Check] = []
good = partial(CheckResult, "", "good")
limited = partial(CheckResult, "", "limited")
missing = partial(CheckResult, "", "missing")


def check(what: str) -> Callable[[Check], Check]:
    """Makes a function one of the CHECKS; what it cannot read is missing."""

    def declared(look: Check) -> Check:
        @wraps(look)
        def checked(root: Path) -> CheckResult:
            try:
                return replace(look(root), what=what)
            except OSError as error:
                return CheckResult(what, "missing", f"cannot be read: {error}")

        CHECKS.append(checked)
        return checked

    return declared


@check("CPUs")
def cpus(_root: Path) -> CheckResult:
    """How many CPUs there are, and what that allows."""
    topology = Topology.of_this_machine()
    count = len(topology.cpus)
    if count == 1:
        return missing(
            topology.describe(),
            "Everything takes turns on one CPU: counts are exact, times mean little.",
            "Use a machine, a VM size or a taskset with two CPUs or more.",
        )
    if count < 4:
        return limited(
            topology.describe(),
            "NICs share a CPU with a core; generator mode gives the cleanest figures.",
            "Two nodes with everything apart need four CPUs.",
        )
    return good(topology.describe())


@check("SMT")
def smt(_root: Path) -> CheckResult:
    """Whether CPUs share cores."""
    topology = Topology.of_this_machine()
    siblings = max(len(topology.siblings(number)) for number in topology.numbers)
    if siblings == 1:
        return good("one CPU per core")
    return limited(
        f"{siblings} CPUs per core",
        "Two busy CPUs of a core slow each other; placement uses one per core while it can.",
        "To switch it off: echo off > /sys/devices/system/cpu/smt/control",
    )


@check("binding distances")
def distances(_root: Path) -> CheckResult:
    """Which distances there are between two CPUs, with two that are so far apart."""
    there = Topology.of_this_machine().examples()
    found = "; ".join(
        f"{each.value} CPUs {there[each][0]} and {there[each][1]}"
        if each is not Distance.SAME_CORE
        else f"{each.value} CPU {there[each][0]}"
        for each in there
    )
    lacking = [each.value for each in Distance if each not in there]
    if not lacking:
        return good(found)
    return limited(
        found,
        f"Points with {', '.join(lacking)} are not measurable here; docs/placement.md explains "
        "these.",
        "shrimpmx place shows where a scenario would run on another machine.",
    )


@check("distance")
def distance(_root: Path) -> CheckResult:
    """How far apart the first two CPUs are at the moment."""
    state, round_trip_ns = probe(sorted(os.sched_getaffinity(0)))
    if round_trip_ns is None:
        return missing("unknown", "It needs two free CPUs.")
    found = f"{state}, cache-line round trip {round_trip_ns:.0f} ns"
    if state == "near":
        return good(found)
    follows = "Communication takes longer; it may change while a virtual machine runs."
    return limited(found, follows, "Comparisons pair runs of one state.")


@check("real-time priority")
def realtime_priority(root: Path) -> CheckResult:
    """Whether interrupts preempt ranks."""
    state = realtime(root)
    if not state["permitted"]:
        return missing(
            str(state["reason"]),
            "Handlers do not preempt ranks: a spinning rank delays its own interrupts.",
            "Run as root, or raise rtprio in /etc/security/limits.conf and log in again; in a "
            "container --cap-add SYS_NICE.",
        )
    budget, period = state["sched_rt_runtime_us"], state["sched_rt_period_us"]
    if not isinstance(period, int):
        period = RT_PERIOD_DEFAULT_US
    if not isinstance(budget, int) or not 0 <= budget < period:
        told = budget if isinstance(budget, int) else budget["unavailable"]
        return limited(
            f"permitted, sched_rt_runtime_us {told}",
            "The kernel does not bound real-time processes. Handlers of shrimpmx rest a "
            "twentieth of the time, and end after 5 s without a sleep.",
            f"sysctl kernel.sched_rt_runtime_us={RT_RUNTIME_DEFAULT_US}",
        )
    if budget * RT_PERIOD_DEFAULT_US < RT_RUNTIME_DEFAULT_US * period:
        return limited(
            f"permitted, sched_rt_runtime_us {budget}",
            "A NIC that shares a CPU is stopped for the rest of each period.",
            f"sysctl kernel.sched_rt_runtime_us={RT_RUNTIME_DEFAULT_US}",
        )
    return good(f"permitted, sched_rt_runtime_us {budget}")


@check("hardware counters")
def perf_counters(root: Path) -> CheckResult:
    """Whether the CPU's own counters can be read."""
    paranoid = read_text(root / "proc/sys/kernel/perf_event_paranoid") or "no such setting"
    with PerfCounters() as counters:
        absent = dict(counters.absent)
        there = [name for name in counters.read() if name not in absent]
    if not absent:
        return good(f"all, perf_event_paranoid {paranoid}")
    reason = next(iter(absent.values()))
    return (limited if there else missing)(
        f"{len(absent)} absent ({reason}), perf_event_paranoid {paranoid}",
        "Cache misses cannot be shown; hand-overs between cores are counted exactly.",
        "sysctl kernel.perf_event_paranoid=1; a virtual machine needs a virtual PMU.",
    )


@check("context switches")
def context_switches(root: Path) -> CheckResult:
    """Whether traces can tell which process had a CPU."""
    paranoid = read_text(root / "proc/sys/kernel/perf_event_paranoid") or "no such setting"
    try:
        SwitchRing(min(os.sched_getaffinity(0))).close()
    except OSError as error:
        return missing(
            f"not recorded, perf_event_paranoid {paranoid}",
            "Traces lack the process on each CPU.",
            f"{error.strerror}.",
        )
    return good(f"recorded, perf_event_paranoid {paranoid}")


@check("/dev/shm")
def shared_memory(root: Path) -> CheckResult:
    """Room in /dev/shm."""
    path = root / "dev/shm"
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        return missing(
            str(error.strerror), "Nothing runs without it.", "mount -t tmpfs tmpfs /dev/shm"
        )
    found = f"{free >> 20} MiB free"
    if free >= SHM_WISHED_BYTES:
        return good(found, "", "Huge pages are not needed.")
    return missing(
        found,
        "Segments may find no room.",
        "shrimpmx clean; mount -o remount,size=256M /dev/shm; in a container --shm-size 256m.",
    )


@check("message queues")
def message_queues(root: Path) -> CheckResult:
    """Limits of the control channel's message queue."""
    folder = root / "proc/sys/fs/mqueue"
    values = {name: read_text(folder / name) for name in ("queues_max", "msg_max", "msgsize_max")}
    if None in values.values():
        return missing(
            "no POSIX message queues",
            "The control channel needs them.",
            "Use a kernel with CONFIG_POSIX_MQUEUE.",
        )
    limit = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[0]
    found = ", ".join(f"{name} {value}" for name, value in values.items())
    room = "unlimited" if limit == resource.RLIM_INFINITY else f"{limit >> 10} KiB"
    if limit != resource.RLIM_INFINITY and limit < 65536:
        return limited(
            f"{found}, {room} per user", "Few runs fit at the same time.", "ulimit -q 819200"
        )
    return good(f"{found}, {room} per user")


@check("clock")
def clock_source(root: Path) -> CheckResult:
    """Whether the time-stamp counter can be the clock."""
    source = read_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    if clock.tsc_is_steady():
        return good(f"steady time-stamp counter, kernel uses {source}")
    return limited(
        f"no steady time-stamp counter, kernel uses {source}",
        "Agents read CLOCK_MONOTONIC, which costs more per step.",
    )


@check("governor")
def frequency(root: Path) -> CheckResult:
    """The frequency governor."""
    found = governor(root)
    if isinstance(found, dict):
        return good(found["unavailable"])
    if found == "performance":
        return good(found)
    return limited(
        found,
        "Short runs are measured while the CPU frequency still rises.",
        "cpupower frequency-set -g performance",
    )


@check("idle cores")
def idle_cores(root: Path) -> CheckResult:
    """How cores are kept awake for runs that ask for it."""
    works, why = pm_qos_works(root)
    if works:
        return good(f"with idle=awake kept awake by PM QoS; {why}")
    return limited(
        f"with idle=awake kept awake by a spinner each; {why}",
        "With idle=awake a wake-up pays a switch from the idle-class spinner.",
        "PM QoS needs a cpuidle driver, and write access to /dev/cpu_dma_latency.",
    )


@check("virtual machine")
def hypervisor(root: Path) -> CheckResult:
    """Whether this is a virtual machine."""
    if not virtualised(root):
        return good("no")
    return limited(
        "yes",
        "Wake-ups across CPUs cost several times more, and CPUs may change distance.",
        "Each run is bracketed by a cache-line probe; prefer ratios to absolute times.",
    )


@check("other programs")
def others(root: Path) -> CheckResult:
    """Whether /proc shows the processes of other users, and those outside of a container."""
    if read_text(root / "proc/1/stat") is None:
        hidden, enable = (
            "other users' processes are hidden",
            "Mount /proc without hidepid, or run as root.",
        )
    elif not in_first_namespace(root):
        hidden, enable = "processes outside of this container are hidden", "Docker: --pid=host"
    else:
        return good("/proc shows the processes of all users: a run notices their load")
    return limited(hidden, "Runs disturbed by their load count as undisturbed.", enable)


@check("process_vm access")
def process_memory(_root: Path) -> CheckResult:
    """Whether other processes may copy from and to a rank's memory: containers often forbid it."""
    if process_memory_permitted():
        return good("permitted")
    return limited(
        "not permitted",
        "Large messages from ordinary memory will go through a bounce buffer.",
        "In a container: --cap-add SYS_PTRACE, or a seccomp profile that allows it.",
    )


@check("clean-up after a kill")
def clean_up(_root: Path) -> CheckResult:
    """Whether the janitor of a run sees the processes that it is to end."""
    visible, why = cores.processes_visible()
    if visible:
        return good(why)
    return limited(
        why,
        "If shrimpmx is killed, Python programs started by its ranks may survive; py-spy cannot "
        "attach.",
        "setcap -r PYTHON; for real-time priority raise rtprio in /etc/security/limits.conf.",
    )


@check("profiling")
def tracing(root: Path) -> CheckResult:
    """Whether py-spy may look into agents."""
    scope = read_text(root / "proc/sys/kernel/yama/ptrace_scope")
    capable = os.geteuid() == 0
    installed = shutil.which("py-spy") is not None
    found = f"ptrace_scope {scope if scope is not None else 'none'}, py-spy " + (
        "installed" if installed else "not installed"
    )
    if scope in (None, "0") or capable:
        return good(found) if installed else limited(found, "", "pip install py-spy")
    return limited(
        found,
        "py-spy cannot attach to running agents.",
        "Run it as root, or: sysctl kernel.yama.ptrace_scope=0",
    )


@check("compiled MPI programs")
def python_library(_root: Path) -> CheckResult:
    """Whether programs of C and Fortran can start this Python, which their MPI library needs."""
    found = interpreter().get("SHRIMPMX_LIBPYTHON")
    if found:
        return good(f"their MPI_Init starts {found}")
    return missing(
        "this Python has no shared library",
        "MPI_Init fails in programs of C and Fortran; those of Python run.",
        "Debian: apt install libpython{}.{}".format(*sys.version_info[:2])
        + "; elsewhere a Python built with --enable-shared",
    )


@check("valgrind")
def valgrind(_root: Path) -> CheckResult:
    """Whether `shrimpmx caches` can simulate."""
    path = shutil.which("valgrind")
    if path is not None:
        return good(path)
    return missing(
        "not installed",
        "shrimpmx caches cannot simulate a machine's caches (docs/performance.md).",
        "Debian: apt install valgrind",
    )


def checkup(root: Path = Path("/")) -> list[CheckResult]:
    """Run all checks; one that fails gives a result too."""
    return [check(root) for check in CHECKS]
