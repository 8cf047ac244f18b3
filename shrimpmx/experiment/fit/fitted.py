"""The outcome of a fit: a platform whose costs have intervals, figures, and predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from shrimpmx.experiment.fit.held_out import FITTED, PREDICTORS, Prediction, groups_of, orders
from shrimpmx.experiment.fit.measurements import Measurement
from shrimpmx.experiment.fit.predictor import with_values
from shrimpmx.experiment.fit.profile import NORMAL_95
from shrimpmx.experiment.fit.solve import Solution
from shrimpmx.settings.platform import Entry, Platform

SCHEMA = 1
# What the document says that it is.
KIND = "fit"
# Two costs whose logarithms are correlated by more than that trade off (ours).
TRADES_OFF = 0.9
# From the distribution of the costs (ours).
DRAWS = 50


@dataclass(frozen=True)
class Fit:
    """A fit of `measurements` that began with `base`; `predictions`: of groups left out. `origin`:
    where it comes from, `steps`: what to measure next (next_step.py).
    """

    base: Platform
    measurements: Sequence[Measurement]
    solution: Solution
    predictions: Sequence[Prediction]
    simulated: int
    origin: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[Mapping[str, Any]] = ()

    def platform(self, name: str, seed: int) -> Platform:
        """The fitted platform, as one of that name; `seed`: of its draws."""
        groups = tuple(groups_of(self.measurements))
        draws = self.solution.draws(DRAWS, seed)
        values = self.solution.values
        fitted = with_values(self.base, values)
        tables: dict[str, dict[str, Entry]] = {}
        for index, one in enumerate(self.solution.varied):
            table, _, field = one.key.partition(".")
            low, high = self.solution.interval(index)
            source = (
                f"fit of {len(self.measurements)} measurements"
                if self.solution.is_determined(index)
                else "left open by the measurements: between its value on the platform "
                f"{self.base.name} and theirs"
            )
            entries = tables.setdefault(table, dict(getattr(fitted, table)))
            entries[field] = Entry(
                value=entries[field].value,
                origin="fitted",
                source=f"{source}; {one.value:g} on {self.base.name}",
                interval=(round(low), round(high)),
                fitted_by=groups,
                draws=tuple(max(1, round(value)) for value in draws[:, index]),
                hosts=entries[field].hosts,
            )
        title = f"fit of {', '.join(groups)}, begun with {self.base.name}"
        return fitted.model_copy(update={**tables, "name": name, "title": title})

    def trade_offs(self) -> Iterator[tuple[str, str, float]]:
        """Pairs of costs that the data tell together only, with their correlation."""
        covariance, deviations = self.solution.covariance, self.solution.deviations
        correlation = covariance / np.outer(deviations, deviations)
        for one, other in combinations(range(len(deviations)), 2):
            if abs(correlation[one, other]) > TRADES_OFF:
                first, second = self.solution.varied[one].key, self.solution.varied[other].key
                yield first, second, float(correlation[one, other])

    def document(self) -> dict[str, Any]:
        """All of it as JSON."""
        solution = self.solution
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "origin": dict(self.origin),
            "base": self.base.name,
            "simulated_runs": self.simulated,
            "model_deviation": solution.model,
            "costs": [
                {
                    "name": one.key,
                    "begun_with": one.value,
                    "range": list(one.range),
                    "value": float(np.exp(solution.logs[index])),
                    "interval95": list(solution.interval(index)),
                    "determined": solution.is_determined(index),
                }
                for index, one in enumerate(solution.varied)
            ],
            "trade_offs": [list(each) for each in self.trade_offs()],
            "measurements": [
                {**_measured(one), **self._simulated(index)}
                for index, one in enumerate(self.measurements)
            ],
            "next": list(self.steps),
            "held_out": self.held_out(),
            "predictions": [
                {
                    **_measured(one.measurement),
                    **one.by,
                    "simulated": one.by[FITTED],
                    "interval95": list(one.interval),
                }
                for one in self.predictions
            ],
        }

    def _simulated(self, index: int) -> dict[str, Any]:
        middle = self.solution.figures[index]
        width = NORMAL_95 * self.solution.figure_deviation(index, 0.0)
        ends = (float(np.exp(middle - width)), float(np.exp(middle + width)))
        return {"simulated": float(np.exp(middle)), "interval95": list(ends)}

    def held_out(self) -> dict[str, Any]:
        """How well groups that were left out are predicted; empty if none was."""
        if not self.predictions:
            return {}
        found: dict[str, Any] = {
            "figures": len(self.predictions),
            "inside_interval95": sum(one.is_inside for one in self.predictions),
        }
        for name in PREDICTORS:
            certain, kept = orders(self.predictions, name)
            errors = [one.error(name) for one in self.predictions]
            found[name] = {
                "median_error": float(np.median(errors)),
                "orders": certain,
                "orders_kept": kept,
            }
        return found


def _measured(one: Measurement) -> dict[str, Any]:
    return {
        "group": one.group,
        "settings": dict(one.settings),
        "metric": one.metric,
        "measured": one.value,
        "uncertainty": one.uncertainty,
    }
