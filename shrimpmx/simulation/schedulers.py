"""The schedulers of simulated CPUs, by name."""

from __future__ import annotations

from collections.abc import Callable

from shrimpmx.native.drawing import stream_of
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.simulation.eevdf import EevdfScheduler
from shrimpmx.simulation.fair import FairScheduler
from shrimpmx.simulation.gang import GangMatrix, GangScheduler
from shrimpmx.simulation.goodness import GoodnessScheduler
from shrimpmx.simulation.scheduler import Scheduler

# Of a CPU, given its number.
MakeScheduler = Callable[[int], Scheduler]

# A task of nice 0 has 20 ticks of 10 ms (Linux 2.0).
GOODNESS_SLICE_NS = 200_000_000
TICK_NS = 10_000_000
# All CPUs are the same host's: it has no more.
ONE_HOST = 2**31


def schedulers_of(
    host: HostParameters, model: HostModelParameters, seed: int = 1, cpus_per_host: int = ONE_HOST
) -> MakeScheduler:
    """What makes the schedulers of the CPUs of such hosts, whose clocks' phases follow `seed`."""
    slice_ns = host.time_slice_ns or model.slice_ns
    if host.scheduler == "gang":
        matrix = GangMatrix(slice_ns)
        return lambda cpu: GangScheduler(matrix, cpu)
    tick_ns = TICK_NS if host.scheduler == "goodness" else model.tick_ns

    def make(cpu: int) -> Scheduler:
        scheduler = _scheduler_of(host, model, slice_ns)
        # Of two hosts neither starts the other's clock.
        draw = stream_of("ticks", seed, cpu // cpus_per_host)
        share = draw.random() if model.tick_phase == "random" else 0.0
        scheduler.use_ticks(tick_ns, int(tick_ns * share))
        return scheduler

    return make


def _scheduler_of(host: HostParameters, model: HostModelParameters, slice_ns: int) -> Scheduler:
    if host.scheduler == "eevdf":
        return EevdfScheduler(slice_ns)
    if host.scheduler == "goodness":
        slice_ns = host.time_slice_ns or GOODNESS_SLICE_NS
        return GoodnessScheduler(slice_ns, host.sched_yield, host.wake_ups)
    fixed = host.time_slice_ns > 0
    return FairScheduler(slice_ns, model.wakeup_ns, host.scheduler == "batch", fixed)
