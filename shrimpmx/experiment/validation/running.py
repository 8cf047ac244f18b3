"""Runs of points on real processes and simulated, in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.errors import AgentError, InterruptedRunError, ShrimpmxError
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.measuring import UNDISTURBED, Measuring
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress import Progress
from shrimpmx.experiment.scenario import RunPlan, Scenario
from shrimpmx.experiment.validation.comparison import PACKETS, Compared, compared
from shrimpmx.native.cores import realtime_permitted
from shrimpmx.results.disturbance import disturbances
from shrimpmx.results.runs import ANY, DISTANCES
from shrimpmx.results.statistics import Samples
from shrimpmx.settings.platform import THIS_MACHINE, Platform
from shrimpmx.simulation.engine import Simulated
from shrimpmx.simulation.one_machine import OneMachine

# On what a point is simulated.
HOSTS, MACHINE = "hosts", "machine"
ENGINES = ("real", "simulated")


@dataclass
class Pair:
    """A point of a family, real and simulated, and what its runs gave by metric. Real runs are
    compared in which the CPUs were as far apart as in `state`; where that is not near or far, all.
    """

    family: Scenario
    real: Point
    simulated: Point
    state: str = ANY
    model: str = HOSTS
    impossible: str = ""
    failed: str = ""

    def __post_init__(self) -> None:
        self.runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}

    def rows(self) -> Iterator[Compared]:
        """What can be compared of them; nothing of a point that failed."""
        if self.failed:
            return
        for metric in (*self.family.metrics, PACKETS):
            found = [
                [samples for run in runs if (samples := self._samples(run, metric)).size]
                for runs in (self.compared_runs(), self.runs["simulated"])
            ]
            if all(found):
                params = dict(self.real.shown)
                yield compared(self.family.name, params, metric, self.model, found[0], found[1])

    def compared_runs(self) -> list[dict[str, Any]]:
        """The real runs that are compared."""
        every = self.state not in DISTANCES or self.state == ANY
        return [run for run in self.runs["real"] if every or run["state"] in (self.state, ANY)]

    def _samples(self, run: dict[str, Any], metric: str) -> Samples:
        """The figures of a run; empty if it has none."""
        if metric != PACKETS:
            return np.array(run["metrics"][metric].get("samples", ()))
        work = self.real.parameters.workload
        counters = run["counters"].items()
        taken = [each.get("recv_packets", 0) for name, each in counters if ".irq" in name]
        return np.array([sum(taken) / (work.iterations + work.warmup)] if any(taken) else ())


class Validation:
    """Runs the points of `families` in turn, so that what changes on the machine changes for all.

    A point is simulated on hosts of its own where its real run has a CPU for each core and its
    NICs; else on one machine, whose NICs and handlers are processes there as in the real run.
    `state`: how far apart the CPUs were when `platform` was measured. `most`: so many points of
    each family at most.
    """

    def __init__(
        self,
        families: Sequence[Scenario],
        platform: Platform,
        seed: int = 1,
        most: int | None = None,
        state: str = ANY,
    ) -> None:
        self._seed, self._state = seed, state
        self._real = ClusterExecutor(Forked())
        scheduler = str(platform.host["scheduler"].value)
        machine = Topology.of_this_machine()
        one = OneMachine(machine, realtime_permitted(), scheduler)
        self._engines = {HOSTS: Simulated(), MACHINE: Simulated(one)}
        self.pairs = [
            self._pair(family, real, simulated)
            for family in families
            for real, simulated in zip(
                family.points()[:most], _simulated(family).points()[:most], strict=True
            )
        ]
        costs = {
            name: {"median": 0.0} for name in needed_costs(pair.simulated for pair in self.pairs)
        }
        self._simulated = {
            model: ClusterExecutor(engine, costs=costs) for model, engine in self._engines.items()
        }
        self._measuring: dict[tuple[str, str], Measuring] = {}

    def _pair(self, family: Scenario, real: Point, simulated: Point) -> Pair:
        pair = Pair(family, real, simulated, self._state)
        try:
            placement = self._real.placement_of(real)
        except ShrimpmxError as error:
            pair.impossible = str(error)
        else:
            pair.model = HOSTS if _has_cpus_enough(placement) else MACHINE
        return pair

    @property
    def axes(self) -> list[str]:
        """The axes that tell points of a family apart."""
        return list(dict.fromkeys(x for pair in self.pairs for x in pair.family.varying_axes))

    def take_turns(self, repeats: int, progress: Progress) -> None:
        """So many runs of each point on each engine, in turn; then as many turns again at most for
        real runs whose CPUs were at another distance.
        """
        progress.begin(repeats * len(self.pairs), 0)
        try:
            for number in range(repeats):
                for pair in self.pairs:
                    plan = RunPlan(pair.real.index, pair.real, number)
                    turn = f"{pair.family.name} in turn {number + 1} of {repeats}"
                    progress.running(plan, turn)
                    self.take(pair, number)
                    progress.finished(plan)
            for number in range(repeats, 2 * repeats):
                for pair in self.lacking(repeats):
                    plan = RunPlan(pair.real.index, pair.real, number)
                    progress.running(plan, f"{pair.family.name} again")
                    self.take(pair, number, ("real",))
        finally:
            progress.end()

    def take(self, pair: Pair, number: int, engines: Sequence[str] = ENGINES) -> None:
        """One run of a point on each engine, in that turn; none of one that fails, from then on."""
        for engine in engines if number % 2 == 0 else reversed(engines):
            if pair.impossible or pair.failed:
                return
            try:
                run = self._run(pair, engine, self._seed + number)
            except InterruptedRunError:
                raise
            except AgentError as error:
                pair.failed = f"{engine} run: {error}"
                return
            pair.impossible = run.get("impossible", "")
            if not pair.impossible:
                pair.runs[engine].append(run)

    def _run(self, pair: Pair, engine: str, seed: int) -> dict[str, Any]:
        point = pair.real if engine == "real" else pair.simulated
        return self._measure(pair, engine)(point, seed)

    def _measure(self, pair: Pair, engine: str) -> Measuring:
        key = (pair.family.name, engine if engine == "real" else pair.model)
        if key not in self._measuring:
            metrics = pair.family.metrics
            if engine == "real":
                self._measuring[key] = Measuring(self._real, metrics)
            else:
                self._measuring[key] = Measuring(
                    self._simulated[pair.model], metrics, **UNDISTURBED
                )
        return self._measuring[key]

    def lacking(self, count: int) -> list[Pair]:
        """The points of which fewer real runs than that can be compared, though none has failed."""
        able = [pair for pair in self.pairs if not (pair.impossible or pair.failed)]
        return [pair for pair in able if len(pair.compared_runs()) < count]

    def rows(self, least: int = 1) -> list[Compared]:
        """All that can be compared, of points with `least` real runs for it."""
        able = (pair for pair in self.pairs if len(pair.compared_runs()) >= least)
        return [row for pair in able for row in pair.rows()]

    def failures(self) -> list[dict[str, Any]]:
        """The points that failed, and why."""
        return [
            {"family": pair.family.name, "params": dict(pair.real.shown), "reason": pair.failed}
            for pair in self.pairs
            if pair.failed
        ]

    def distances(self, least: int = 1) -> dict[str, Any]:
        """How far apart the CPUs were in the calibration; how many real runs are left aside since
        they were not, by their distance; and how many points have fewer than `least` other ones.
        """
        aside: Counter[str] = Counter()
        for pair in self.pairs:
            aside.update(run["state"] for run in pair.runs["real"])
            aside.subtract(run["state"] for run in pair.compared_runs())
        counts = {"left_aside": dict(+aside), "not_compared": len(self.lacking(least))}
        return {"state": self._state, **counts}

    def disturbances(self) -> dict[str, Any]:
        """How many real runs were disturbed, and taken again, by cause."""
        return disturbances(run for pair in self.pairs for run in pair.runs["real"])


def _simulated(family: Scenario) -> Scenario:
    return family.changed([f"platform={THIS_MACHINE}"])


def _has_cpus_enough(placement: Placement) -> bool:
    """Whether each core and each NIC that is used has a CPU that nothing else uses."""
    cpus = list(placement.core_cpus.values())
    return placement.nic_alone and len(set(cpus)) == len(cpus)
