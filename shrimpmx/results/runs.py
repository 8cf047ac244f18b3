"""The runs behind a point's figures: their samples, the CPUs' distance, what limited them.

A time measured while the CPUs were near says nothing beside one measured while they were far,
so times are taken from runs of one state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from shrimpmx.results.statistics import Samples
from shrimpmx.settings.core_lists import format_core_list

# Of a run whose times do not depend on the CPUs' distance.
ANY = "any"
# In order of preference where as many runs had one as another. Only the first three name
# something that two measurements can have in common.
STATES = ("near", "far", ANY, "mixed", "unknown")
DISTANCES = STATES[:3]

# From this dilation on the CPUs' distance is no matter: a hand-over differs by 0.4 us between near
# and far, some ten of which are a percent or two of a dilated message's 100 us and more; and an
# interrupt takes its emulated time in both (ours, docs/decisions.md).
DISTANCE_DILATION = 4.0

ONE_CPU = "one CPU only, so nothing runs in parallel"
OVERSUBSCRIBED = "too few CPUs: several emulated cores share one"
NORMAL_PRIORITY = "no real-time priority, so interrupts do not preempt"


def main_state(states: Sequence[str]) -> str:
    """The state that most runs had."""
    return max(STATES, key=lambda state: (states.count(state), -STATES.index(state)))


def runs_of(
    metric: Mapping[str, Any], state: str | None = None, *, undisturbed: bool = False
) -> list[Samples]:
    """The samples of a metric of a point, run by run; those of one `state`, or all; `undisturbed`:
    of runs that nothing disturbed from outside.
    """
    samples = np.asarray(metric["samples"], dtype=np.float64)
    repeats = metric.get("repeats") or [{"state": "unknown", "count": samples.size}]
    ends = np.cumsum([part["count"] for part in repeats])
    return [
        samples[end - part["count"] : end]
        for part, end in zip(repeats, ends, strict=True)
        if part["count"]
        and (state is None or part["state"] == state)
        and not (undisturbed and part.get("disturbed"))
    ]


def is_exact(metric: Mapping[str, Any]) -> bool:
    """Whether a metric of a point is of simulated hosts and no run would give another figure: it
    has no interval, and equals another such figure or differs from it.
    """
    return bool(metric.get("exact", False))


def limits_of(placements: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why times of runs that were placed so say little, in a few words each; the worst first."""
    found: set[str] = set()
    for placement in placements:
        if len({process["cpu"] for process in placement.get("processes", ())}) == 1:
            found.add(ONE_CPU)
        if placement.get("oversubscribed", False):
            found.add(OVERSUBSCRIBED)
        if not placement.get("realtime", True):
            found.add(NORMAL_PRIORITY)
    return [limit for limit in (ONE_CPU, OVERSUBSCRIBED, NORMAL_PRIORITY) if limit in found]


def steered_words(nodes: Iterable[int]) -> list[str]:
    """Why nothing of a run can be judged in which interrupts of these nodes were steered.

    It had neither the affinities of its parameters nor the placement made for them. One reason,
    or none without nodes.
    """
    numbers = sorted(set(nodes))
    if not numbers:
        return []
    node = f"node{'s' if len(numbers) > 1 else ''} {format_core_list(numbers)}"
    return [f"interrupts of {node} were redirected during the run (shrimpmx affinity)"]
