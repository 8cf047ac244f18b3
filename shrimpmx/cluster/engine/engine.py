"""The interface between what a run is and how it runs."""

from __future__ import annotations

from typing import Protocol

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec


class Engine(Protocol):
    """Runs what a ClusterSpec describes: `Forked` by real processes on this machine, `Simulated` on
    emulated hosts.

    `name` is that of --engine. `is_real`: times are this machine's.
    """

    name: str
    is_real: bool

    def run(self, spec: ClusterSpec) -> ClusterResult:
        """Run it to the end and return the figures; leaves nothing behind, however it ends.

        Raises InputError when the spec asks for what there is not, AgentError if a rank or an agent
        fails, dies or takes more than `spec.deadline_s` seconds, MachineError where this machine
        cannot run it.
        """

    def place(self, spec: ClusterSpec) -> Placement:
        """Where run() would run it. PlacementError if there are no CPUs for it."""
