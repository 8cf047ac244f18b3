"""Figures of simulated hosts with any costs, each simulated once."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shrimpmx.cluster.place.topology import Topology
from shrimpmx.errors import InputError, MachineError, ShrimpmxError
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.fit.measurements import HOSTS, Measurement
from shrimpmx.experiment.own_code import code_of_programs
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress import Progress
from shrimpmx.experiment.remote.dispatch import Cluster, Remote
from shrimpmx.experiment.remote.messages import Job, is_error
from shrimpmx.experiment.run_data import RunData, run_data
from shrimpmx.experiment.scenario import RunPlan
from shrimpmx.native.cores import die_with_parent, realtime_permitted
from shrimpmx.native.files import open_to_append
from shrimpmx.results.runs import ANY
from shrimpmx.settings.platform import DELIVERY, Entry, Platform
from shrimpmx.simulation.engine import Simulated
from shrimpmx.simulation.one_machine import OneMachine

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
# Costs by the keys of a platform, such as "model.wake_ns".
Values = Mapping[str, float]
# The least that a figure counts as: a run that fails, or has none, is far from every other one.
NOTHING = 1e-9


def with_values(platform: Platform, values: Values) -> Platform:
    """The platform with these values in place of its own; the way of an interrupt to its core is a
    part of the whole.
    """
    way, whole = f"model.{DELIVERY}", values.get("costs.interrupt_to_handler")
    if way in values and whole is not None:
        values = {**values, way: min(values[way], whole)}
    tables: dict[str, dict[str, Entry]] = {}
    for key, value in values.items():
        table, _, name = key.partition(".")
        entries = tables.setdefault(table, dict(getattr(platform, table)))
        entries[name] = entries[name].model_copy(update={"value": max(1, round(value))})
    return platform.model_copy(update=tables)


def point_on(point: Point, platform: Platform) -> Point:
    """A measurement's run on hosts of the platform."""
    parameters = point.parameters
    wanted = parameters.platform.model_copy(update={"profile": platform})
    return replace(point, parameters=parameters.model_copy(update={"platform": wanted}))


def simulated_value(measurement: Measurement, platform: Platform, seed: int) -> float:
    """The measurement's figure on simulated hosts of the platform; NOTHING if a run has none."""
    value = _figure_of(measurement.point(), measurement, platform, seed)
    divisor = measurement.divisor()
    return value / _figure_of(divisor, measurement, platform, seed) if divisor else value


def _figure_of(point: Point, measurement: Measurement, platform: Platform, seed: int) -> float:
    point = point_on(point, platform)
    free = {name: {"median": 0.0} for name in needed_costs([point])}
    try:
        outcome = ClusterExecutor(_engine_of(measurement, platform), costs=free)(point, seed)
    except ShrimpmxError:
        return NOTHING
    return value_of(run_data(point, outcome, (measurement.metric,), ANY, ()), measurement)


def _engine_of(measurement: Measurement, platform: Platform) -> Simulated:
    if measurement.on == HOSTS:
        return Simulated()
    scheduler = platform.host.get("scheduler")
    name = OneMachine.scheduler if scheduler is None else str(scheduler.value)
    return Simulated(OneMachine(Topology.of_this_machine(), realtime_permitted(), name))


def value_of(run: RunData, measurement: Measurement) -> float:
    """The figure of a run; NOTHING if it has none."""
    samples = run["metrics"].get(measurement.metric, {}).get("samples", ())
    return max(NOTHING, float(np.median(samples))) if len(samples) else NOTHING


