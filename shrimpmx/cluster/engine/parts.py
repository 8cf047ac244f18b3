"""What the processes of a run inherit from its supervisor."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from shrimpmx.cluster.engine.channel import ControlChannel
from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec

# The supervisor asks for a stack with this signal.
DUMP_SIGNAL = signal.SIGUSR2


@dataclass
class RunParts:
    """A run's plan, its memory, its channel and its scratch directory."""

    spec: ClusterSpec
    placement: Placement
    memory: RunMemory
    channel: ControlChannel
    directory: Path
    supervisor_pid: int

    def stack_file(self, process: str) -> Path:
        """Where a process's stack goes when the supervisor asks for it."""
        return self.directory / f"{process}.stack"
