"""Figures of simulated hosts with any costs, each simulated once."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shrimpmx.errors import MachineError, ShrimpmxError
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.fit.measurements import Measurement
from shrimpmx.native.cores import die_with_parent
from shrimpmx.native.files import open_to_append
from shrimpmx.results.metrics import METRICS
from shrimpmx.settings.platform import Entry, Platform
from shrimpmx.simulation.engine import Simulated

Vector = NDArray[np.float64]
# Costs by the keys of a platform, such as "model.wake_ns".
Values = Mapping[str, float]
# The least that a figure counts as: a run that fails, or has none, is far from every other one.
NOTHING = 1e-9


def with_values(platform: Platform, values: Values) -> Platform:
    """The platform with these values in place of its own."""
    tables: dict[str, dict[str, Entry]] = {}
    for key, value in values.items():
        table, _, name = key.partition(".")
        entries = tables.setdefault(table, dict(getattr(platform, table)))
        entries[name] = entries[name].model_copy(update={"value": max(1, round(value))})
    return platform.model_copy(update=tables)


def simulated_value(measurement: Measurement, platform: Platform, seed: int) -> float:
    """The measurement's figure on simulated hosts of the platform; NOTHING if a run has none."""
    point = measurement.point()
    parameters = point.parameters
    wanted = parameters.platform.model_copy(update={"profile": platform})
    point = replace(point, parameters=parameters.model_copy(update={"platform": wanted}))
    free = {name: {"median": 0.0} for name in needed_costs([point])}
    try:
        outcome = ClusterExecutor(Simulated(), costs=free)(point, seed)
    except ShrimpmxError:
        return NOTHING
    samples = METRICS[measurement.metric].compute(outcome)
    if isinstance(samples, str) or samples.size == 0:
        return NOTHING
    return max(NOTHING, float(np.median(samples)))


def _serve(parent: int) -> None:
    """The parent alone answers the terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)


class Predictor:
    """Figures of `measurements` on hosts of `platform` with other values, by `workers` processes.

    Known figures are kept in the file `kept`, if there is one, and not simulated again.
    """

    def __init__(
        self,
        measurements: Sequence[Measurement],
        platform: Platform,
        seed: int = 1,
        workers: int = 1,
        kept: Path | None = None,
    ) -> None:
        self.measurements, self.platform = measurements, platform
        self.simulated = 0
        self._seed, self._kept = seed, kept
        self._known = dict(_kept_in(kept)) if kept is not None else {}
        self._pool = (
            ProcessPoolExecutor(workers, get_context("fork"), _serve, (os.getpid(),))
            if workers > 1
            else None
        )

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def logs(self, several: Sequence[Values], which: Iterable[int]) -> list[Vector]:
        """For each of the `several` sets of values: logarithms of the figures of the measurements
        `which`.
        """
        which = list(which)
        wanted = {
            self._key(values, index): (values, index) for values in several for index in which
        }
        self._find({key: each for key, each in wanted.items() if key not in self._known})
        return [
            np.array([math.log(self._known[self._key(values, index)]) for index in which])
            for values in several
        ]

    def _find(self, missing: Mapping[str, tuple[Values, int]]) -> None:
        jobs = [
            (self.measurements[index], with_values(self.platform, values), self._seed)
            for values, index in missing.values()
        ]
        if self._pool is None:
            found: Iterable[float] = (simulated_value(*job) for job in jobs)
        else:
            found = self._pool.map(simulated_value, *zip(*jobs, strict=True)) if jobs else ()
        for key, value in zip(missing, found, strict=True):
            self._known[key] = value
            self.simulated += 1
        if self._kept is not None and missing:
            _keep(self._kept, {key: self._known[key] for key in missing})

    def _key(self, values: Values, index: int) -> str:
        one = self.measurements[index]
        rounded = {name: max(1, round(value)) for name, value in values.items()}
        return json.dumps([rounded, one.settings, one.metric, self._seed], sort_keys=True)


def _keep(path: Path, found: Mapping[str, float]) -> None:
    """Add figures to the file of an interrupted fit. MachineError if that cannot be written."""
    lines = "".join(json.dumps(each) + "\n" for each in found.items())
    try:
        with os.fdopen(open_to_append(path), "w", encoding="utf-8") as file:
            file.write(lines)
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error.strerror}") from error


def _kept_in(path: Path) -> Iterator[tuple[str, float]]:
    """The figures of an interrupted fit; its last line may be cut."""
    if not path.exists():
        return
    for line in path.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError, TypeError):
            key, value = json.loads(line)
            yield str(key), float(value)