def _serve(parent: int) -> None:
    """The parent alone answers the terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)


def _job_of(measurements: Sequence[Measurement], platform: Platform) -> Job:
    """What other machines need for the runs of measurements on hosts of the platform."""
    points = [point_on(one.point(), platform) for one in measurements]
    return Job(
        engine=Simulated.name,
        metrics=tuple(sorted({one.metric for one in measurements})),
        directory=os.getcwd(),
        needed_costs=tuple(sorted(needed_costs(points))),
    )


class _Remote(Remote):
    """A run that fails there has no figures, as here."""

    def read(self, reply: object, worker: str) -> RunData:
        """The run of a reply, without figures if it failed."""
        return {"metrics": {}} if is_error(reply) else super().read(reply, worker)


@dataclass
class _Figures:
    """What runs elsewhere are made for: all with one seed."""

    seed: int
    progress: Progress | None = None

    def seed_of(self, _plan: RunPlan) -> int:
        """The seed of a run."""
        return self.seed

    def check_program(self, point: Point) -> dict[str, str]:
        """The digests of a run's program."""
        return code_of_programs([point])

    def forget(self, indices: Iterable[int]) -> None:
        """No run is kept, and none is made again."""


class Predictor:
    """Figures of `measurements` on hosts of `platform` with other values, by `workers` processes,
    or on a `cluster`.

    Known figures are kept in the file `kept`, if there is one, and not simulated again.
    """

    def __init__(
        self,
        measurements: Sequence[Measurement],
        platform: Platform,
        seed: int = 1,
        workers: int = 1,
        kept: Path | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.measurements, self.platform = measurements, platform
        self.simulated = 0
        self._seed, self._kept, self._workers, self._cluster = seed, kept, workers, cluster
        self._known = dict(_kept_in(kept)) if kept is not None else {}
        self._pool = (
            ProcessPoolExecutor(workers, get_context("fork"), _serve, (os.getpid(),))
            if workers > 1 and cluster is None
            else None
        )
        if cluster is not None and any(one.on != HOSTS for one in measurements):
            raise InputError(
                "measurements with on = 'machine' are simulated here, not by workers elsewhere: "
                "leave --scheduler out"
            )
        self._remote = (
            _Remote(cluster, _job_of(measurements, platform), real=False) if cluster else None
        )

    def beside(self, measurements: Sequence[Measurement]) -> Predictor:
        """One of other measurements on the same hosts, made by the same machines."""
        return Predictor(
            measurements, self.platform, self._seed, self._workers, self._kept, self._cluster
        )

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def check(self, values: Values) -> None:
        """InputError for the first measurement that hosts with these values have no figure of."""
        (figures,) = self.logs([values], range(len(self.measurements)))
        for one, figure in zip(self.measurements, figures, strict=True):
            if figure <= math.log(2 * NOTHING):
                raise InputError(
                    f"{one.where}: simulated hosts of {self.platform.name} give no {one.metric} "
                    "with this measurement's settings: change these, or remove the measurement"
                )

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
        if self._remote is not None:
            found: Iterable[float] = self._found_remotely(self._remote, jobs)
        elif self._pool is None:
            found = (simulated_value(*job) for job in jobs)
        else:
            found = self._pool.map(simulated_value, *zip(*jobs, strict=True)) if jobs else ()
        for key, value in zip(missing, found, strict=True):
            self._known[key] = value
            self.simulated += 1
        if self._kept is not None and missing:
            _keep(self._kept, {key: self._known[key] for key in missing})

    def _found_remotely(
        self, remote: _Remote, jobs: Sequence[tuple[Measurement, Platform, int]]
    ) -> list[float]:
        plans = [
            RunPlan(index, point_on(measurement.point(), platform), 0)
            for index, (measurement, platform, _) in enumerate(jobs)
        ]
        runs = {plan.index: run for plan, run in remote(_Figures(self._seed), plans)}
        return [value_of(runs[index], jobs[index][0]) for index in range(len(jobs))]

    def _key(self, values: Values, index: int) -> str:
        one = self.measurements[index]
        rounded = {name: max(1, round(value)) for name, value in values.items()}
        what = [rounded, one.settings, one.metric, one.on, self._seed]
        return json.dumps(what, sort_keys=True)


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
