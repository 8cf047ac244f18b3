"""Runs of a sweep that one machine makes, since they are compared with each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shrimpmx.experiment.point import Point
from shrimpmx.experiment.run_data import RunData
from shrimpmx.experiment.scenario import RunPlan, Scenario
from shrimpmx.results.environment import same_machine
from shrimpmx.results.expectation import compared_points


@dataclass
class Unit:
    """Runs for one place; `made` are those that are there, by index."""

    plans: list[RunPlan]
    made: dict[int, RunData] = field(default_factory=dict)
    lost: int = 0

    @property
    def missing(self) -> list[RunPlan]:
        """What is still to be run, in the sweep's order."""
        return [plan for plan in self.plans if plan.index not in self.made]

    @property
    def machine(self) -> dict[str, Any] | None:
        """The machine that has made runs of it; None: none yet, or it does not matter."""
        return next((run.get("machine") for run in self.made.values()), None)

    def take(self, plan: RunPlan, run: RunData) -> list[int]:
        """Keep a run. Returns the indices of those that are not kept any longer, since another
        machine has made them.
        """
        apart = [
            index
            for index, other in self.made.items()
            if not same_machine(other.get("machine"), run.get("machine"))
        ]
        for index in apart:
            del self.made[index]
        self.made[plan.index] = run
        return apart


def single_runs(plans: Iterable[RunPlan]) -> list[Unit]:
    """Each run by itself."""
    return [Unit([plan]) for plan in plans]


def compared_runs(
    scenario: Scenario, points: Sequence[Point], plans: Sequence[RunPlan]
) -> list[Unit]:
    """All runs of points that the scenario compares, by its axis or by what must come out."""
    group = list(range(len(points)))
    for members in _compared(scenario, points):
        merged = {group[index] for index in members}
        group = [min(merged) if each in merged else each for each in group]
    units: dict[int, Unit] = {}
    for plan in plans:
        units.setdefault(group[plan.point.index], Unit([])).plans.append(plan)
    return list(units.values())


def _compared(scenario: Scenario, points: Sequence[Point]) -> Iterator[list[int]]:
    """The indices of points that are compared with each other."""
    rows: dict[str, list[int]] = {}
    for point in points:
        rest = {name: v for name, v in point.shown.items() if name != scenario.compare}
        key = json.dumps(rest, sort_keys=True, default=str)
        rows.setdefault(key, []).append(point.index)
    yield from rows.values()
    shown = [{"params": point.shown, "index": point.index} for point in points]
    for expectation in scenario.expectations:
        for compared in compared_points(expectation, shown):
            yield [each["index"] for each in compared]
