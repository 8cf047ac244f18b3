"""The runs that claims are judged by: enough of each point that compare with one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from shrimpmx.results.expectation import CLAIM_RUNS
from shrimpmx.results.runs import ANY, main_state
from shrimpmx.study.run_data import RunData
from shrimpmx.study.scenario import RunPlan
from shrimpmx.study.sweep import Sweep, every_run

# How often runs that do not compare are made again: a machine that flips all the time gives no
# more of one distance.
ROUNDS = 2


def comparable_runs(sweep: Sweep) -> Iterator[RunPlan]:
    """Every run of a sweep; then again, ROUNDS times at most, runs of points that have fewer than
    CLAIM_RUNS with the CPUs at the distance of most runs, and undisturbed unless most are not.

    Which run is made again depends on these two alone, never on a figure.
    """
    yield from every_run(sweep)
    for _ in range(ROUNDS):
        yield from _again(sweep.plans, {**sweep.runs})


def _again(plans: Sequence[RunPlan], runs: dict[int, RunData]) -> list[RunPlan]:
    unfit = _unfit(runs)
    enough = Counter(plan.point.index for plan in plans if plan.index not in unfit)
    found = []
    for plan in plans:
        if plan.index in unfit and enough[plan.point.index] < CLAIM_RUNS:
            enough[plan.point.index] += 1
            found.append(plan)
    return found


def _unfit(runs: dict[int, RunData]) -> set[int]:
    """The runs, by index, that do not compare with most of the others."""
    disturbed = {index for index, run in runs.items() if run.get("disturbed")}
    if 2 * len(disturbed) > len(runs):
        disturbed = set()
    distances = [run["state"] for run in runs.values() if run["state"] in ("near", "far")]
    usual = main_state(distances) if distances else None
    apart = {i for i, run in runs.items() if usual and run["state"] not in (ANY, usual)}
    return disturbed | apart
