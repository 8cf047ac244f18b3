"""Which claims' own figures set the values that a point is run with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shrimpmx.costs.table import CHARGED
from shrimpmx.experiment.platform import platform_of, ranks_per_cpu
from shrimpmx.experiment.point import PointParameters
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.settings.declared import Declared
from shrimpmx.settings.platform import Platform

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
        **{name: (each.value, each.calibrated_by) for name, each in given.items()},
        **{
            CHARGED[name].name: (cost.value, cost.calibrated_by)
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
