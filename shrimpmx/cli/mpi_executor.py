"""Runs an MPI program as a point of a sweep, with what the command line says of its ranks."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import InputError
from shrimpmx.experiment.clusters import Clusters, never_joined
from shrimpmx.experiment.point import Point
from shrimpmx.native.streams import tell

if TYPE_CHECKING:
    from shrimpmx.experiment.recording import Recording
    from shrimpmx.results.metrics import Outcome


@dataclass
class ProgramExecutor:
    """Runs points of an MPI program, and keeps what `recording` says: an Executor of a sweep. Of
    several `runs` of one point, whose seeds count from 1, it announces each.
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
    paused_s: float = 0.0
    spec: ClusterSpec | None = None
    result: ClusterResult | None = None

    def spec_of(self, point: Point, seed: int) -> ClusterSpec:
        """The cluster, with what the command line says of the program."""
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
            say(f"run {seed} of {self.runs}")
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

    def say_absent(self) -> None:
        """Whether the run that has ended was none of an MPI program."""
        if self.spec is not None and self.result is not None and self.result.absent:
            say(str(never_joined(self.spec)))

    def say_untold(self) -> None:
        """What its trace lacks, if it has one."""
        for untold in self.recording.untold if self.recording is not None else ():
            say(untold)

    def say_paused(self) -> None:
        """That times hold pauses, if there were any."""
        if self.paused_s:
            say(
                f"the run stood still or got no CPU for {self.paused_s:.1f} s, which its times hold"
            )


def exported(exports: list[str]) -> dict[str, str]:
    """The variables of -x; of one that is not set it says so, as other mpiruns do."""
    found = {}
    for export in exports:
        name, given, value = export.partition("=")
        if not name:
            raise InputError(f"-x takes NAME or NAME=VALUE, not {export!r}")
        if given:
            found[name] = value
        elif name not in os.environ:
            say(f"-x {name}: there is no such environment variable")
    return found


def say(text: str) -> None:
    """To standard error, at once: what ranks print comes behind it."""
    tell(f"shrimpmx: {text}")
