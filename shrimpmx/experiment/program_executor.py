"""Runs an MPI program as a point of a sweep, with what the user says of its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.experiment.clusters import Clusters, needed_costs, never_joined
from shrimpmx.experiment.engines import check_real_hosts
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.point import Point
from shrimpmx.native.records import dataclass, replace
from shrimpmx.native.streams import tell

if TYPE_CHECKING:
    from shrimpmx.experiment.recording import Recording
    from shrimpmx.results.metrics import Outcome


# How long all ranks may wait before it is told.
SILENCE_S = 10.0


@dataclass
class ProgramExecutor:
    """Runs points of an MPI program, and keeps what `recording` says: an Executor of a sweep. Of
    several `runs` of one point, whose seeds count from 1, and of `draws` of its platform, it
    announces each.
    """

    engine: Engine
    points: Clusters
    launches: list[Launch]
    deadline_s: float
    silence_s: float
    profiles: str
    recording: Recording | None = None
    grace_s: float = ClusterSpec.grace_s
    runs: int = 1
    draws: int = 0
    paused_s: float = 0.0
    spec: ClusterSpec | None = None
    result: ClusterResult | None = None

    def spec_of(self, point: Point, seed: int) -> ClusterSpec:
        """The cluster, with what the user says of the program."""
        kept = self.recording
        spec = self.points.spec_of(
            point,
            seed,
            traced=kept is not None and kept.traced,
            capture=None if kept is None else kept.capture,
        )
        ranks = zip(spec.ranks, self.launches, strict=True)
        return replace(
            spec,
            ranks=tuple(replace(rank, launch=launch) for rank, launch in ranks),
            deadline_s=self.deadline_s,
            silence_s=self.silence_s,
            grace_s=self.grace_s,
            profiles=self.profiles,
        )

    def run(self, point: Point, seed: int) -> ClusterResult:
        """Run it."""
        if self.runs > 1:
            tell(f"shrimpmx: run {seed} of {self.runs}")
        if self.draws:
            number = point.parameters.platform.draw
            tell(
                f"shrimpmx: draw {number} of {self.draws}"
                if number
                else "shrimpmx: the most probable costs"
            )
        self.spec = self.spec_of(point, seed)
        self.result = self.engine.run(self.spec)
        self.paused_s += self.result.paused_s
        if self.recording is not None:
            self.recording.keep(point, seed, self.spec, self.result)
        return self.result

    def __call__(self, point: Point, seed: int) -> Outcome:
        result = self.run(point, seed)
        assert self.spec is not None
        from shrimpmx.experiment.outcome import outcome_of

        return outcome_of(self.spec, result)

    def notes(self) -> Iterator[str]:
        """What is to be said of the runs: that the last one was of no MPI program, that times hold
        pauses, what its trace lacks.
        """
        if self.spec is not None and self.result is not None and self.result.absent:
            yield str(never_joined(self.spec))
        if self.paused_s:
            yield (
                f"the run stood still, or without a CPU, for {self.paused_s:.1f} s, included in "
                "its times"
            )
        yield from self.recording.untold if self.recording is not None else ()


def program_costs(point: Point, engine: Engine) -> Costs | None:
    """This machine's costs, if the program's cluster depends on them."""
    if engine.is_real:
        check_real_hosts([point])
    if point.parameters.platform.name == "none" and not needed_costs([point]):
        return None
    from shrimpmx.experiment.machine_costs import costs_for  # most programs start without it

    return costs_for([point], None, engine)
