"""The runs that claims are judged by: enough of each point that compare with one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from shrimpmx.experiment.run_data import RunData
from shrimpmx.experiment.scenario import RunPlan
from shrimpmx.experiment.sweep import Sweep, every_run
from shrimpmx.papers.evidence import points_of
from shrimpmx.results.expectation import CLAIM_RUNS
from shrimpmx.results.expectation_kinds import Expectation, is_time
from shrimpmx.results.runs import ANY, main_state

# How often a run is made again at most: a machine that flips all the time gives no more of one
# distance.
ROUNDS = 2


@dataclass(frozen=True)
class ComparableRuns:
    """An order of a sweep (`Sweep.order`) that claims are judged by: every run, then some of them
    again.

    Points that these expectations compare get CLAIM_RUNS runs that nothing disturbed, of a time
    with the CPUs at the distance of most runs: others are made again, ROUNDS times at most; none
    where most runs are disturbed. It looks at no figure.
    """

    expectations: Sequence[Expectation]

    def __call__(self, sweep: Sweep) -> Iterator[RunPlan]:
        """The runs to make, each by those that are there when it is asked for."""
        yield from every_run(sweep)
        compared = self._points(sweep, times=False)
        timed = self._points(sweep, times=True)
        usual = _usual(sweep.runs.values())

        def compares(plan: RunPlan) -> bool:
            run = sweep.runs[plan.index]
            alike = plan.point.index not in timed or not usual or run["state"] in (ANY, usual)
            return alike and not run.get("disturbed")

        for _ in range(ROUNDS if _is_calm(sweep.runs.values()) else 0):
            made = (plan for plan in sweep.plans if plan.index in sweep.runs)
            plans = [plan for plan in made if plan.point.index in compared]
            enough = Counter(plan.point.index for plan in plans if compares(plan))
            for plan in plans:
                spent = sweep.runs[plan.index].get("made_again", 0) >= ROUNDS
                if enough[plan.point.index] < CLAIM_RUNS and not compares(plan) and not spent:
                    enough[plan.point.index] += 1
                    yield plan

    def _points(self, sweep: Sweep, *, times: bool) -> set[int]:
        """The points that are compared; or those of them by `times`. What the protocol alone
        decides takes all runs as they are.
        """
        return {
            point.index
            for expected in self.expectations
            if not expected.exact and (is_time(expected.metric) or not times)
            for point in points_of(expected, sweep.points)
        }


def _usual(runs: Collection[RunData]) -> str | None:
    """The distance of the CPUs in most runs; None if no run has one that matters."""
    distances = [run["state"] for run in runs if run["state"] in ("near", "far")]
    return main_state(distances) if distances else None


def _is_calm(runs: Collection[RunData]) -> bool:
    """Whether most runs were not disturbed."""
    return 2 * sum(bool(run.get("disturbed")) for run in runs) <= len(runs)
