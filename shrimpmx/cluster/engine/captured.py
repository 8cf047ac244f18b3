"""The frames that a run's capture holds at its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.native.capture import Capture, CapturedFrame


@dataclass(frozen=True)
class Captured:
    """The last frames of the `ends` of links, by time; `passed`: how many there were at each end.

    `snap_bytes`: kept of each, at most. `epoch_ns`: what to add to a time of the run's clock for
    that since 1970; 0 where the clock is a virtual one.
    """

    ends: Sequence[str]
    frames: Sequence[CapturedFrame]
    passed: Sequence[int]
    snap_bytes: int
    epoch_ns: int = 0


def captured_of(memory: RunMemory, capture: Capture) -> Captured:
    """All that the capture of a run, whose memory this is, has kept."""
    control = memory.control
    epoch_ns = 0 if control.is_virtual else time.time_ns() - control.now_ns()
    passed = [capture.written(end) for end in range(len(memory.link_ends))]
    return Captured(memory.link_ends, capture.frames(), passed, capture.snap_bytes, epoch_ns)
