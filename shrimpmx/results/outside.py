"""What disturbs runs from outside, as figures before and after each of them tell.

A machine that is disturbed for a moment gives better figures when a run is taken again; one that
is disturbed all the time does not, and would only take longer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from shrimpmx.results.environment import other_runs, stolen_ns
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.other_programs import Programs, other_programs, used_meanwhile

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
        f"runs disturbed from outside: {kept} of {runs} are kept so, {retaken} were taken again "
        f"({causes or 'causes not kept'})"
    )
