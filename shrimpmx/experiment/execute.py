"""Running points of a sweep, and the timeline of one of their messages."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.costs.table import CHARGED
from shrimpmx.errors import NotHereError
from shrimpmx.experiment.clusters import Clusters, check_points, never_joined
from shrimpmx.experiment.machine_costs import costs_to_keep
from shrimpmx.experiment.measuring import UNDISTURBED
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress import Quiet
from shrimpmx.experiment.ranks import INTERRUPT, T_BLOCK, needs_t_block, t_block_ns
from shrimpmx.experiment.recording import Recording, geometry_of, seats_of, timeline_of
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.environment import software
from shrimpmx.results.metrics import Outcome
from shrimpmx.show.timeline import Timeline, message_timeline
from shrimpmx.wait.waiting_strategy import WaitingStrategy

# Neither placement nor what can be run depends on a cost, so both need no calibration.
ANY_COSTS: Costs = {name: {"median": 1.0} for name in (*CHARGED, T_BLOCK, INTERRUPT)}
# Messages of a run whose last one is shown: the first one connects, and finds cold caches.
TIMELINE_MESSAGES = 4


class ClusterExecutor(Clusters):
    """Runs points on emulated clusters, by an engine, and keeps what `recording` says."""

    def __init__(
        self,
        engine: Engine,
        policies: Mapping[str, Callable[[], Any]] | None = None,
        costs: Costs | None = None,
        waits: Mapping[str, Callable[[], WaitingStrategy]] | None = None,
        recording: Recording | None = None,
    ) -> None:
        super().__init__(engine, policies, costs, waits)
        self._recording = recording or Recording()

    def __call__(self, point: Point, seed: int) -> Outcome:
        """Run one point in fresh processes. Raises AgentError, MachineError or InputError."""
        recording = self._recording
        spec = self.spec_of(point, seed, traced=recording.traced, capture=recording.capture)
        result = self._engine.run(recording.applied_to(spec, point, seed))
        if result.absent:
            raise never_joined(spec, result.absent[0])
        recording.keep(point, seed, spec, result)
        return outcome_of(spec, result, self._t_block_ns(point))

    def traced(self, point: Point, seed: int) -> tuple[Outcome, Timeline]:
        """What a run of a point gives, and all that its agents recorded."""
        spec = self.spec_of(point, seed, traced=True)
        result = self._engine.run(spec)
        return outcome_of(spec, result, self._t_block_ns(point)), timeline_of(point, spec, result)

    def _t_block_ns(self, point: Point) -> float | None:
        """Of a point that depends on it, whatever else the costs are for."""
        if not needs_t_block(point.parameters):
            return None
        return t_block_ns(self.emulated(point), self._costs)

    def timeline(self, point: Point, seed: int) -> Timeline:
        """The timeline of one message of a point, in a run of its own: tracing takes time."""
        few = {"iterations": TIMELINE_MESSAGES, "warmup": 0}
        work = point.parameters.workload.model_copy(update=few)
        parameters = point.parameters.model_copy(update={"workload": work})
        short = dataclasses.replace(point, parameters=parameters)
        spec = self.spec_of(short, seed, traced=True)
        result = self._engine.run(self._recording.applied_to(spec, point, seed))
        return message_timeline(
            result.records,
            result.agents,
            geometry_of(point),
            processes=result.processes,
            seats=seats_of(spec),
            switches=result.switches,
        )


def executor_for(
    scenario: Scenario,
    costs: Costs | None,
    engine: Engine,
    recording: Recording | None = None,
) -> ClusterExecutor:
    """What runs a scenario's points; the rest as those of ClusterExecutor."""
    return ClusterExecutor(engine, scenario.policies, costs, scenario.waits, recording)


def checked_points(scenario: Scenario) -> list[Point]:
    """A scenario's points, each of which could be run on some machine; InputError if not."""
    points = scenario.points()
    check_points(points, ANY_COSTS)
    return points


def check_possible(document: Mapping[str, Any]) -> None:
    """NotHereError with the first reason if no point of a result could be measured here."""
    reasons = [point.get("impossible") for point in document["points"]]
    if reasons and all(reasons):
        raise NotHereError(str(reasons[0]))


def sweep_of(
    scenario: Scenario,
    executor: ClusterExecutor,
    output: Path,
    progress: Quiet | None,
    costs: Costs | None,
    engine: Engine,
    *,
    settings: Sequence[str],
    seed: int,
    command: Sequence[str],
    resume: bool = False,
    elsewhere: bool = False,
) -> Sweep:
    """The sweep of a scenario, ready to run into `output`, by the executor with these; `settings`
    have changed the scenario, `command` has the first words of the one that makes it (none: no
    command makes it), and `elsewhere`: other machines make its real runs.
    """
    own: dict[str, Any] = {
        "tracer": executor.timeline,
        "dilation_of": lambda point: executor.emulated(point).dilation,
    }
    if not engine.is_real:
        own |= UNDISTURBED
    elif elsewhere:
        own = {"dilation_of": None, "environment": software}
    engine.onlooker = progress
    return Sweep(
        scenario,
        executor,
        seed=seed,
        output=output,
        resume=resume,
        changes=settings,
        progress=progress,
        made_with={
            "command": shlex.join(
                ["shrimpmx", *repeated(command, settings, seed)]
                + ([] if engine.is_real else ["--engine", engine.name])
            )
            if command
            else "",
            **costs_to_keep(costs),
        },
        engine=engine.describe(),
        cpus=engine.cpus(),
        **own,
    )


def repeated(command: Sequence[str], settings: Iterable[str], seed: int) -> list[str]:
    """A command with settings and seed, which decide what comes out."""
    words = [*command]
    for setting in settings:
        words += ["--set", setting]
    return [*words, "--seed", str(seed)]
