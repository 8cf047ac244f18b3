"""When the coalescing timers of a NIC tick that run freely: each NIC has a clock of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shrimpmx.native.drawing import stream_of
from shrimpmx.nic.strategies import CoalescingPolicy, TimedPolicy

if TYPE_CHECKING:
    from shrimpmx.settings.nic import NicParameters

RANDOM = "random"


def start_timers(
    policies: Iterable[CoalescingPolicy], parameters: NicParameters, seed: int, node: int
) -> None:
    """Draw how fast the clock of a NIC is, and where in its period the timer of each of its rx
    queues is when the run begins.

    Without it all timers tick at whole multiples of the delay, so that those of two NICs expire at
    the same instant, which no two real ones do.
    """
    draw = stream_of("timers", seed, node)
    drift = draw.uniform(-1, 1) * parameters.rx_timer_drift_ppm * 1e-6
    for policy in policies:
        phase = draw.random()
        if isinstance(policy, TimedPolicy):
            policy.use_clock(phase if parameters.rx_timer_phase == RANDOM else 0.0, drift)
