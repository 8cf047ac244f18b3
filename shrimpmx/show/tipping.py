"""Where ways to wait change places as a run of the kernel's scheduler becomes dearer.

The waiting paper's order (figure 3) holds at the costs of 1996. From the points of a sweep over the
cost of a reschedule follows, for each cost of an interrupt, the one at which two ways take equally
long: by linear interpolation between neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from shrimpmx.results.metrics import shown_figures

METRIC = "wall_time"
RESCHEDULE, INTERRUPT = "reschedule_cost_ns", "interrupt_time_ns"
# The loser and the winner as reschedules become dearer: the paper's best and the best pure one;
# and the two pure ones whose order turns round where the scheduler costs next to nothing.
CHANGES = (("block", "spin-block"), ("sched", "block"))

PointData = Mapping[str, Any]
# The cost of a reschedule, and what two ways to wait take there.
PairTimes = tuple[float, float, float]


def crossings(times: Sequence[PairTimes]) -> list[float]:
    """The costs at which the first way changes places with the second; `times` by rising cost.

    Equal times count as "not longer".
    """
    found = []
    for (left, one, other), (right, next_one, next_other) in itertools.pairwise(times):
        before, after = one - other, next_one - next_other
        if (before > 0) != (after > 0):
            found.append(left + (right - left) * before / (before - after))
    return found


def tipping_lines(points: Sequence[PointData]) -> list[str]:
    """For each cost of an interrupt that was run, where each of CHANGES happens."""
    lines = []
    for interrupt in sorted({_cost(point, INTERRUPT) for point in points}):
        here = [point for point in points if _cost(point, INTERRUPT) == interrupt]
        words = [_change(here, over, under) for over, under in CHANGES]
        if any(words):
            told = "; ".join(word for word in words if word)
            lines.append(f"interrupt {_microseconds(interrupt)}: {told}")
    return lines


def _cost(point: PointData, name: str) -> float:
    return float(point["params"].get(name, 0))


def _microseconds(cost_ns: float) -> str:
    return f"{cost_ns / 1000:.3g} µs"


def _times(points: Sequence[PointData], wait: str) -> dict[float, float]:
    """The wall time of a way to wait, by the cost of a reschedule."""
    return {
        _cost(point, RESCHEDULE): float(shown_figures(point["metrics"][METRIC])["median"])
        for point in points
        if point["params"].get("wait") == wait
        and "unavailable" not in point["metrics"].get(METRIC, {"unavailable": ""})
    }


def _change(points: Sequence[PointData], over: str, under: str) -> str:
    """Where one way begins to take longer than the other; '' with fewer than two costs."""
    longer, other = _times(points, over), _times(points, under)
    times = [(cost, longer[cost], other[cost]) for cost in sorted(longer.keys() & other.keys())]
    if len(times) < 2:
        return ""
    found = crossings(times)
    takes_longer = f"{over} takes longer than {under}"
    begins_longer = times[0][1] > times[0][2]
    if not found:
        most = _microseconds(times[-1][0])
        return f"{takes_longer} at {'each' if begins_longer else 'no'} cost up to {most}"
    words = " and ".join(map(_microseconds, found))
    if len(found) > 1:
        return f"{over} and {under} change places at {words} per reschedule"
    return f"{takes_longer} {'up to' if begins_longer else 'from'} {words} per reschedule"
