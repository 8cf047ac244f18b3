"""The interface between what a run is and how it runs."""

from __future__ import annotations

import os
from typing import Any, Protocol

from shrimpmx.cluster.engine.onlooker import Onlooker
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec


class Engine(Protocol):
    """Runs what a ClusterSpec describes: `Forked` by real processes on this machine, `Simulated` on
    emulated hosts.

    `name` is that of --engine. `is_real`: times are this machine's. `onlooker` is told how runs go
    on.
    """

    name: str
    is_real: bool
    onlooker: Onlooker | None

    def describe(self) -> dict[str, Any]:
        """What a result says of it: `engine`, its name, and what its times depend on beside the
        result's parameters and environment.
        """
        return {"engine": self.name}

    def cpus(self) -> int | None:
        """How many CPUs it has for the agents of a run; None: as many as they need."""
        return len(os.sched_getaffinity(0))

    def run(self, spec: ClusterSpec) -> ClusterResult:
        """Run it to the end and return the figures; leaves nothing behind, however it ends.

        Raises InputError when the spec asks for what there is not, AgentError if a rank or an agent
        fails, dies or takes more than `spec.deadline_s` seconds, MachineError where this machine
        cannot run it, NotHereError if the engine cannot, or there are no CPUs for it.
        """

    def place(self, spec: ClusterSpec) -> Placement:
        """Where run() would run it. PlacementError if there are no CPUs for it."""
