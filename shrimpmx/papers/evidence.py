"""What a result can be evidence of: the points behind a statistic, and what they were run with:
which values the figures of claims have set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from shrimpmx.costs.table import CHARGED
from shrimpmx.experiment.platform import platform_of, ranks_per_cpu
from shrimpmx.experiment.point import Point, PointParameters
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.results.expectation import compared_points
from shrimpmx.results.expectation_kinds import Expectation
from shrimpmx.settings.declared import Declared
from shrimpmx.settings.platform import Platform

# This machine as it is.
NO_PLATFORM = "none"
# What a result rests on: nothing fitted; hosts that figures of other tables fitted; an option that
# no source settles; hosts that the claim's own table fitted; what could not come out otherwise.
INDEPENDENT, HELD_OUT, VARIANT = "independent", "held out", "variant"
CALIBRATED, INVARIANT = "calibrated", "invariant"
EVIDENCE = (INDEPENDENT, HELD_OUT, VARIANT, CALIBRATED, INVARIANT)


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
        values = self._values(scenario, points)
        return sorted({name for name, claims in values if figures_of & set(claims)})

    def is_fitted(self, scenario: str, points: Sequence[Point]) -> bool:
        """Whether a figure of any claim set a parameter of these points."""
        return any(self._values(scenario, points))

    def _values(
        self, scenario: str, points: Sequence[Point]
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The parameters of points with the claims whose figures set them."""
        for point in points:
            found: Calibrated = calibrated_by(
                self._scenarios[scenario], point.parameters, self.real
            )
            yield from found.items()

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


Calibrated = dict[str, tuple[str, ...]]
# The claim that showed that ranks on one CPU need a longer dilation.
SHARED_CPUS = ("IC-20",)


def calibrated_by(scenario: Scenario, parameters: PointParameters, real: bool) -> Calibrated:
    """By parameter, the claims whose figures set its value, as a point of the scenario uses it: the
    platform's where neither scenario nor user sets another value, and the scenario's own. Those of
    a host's model are used by simulated hosts only, that is unless `real`.
    """
    found = dict(scenario.calibrated_by)
    platform = platform_of(parameters)
    if platform is None:
        return found
    platform = platform.held_out(parameters.platform.held_out)
    own = _set_here(parameters)
    for name, (value, claims) in _values(platform, real).items():
        if claims and own.get(name, value) == value and _is_used(name, parameters):
            found[name] = claims
    dilation = parameters.platform.time_dilation
    if real and dilation == "auto" and ranks_per_cpu(parameters) > 1:
        found["time_dilation"] = SHARED_CPUS
    return found


def _values(platform: Platform, real: bool) -> Mapping[str, tuple[Any, tuple[str, ...]]]:
    """Each value of a platform with the claims that it was calibrated by, by parameter."""
    platform = platform.on(real=real)
    model = {} if real else platform.model
    given = {**platform.nic, **platform.host, **platform.mx, **model}
    return {
        **{name: (each.value, each.chosen_by) for name, each in given.items()},
        **{
            CHARGED[name].name: (cost.value, cost.chosen_by)
            for name, cost in platform.costs.items()
        },
    }


def _set_here(parameters: PointParameters) -> dict[str, Any]:
    """What scenario and user set."""
    groups: tuple[Declared, ...] = (
        *(parameters.nic, parameters.host, parameters.mx, parameters.wait, parameters.model),
    )
    return {name: getattr(group, name) for group in groups for name in group.model_fields_set}


def _is_used(name: str, parameters: PointParameters) -> bool:
    """Whether a value matters to the point: a notification's handler runs for those that ask."""
    return name != "handler_cost_ns" or parameters.wait.strategy.endswith("notify")
