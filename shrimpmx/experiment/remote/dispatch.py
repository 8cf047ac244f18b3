"""Which run goes where: places take units as they become free, and lost runs are made again;
what is compared with each other, one machine makes.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from shrimpmx.errors import AgentError
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress import Progress, awaited_words
from shrimpmx.experiment.remote.messages import Job, Task, run_of
from shrimpmx.experiment.run_data import RunData
from shrimpmx.experiment.scenario import RunPlan, Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.environment import machines_of, same_machine
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


# A run that is lost so often may be what kills its workers (ours).
LOST_MAX = 3


@dataclass(frozen=True)
class Place:
    """A worker: the name of its machine, and how many runs it makes at a time."""

    machine: str
    runs: int


class Cluster(Protocol):
    """Workers that come and go. Addresses tell them apart."""

    address: str

    def places(self) -> dict[str, Place]:
        """The workers that there are now, by address; AgentError if that cannot be known."""

    def begin(self, worker: str, job: str, task: str) -> Any:
        """Let a worker begin a run; returns what tells it from others."""

    def ended(self) -> Iterable[tuple[Any, object]]:
        """The runs that have ended meanwhile, each with its reply, or None if it is lost; waits for
        the next one for a while.
        """

    def give_up(self, runs: Iterable[Any]) -> None:
        """Forget runs, and end them if they go on."""


class Work(Protocol):
    """What runs are made for: a sweep, or figures that no result keeps."""

    progress: Progress | None

    def seed_of(self, plan: RunPlan) -> int:
        """The seed of a run."""

    def check_program(self, point: Point) -> dict[str, str]:
        """The digests of a run's program."""

    def forget(self, indices: Iterable[int]) -> None:
        """Keep these runs no longer: they are to be made again."""


@dataclass
class _Running:
    unit: Unit
    plan: RunPlan
    worker: str


class Remote:
    """Makes runs of a sweep on the workers of a cluster: a Beside of the sweep.

    Real runs that are compared with each other are made by one machine.
    """

    def __init__(self, cluster: Cluster, job: Job, *, real: bool) -> None:
        self._cluster, self._job, self._real = cluster, job, real
        self._job_text = job.text()
        self._waiting: deque[Unit] = deque()
        self._running: dict[Any, _Running] = {}
        # What machines have told about themselves, by name.
        self._machines: dict[str, dict[str, Any]] = {}
        self._places: dict[str, Place] = {}

    def __call__(
        self, sweep: Work, missing: Sequence[RunPlan]
    ) -> Iterator[tuple[RunPlan, RunData]]:
        """Each plan with its run, as it is finished; again, if another machine has to make it."""
        self._waiting.extend(self._units(sweep, missing))
        try:
            while self._waiting or self._running:
                self._places = self._cluster.places()
                self._take_back_lost()
                self._hand_out(sweep)
                if sweep.progress:
                    sweep.progress.waits_for(self._awaited())
                for run, reply in self._cluster.ended():
                    yield from self._taken(sweep, self._running.pop(run), reply)
        finally:
            self._cluster.give_up(list(self._running))

    def _awaited(self) -> str:
        """What the sweep waits for now, in words."""
        count, workers = len(self._running), len({each.worker for each in self._running.values()})
        if not count:
            return f"a worker of {self._cluster.address}"
        return awaited_words(count, workers)

    def _units(self, sweep: Work, missing: Sequence[RunPlan]) -> list[Unit]:
        if not self._real:
            return single_runs(missing)
        assert isinstance(sweep, Sweep)
        # Machines go on with the costs that they had when the sweep was interrupted.
        for machine in machines_of(sweep.runs.values()):
            self._machines[machine["name"]] = dict(machine)
        units = compared_runs(sweep.scenario, sweep.points, sweep.plans)
        for unit in units:
            unit.made = {p.index: sweep.runs[p.index] for p in unit.plans if p.index in sweep.runs}
        return [unit for unit in units if unit.missing]

    def _hand_out(self, sweep: Work) -> None:
        busy = Counter(running.worker for running in self._running.values())
        for worker, place in self._places.items():
            for _ in range(place.runs - busy[worker]):
                unit = self._unit_for(place)
                if unit is None:
                    break
                self._begin(sweep, unit, worker)

    def _unit_for(self, place: Place) -> Unit | None:
        """The next one: one that the place's machine has begun, else one that no other machine
        which is there has begun.
        """
        if not self._real:
            return self._waiting.popleft() if self._waiting else None
        others = {each.machine for each in self._places.values()} - {place.machine}
        begun = {id(unit): (unit.machine or {}).get("name") for unit in self._waiting}
        free = [unit for unit in self._waiting if begun[id(unit)] not in others]
        if not free:
            return None
        unit = next((unit for unit in free if begun[id(unit)] == place.machine), free[0])
        self._waiting.remove(unit)
        return unit

    def _begin(self, sweep: Work, unit: Unit, worker: str) -> None:
        plan = unit.missing[0]
        task = Task.of(
            plan.point,
            sweep.seed_of(plan),
            sweep.check_program(plan.point),
            self._machines.get(self._places[worker].machine),
        )
        run = self._cluster.begin(worker, self._job_text, task.text())
        self._running[run] = _Running(unit, plan, worker)

    def _taken(
        self, sweep: Work, running: _Running, reply: object
    ) -> Iterator[tuple[RunPlan, RunData]]:
        unit, plan, worker = running.unit, running.plan, running.worker
        if reply is None:
            self._lost(running)
            return
        run = self.read(reply, worker)
        if self._real:
            self._machines[run["machine"]["name"]] = run["machine"]
        sweep.forget(unit.take(plan, run))
        yield plan, run
        if unit.missing:
            # The same worker: what is compared is not left to another machine.
            self._begin(sweep, unit, worker)

    def read(self, reply: object, worker: str) -> RunData:
        """The run of a reply; its error, raised again, if it has none."""
        return run_of(reply, worker, real=self._real)

    def _take_back_lost(self) -> None:
        for run, running in list(self._running.items()):
            if running.worker not in self._places:
                self._cluster.give_up([run])
                self._lost(self._running.pop(run))

    def _lost(self, running: _Running) -> None:
        unit = running.unit
        unit.lost += 1
        if unit.lost > LOST_MAX:
            raise AgentError(
                f"run {running.plan.index} was lost with {unit.lost} workers, the last "
                f"one {running.worker}: the worker's log may tell why"
            )
        self._waiting.appendleft(unit)
