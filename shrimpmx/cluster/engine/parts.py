"""What the supervisor of a run and the processes of its agents share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.cluster.spec import ClusterSpec


@dataclass
class RunParts:
    """A run's plan, its memory, its channel and its scratch directory."""

    spec: ClusterSpec
    placement: Placement
    memory: RunMemory
    channel: ControlChannel
    directory: Path
    supervisor_pid: int
