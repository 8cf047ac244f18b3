"""What disturbs runs from outside, as figures before and after each of them tell: other runs, the
hypervisor, other programs.

A machine that is disturbed for a moment gives better figures when a run is taken again; one that
is disturbed all the time does not, and would only take longer.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from shrimpmx.results.environment import other_runs, stolen_ns
from shrimpmx.results.metrics import Outcome

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# Of /proc/PID/stat, counted from the state, the first one behind the name.
_STATE, _PARENT, _USER, _SYSTEM = 0, 1, 11, 12
_WAITED_USER, _WAITED_SYSTEM, _THREADS, _BEGAN, _CPU = 13, 14, 17, 19, 36
# More than the 52 numbers and the name of that file may have.
_STAT_BYTES = 4096


class Used(NamedTuple):
    """CPU time of a thread so far, ns, and the CPU where it ran last."""

    cpu_ns: int
    cpu: int


@dataclass(frozen=True)
class Program:
    """A process as it was found. `began` tells it from an earlier one of the same number.

    `used`: of all its threads, also of those that have ended. `waited_ns`: what processes had used
    that it has started and waited for. `threads`: those that it has, by number.
    """

    began: int
    parent: int
    used: Used
    waited_ns: int
    threads: Mapping[int, Used]
    ended: bool = False


Programs = Mapping[int, Program]


def other_programs(root: Path = Path("/")) -> dict[int, Program]:
    """All processes but this one and its descendants, by number; none if /proc has not this one."""
    proc = os.fspath(root / "proc")
    try:
        own = int(os.readlink(f"{proc}/self"))
    except (OSError, ValueError):
        return {}
    found = dict(_programs(proc))
    return {pid: program for pid, program in found.items() if not _descends(pid, own, found)}


def used_meanwhile(before: Programs, after: Programs) -> Mapping[int, int]:
    """The time that programs used between two looks, ns, by CPU.

    A thread's is charged to the CPU where it ran last, that of a thread or child that has ended to
    the CPU of its process or parent.
    """
    taken, gone = Counter[int](), Counter[int]()
    for pid, was in before.items():
        if pid not in after or after[pid].began != was.began:
            gone[was.parent] += was.used.cpu_ns + was.waited_ns
    for pid, now in after.items():
        was = before.get(pid, now)
        if pid not in before or was.began != now.began:
            if now.ended:  # of which its parent will tell
                continue
            was = Program(now.began, now.parent, Used(0, 0), 0, {})
        lived_ns = 0
        for number, thread in now.threads.items():
            used_ns = thread.cpu_ns - was.threads.get(number, Used(0, 0)).cpu_ns
            taken[thread.cpu] += max(0, used_ns)
            lived_ns += used_ns
        waited_ns = now.waited_ns - was.waited_ns - gone[pid]
        for used_ns in (now.used.cpu_ns - was.used.cpu_ns - lived_ns, waited_ns):
            taken[now.used.cpu] += max(0, used_ns)
    return taken


# Each run looks at all of a machine's processes twice: their paths are texts, faster than Paths.
def _programs(proc: str) -> Iterator[tuple[int, Program]]:
    for pid in _numbers(proc):
        fields = _stat(f"{proc}/{pid}")
        if fields is None:
            continue
        used = _used(fields)
        several = int(fields[_THREADS]) > 1
        threads = dict(_threads(f"{proc}/{pid}/task")) if several else {pid: used}
        waited_ns = (int(fields[_WAITED_USER]) + int(fields[_WAITED_SYSTEM])) * TICK_NS
        began, parent = int(fields[_BEGAN]), int(fields[_PARENT])
        yield pid, Program(began, parent, used, waited_ns, threads, fields[_STATE] in (b"Z", b"X"))


def _threads(tasks: str) -> Iterator[tuple[int, Used]]:
    for number in _numbers(tasks):
        fields = _stat(f"{tasks}/{number}")
        if fields is not None:
            yield number, _used(fields)


def _numbers(directory: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(directory) if name.isdigit()]
    except OSError:  # it has ended
        return []


def _stat(directory: str) -> list[bytes] | None:
    """What is behind the name in a process's or a thread's `stat`; None if it is not there."""
    try:
        file = os.open(f"{directory}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(file, _STAT_BYTES)
        finally:
            os.close(file)
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()
    return fields if len(fields) > _CPU else None


def _used(fields: list[bytes]) -> Used:
    return Used((int(fields[_USER]) + int(fields[_SYSTEM])) * TICK_NS, int(fields[_CPU]))


def _descends(pid: int, own: int, programs: Programs) -> bool:
    """Whether `pid` is `own` or descends from it. Parents may form a ring: they are not all of one
    moment.
    """
    passed = set[int]()
    while pid != own and pid in programs and pid not in passed:
        passed.add(pid)
        pid = programs[pid].parent
    return pid == own


# The causes, as reports name them.
OTHER_RUNS = "other runs of shrimpmx"
STOLEN = "time stolen by the hypervisor"
LOAD = "load by other programs"
PAUSE = "a pause of the whole run"
# The share of a CPU's time from which on its hypervisor disturbs a run: less is within the spread
# of runs on a quiet machine (ours).
STOLEN_SHARE = 0.01
# The same of other programs, which take turns with the run in the kernel's order: a median bears
# it when a twentieth of all messages meet them (ours).
LOAD_SHARE = 0.05
# The kernel counts in ticks of 10 ms, and one may be of what was taken long before (ours); of
# several programs each may bring one.
STOLEN_MIN_NS, LOAD_MIN_NS = 20_000_000, 50_000_000
# Runs are looked at together with those before them, up to so many seconds (ours).
WINDOW_S = 4.0


@dataclass(frozen=True)
class Figures:
    """What is read before and after a run.

    `neighbours`: the supervisors of runs that go on beside it. `stolen`: what the hypervisor has
    taken from each CPU so far, ns. `programs`: what other programs have used.
    """

    neighbours: Callable[[], list[int]] = other_runs
    stolen: Callable[[], Mapping[int, int]] = stolen_ns
    programs: Callable[[], Programs] = other_programs


HERE = Figures()
# Of a machine that has nothing but the run: a simulated one.
QUIET = Figures(list, dict, dict)


class Outside:
    """Looks at the machine around one run after the other."""

    def __init__(
        self, figures: Figures = HERE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._figures, self._clock = figures, clock
        self._stolen = _Taken(STOLEN_SHARE, STOLEN_MIN_NS)
        self._load = _Taken(LOAD_SHARE, LOAD_MIN_NS)
        self._beside = False
        self._stolen_before: Mapping[int, int] = {}
        self._programs_before: Programs = {}
        self._began_s = 0.0
        self._lasting: Set[str] = frozenset()

    def begin(self) -> None:
        """A run begins."""
        self._beside = bool(self._figures.neighbours())
        self._programs_before = self._figures.programs()
        self._stolen_before = self._figures.stolen()
        self._began_s = self._clock()

    def end(self, outcome: Outcome) -> Set[str]:
        """It has ended: the causes that disturbed it."""
        processes: Any = outcome.placement.get("processes", ())
        cpus = {process["cpu"] for process in processes}
        took_s = self._clock() - self._began_s
        before, now = self._stolen_before, self._figures.stolen()
        stolen = {cpu: now_ns - before.get(cpu, now_ns) for cpu, now_ns in now.items()}
        used = used_meanwhile(self._programs_before, self._figures.programs())
        found = {
            OTHER_RUNS: self._beside or bool(self._figures.neighbours()),
            STOLEN: self._stolen.is_much(took_s, stolen, cpus),
            LOAD: self._load.is_much(took_s, used, cpus),
            PAUSE: outcome.pauses > 0,
        }
        return {cause for cause, there in found.items() if there}

    def may_pass(self, causes: Set[str]) -> bool:
        """Whether a run that these disturbed is worth being taken again."""
        return bool(causes - self._lasting)

    def kept(self, attempts: Sequence[Set[str]]) -> None:
        """A run is kept. The causes that disturbed each of its attempts last, as far as can be
        seen, until one is kept without them.
        """
        self._lasting = frozenset.intersection(*map(frozenset, attempts))


class _Taken:
    """Adds up what one cause takes from the CPUs of runs: `share` of their time is much, but not
    less than `least_ns`.
    """

    def __init__(self, share: float, least_ns: int) -> None:
        self._share, self._least_ns = share, least_ns
        # Of the runs since the last one from which it took much: how long each took, s, and what
        # was taken from each CPU, ns.
        self._calm: list[tuple[float, Mapping[int, int]]] = []

    def is_much(self, took_s: float, lost: Mapping[int, int], cpus: Set[int]) -> bool:
        """Whether one of these CPUs, or any of all if there are none, was away for too long: in
        this run, or in it and some of those before.
        """
        self._calm.append((took_s, lost))
        together_s, taken = 0.0, Counter[int]()
        for number, (run_s, of_run) in enumerate(reversed(self._calm)):
            if number > 0 and together_s + run_s > WINDOW_S:
                del self._calm[:-number]
                break
            together_s += run_s
            taken.update({cpu: ns for cpu, ns in of_run.items() if cpu in cpus or not cpus})
            least_ns = max(self._least_ns, self._share * 1e9 * together_s)
            if max(taken.values(), default=0) >= least_ns:
                self._calm.clear()
                return True
        return False


def disturbance(attempts: Sequence[Set[str]]) -> dict[str, Any]:
    """What is kept of the causes that disturbed a run, attempt by attempt, the last one kept."""
    return {
        "disturbed": bool(attempts[-1]),
        "retaken": sum(map(bool, attempts[:-1])),
        "disturbances": dict(Counter(cause for causes in attempts for cause in sorted(causes))),
    }


def disturbances(runs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The same of runs, or of points, added up."""
    parts = list(runs)
    causes: Counter[str] = Counter()
    for part in parts:
        causes.update(part.get("disturbances", {}))
    return {
        "disturbed": sum(int(part.get("disturbed", 0)) for part in parts),
        "retaken": sum(part.get("retaken", 0) for part in parts),
        "disturbances": dict(causes),
    }


def disturbance_words(points: Iterable[Mapping[str, Any]]) -> str:
    """Which runs of a result were disturbed, in a line; "" if none was."""
    parts = list(points)
    counted = disturbances(parts)
    kept, retaken = counted["disturbed"], counted["retaken"]
    if not kept + retaken:
        return ""
    causes = ", ".join(f"{cause} {count}" for cause, count in counted["disturbances"].items())
    runs = sum(len(part.get("states", ())) for part in parts)
    return (
        f"runs disturbed from outside: {kept} of {runs} kept, {retaken} repeated "
        f"({causes or 'causes not kept'})"
    )
