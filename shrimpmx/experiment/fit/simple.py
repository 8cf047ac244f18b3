"""Two simple predictors to compare with: Hockney's line for each setting, and LogGP for all.

Hockney (1994): a message of n bytes takes alpha + beta n, by setting. LogGP (Alexandrov and others
1995): a message arrives after L + 2o + G n, and one follows the other after max(g, G n).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from shrimpmx.experiment.fit.measurements import Measurement
from shrimpmx.results.metrics import METRICS

Predict = Callable[[Measurement], float]
Vector = NDArray[np.float64]


def is_rate(measurement: Measurement) -> bool:
    """Whether it counts messages per second; else it is as a time."""
    return METRICS[measurement.metric].unit.endswith("/s")


def time_of(measurement: Measurement) -> float:
    """Of a message, in an unknown unit that all of the metric have."""
    return 1 / measurement.value if is_rate(measurement) else measurement.value


def _figure(measurement: Measurement, time: float) -> float:
    return 1 / time if is_rate(measurement) else time


def hockney(known: Sequence[Measurement]) -> Predict:
    """A line for each setting and metric; for a setting that is not known that of its metric's
    figures of all settings, and 1 for another metric.
    """
    lines: dict[object, tuple[float, float]] = {}
    for key in (lambda one: (one.setting, one.metric), lambda one: one.metric):
        parts = defaultdict(list)
        for one in known:
            parts[key(one)].append(one)
        lines |= {name: _line(part) for name, part in parts.items()}

    def predicted(one: Measurement) -> float:
        alpha, beta = lines.get((one.setting, one.metric)) or lines.get(one.metric, (1.0, 0.0))
        return _figure(one, max(alpha + beta * one.size_bytes, 1e-12))

    return predicted


def _line(some: Sequence[Measurement]) -> tuple[float, float]:
    """Alpha and beta by least squares of relative errors; constant, if all have one length."""
    sizes = np.array([float(one.size_bytes) for one in some])
    times = np.array([time_of(one) for one in some])
    if np.ptp(sizes) == 0:
        return float(np.median(times)), 0.0
    rows = np.stack([np.ones_like(sizes), sizes], axis=1) / times[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(rows, np.ones_like(times), rcond=None)
    return float(alpha), max(0.0, float(beta))


def loggp(known: Sequence[Measurement]) -> Predict:
    """L + 2o, g and G of all figures together, by least squares of their logarithms."""
    from scipy.optimize import least_squares

    def times(parameters: Vector, some: Sequence[Measurement]) -> Vector:
        latency, gap, per_byte = np.exp(parameters)
        return np.array(
            [
                max(gap, per_byte * one.size_bytes) / 1e3
                if is_rate(one)
                else latency + per_byte * one.size_bytes
                for one in some
            ]
        )

    wanted = np.log([time_of(one) for one in known])
    begin = np.log([10.0, 1.0, 1e-3])
    found = least_squares(lambda at: np.log(times(at, known)) - wanted, begin, loss="soft_l1")
    return lambda one: _figure(one, float(times(found.x, [one])[0]))
