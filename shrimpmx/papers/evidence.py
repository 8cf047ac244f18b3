"""What a result can be evidence of: the points behind a statistic, and what they were run with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any

from shrimpmx.experiment.calibrated import Calibrated, calibrated_by
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.results.expectation import compared_points
from shrimpmx.results.expectation_kinds import Expectation

# This machine as it is.
NO_PLATFORM = "none"


class Evidence:
    """How results came about: from runs of `scenarios`, by name, as real processes (`real`) that
    had so many `cpus`, or on simulated hosts, which have as many as they need (None).
    """

    def __init__(self, scenarios: Mapping[str, Scenario], real: bool, cpus: int | None) -> None:
        self.real, self.cpus = real, cpus
        self._scenarios = scenarios
        self._points: dict[str, Sequence[Point]] = {}

    def points(self, scenario: str, expectation: Expectation) -> list[Point]:
        """The points of a scenario that an expectation compares."""
        if scenario not in self._points:
            self._points[scenario] = self._scenarios[scenario].points()
        return points_of(expectation, self._points[scenario])

    def calibrated(self, figures_of: Set[str], scenario: str, points: Sequence[Point]) -> list[str]:
        """The parameters of these points that were set by a figure of those claims."""
        found: set[str] = set()
        for point in points:
            values: Calibrated = calibrated_by(
                self._scenarios[scenario], point.parameters, self.real
            )
            found |= {name for name, claims in values.items() if figures_of & set(claims)}
        return sorted(found)

    def lacks_platform(self, host: str, own_costs: bool, points: Sequence[Point]) -> bool:
        """Whether a point is of other hosts than those of platform `host`. With `own_costs` those
        of real processes may be this machine.
        """
        allowed = (host, NO_PLATFORM) if own_costs and self.real else (host,)
        return any(point.parameters.platform.profile not in allowed for point in points)


def points_of(expectation: Expectation, points: Sequence[Point]) -> list[Point]:
    """Those of the points that an expectation compares."""
    shown: list[dict[str, Any]] = [
        {"params": json.loads(json.dumps(each.shown)), "index": place}
        for place, each in enumerate(points)
    ]
    groups = compared_points(expectation, shown)
    return [points[i] for i in sorted({each["index"] for group in groups for each in group})]
