"""The schedulers of simulated CPUs, by name."""

from __future__ import annotations

from collections.abc import Callable

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


def schedulers_of(host: HostParameters, model: HostModelParameters) -> MakeScheduler:
    """What makes the schedulers of the CPUs of such hosts."""
    slice_ns = host.time_slice_ns or model.slice_ns
    if host.scheduler == "eevdf":
        return lambda _cpu: EevdfScheduler(slice_ns)
    if host.scheduler == "goodness":
        ticks_ns = host.time_slice_ns or GOODNESS_SLICE_NS
        return lambda _cpu: GoodnessScheduler(ticks_ns, host.sched_yield)
    if host.scheduler == "gang":
        matrix = GangMatrix(slice_ns)
        return lambda cpu: GangScheduler(matrix, cpu)
    batch = host.scheduler == "batch"
    return lambda _cpu: FairScheduler(slice_ns, model.wakeup_ns, batch)
