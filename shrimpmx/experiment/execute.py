"""Running points of a sweep, and the timeline of one of their messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.experiment.clusters import Clusters, never_joined
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.ranks import needs_t_block, t_block_ns
from shrimpmx.experiment.recording import Recording, geometry_of, seats_of
from shrimpmx.results.metrics import Outcome
from shrimpmx.show.timeline import Timeline, message_timeline
from shrimpmx.wait.waiting_strategy import WaitingStrategy

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
