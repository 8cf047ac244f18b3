"""What disturbs runs from outside, as figures before and after each of them tell.

A machine that is disturbed for a moment gives better figures when a run is taken again; one that
is disturbed all the time does not, and would only take longer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from shrimpmx.results.environment import other_runs, stolen_ns
from shrimpmx.results.metrics import Outcome

# The causes, as reports name them.
OTHER_RUNS = "other runs of shrimpmx"
STOLEN = "time stolen by the hypervisor"
PAUSE = "a pause of the whole run"
# The share of a CPU's time from which on its hypervisor disturbs a run: less is within the spread
# of runs on a quiet machine (ours).
STOLEN_SHARE = 0.01
# The kernel counts in ticks of 10 ms, and one may be of what was taken long before (ours).
STOLEN_MIN_NS = 20_000_000
# Runs are looked at together with those before them, up to so many seconds (ours).
WINDOW_S = 4.0

# Finds the runs that go on beside one's own: the pids of their supervisors.
Neighbours = Callable[[], list[int]]
# What the hypervisor has taken from each CPU so far, ns.
Stolen = Callable[[], Mapping[int, int]]


class Outside:
    """Looks at the machine around one run after the other."""

    def __init__(
        self,
        neighbours: Neighbours = other_runs,
        stolen: Stolen = stolen_ns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._neighbours, self._stolen, self._clock = neighbours, stolen, clock
        self._beside = False
        self._stolen_before: Mapping[int, int] = {}
        self._began_s = 0.0
        # Of the runs since the last one that was disturbed by that: how long each took, s, and what
        # was stolen from each CPU, ns.
        self._calm: list[tuple[float, Mapping[int, int]]] = []
        self._lasting: Set[str] = frozenset()

    def begin(self) -> None:
        """A run begins."""
        self._beside = bool(self._neighbours())
        self._stolen_before = self._stolen()
        self._began_s = self._clock()

    def end(self, outcome: Outcome) -> Set[str]:
        """It has ended: the causes that disturbed it."""
        processes: Any = outcome.placement.get("processes", ())
        used = {process["cpu"] for process in processes}
        found = {
            OTHER_RUNS: self._beside or bool(self._neighbours()),
            STOLEN: self._is_stolen_from(used),
            PAUSE: outcome.pauses > 0,
        }
        return {cause for cause, there in found.items() if there}

    def _is_stolen_from(self, used: Set[int]) -> bool:
        """Whether the hypervisor has taken these CPUs, or any of all if there are none, for too
        long: in this run, or in it and some of those before.
        """
        before = self._stolen_before
        lost = {cpu: now_ns - before.get(cpu, now_ns) for cpu, now_ns in self._stolen().items()}
        self._calm.append((self._clock() - self._began_s, lost))
        together_s, taken = 0.0, Counter[int]()
        for number, (took_s, of_run) in enumerate(reversed(self._calm)):
            if number > 0 and together_s + took_s > WINDOW_S:
                del self._calm[:-number]
                break
            together_s += took_s
            taken.update({cpu: ns for cpu, ns in of_run.items() if cpu in used or not used})
            if max(taken.values(), default=0) >= max(
                STOLEN_MIN_NS, STOLEN_SHARE * 1e9 * together_s
            ):
                self._calm.clear()
                return True
        return False

    def may_pass(self, causes: Set[str]) -> bool:
        """Whether a run that these disturbed is worth being taken again."""
        return bool(causes - self._lasting)

    def kept(self, attempts: Sequence[Set[str]]) -> None:
        """A run is kept. The causes that disturbed each of its attempts last, as far as can be
        seen, until one is kept without them.
        """
        self._lasting = frozenset.intersection(*map(frozenset, attempts))


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
        f"runs disturbed from outside ({causes or 'causes not kept'}): {kept} of {runs} are "
        f"kept so, {retaken} were taken again"
    )
