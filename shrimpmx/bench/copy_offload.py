"""What copy offload is worth here: the same ping-pong of long messages with and without it."""

from __future__ import annotations

import numpy as np

from shrimpmx.bench.benchmark import RUN_DEADLINE_S, Sample, one_figure
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.nic import NicParameters

SIZE_BYTES = 1 << 20
WARMUP = 5
ITERATIONS_MIN = 20
# A long round trip; what is left of the time is for starting processes.
ROUND_TRIP_S = 0.01


def throughput_ratio(engine: Engine, seconds: float) -> Sample:
    """Rate of 1 MiB messages with offload divided by the rate without, and what bound that run.

    No link limit: at 10 Gb/s a copy is faster than the link, and there would be nothing to
    gain. `seconds` is for both runs.
    """
    iterations = max(ITERATIONS_MIN, int(seconds / 2 / ROUND_TRIP_S))
    without, _ = _half_round_trip_ns(engine, iterations, copy_offload=False)
    with_offload, placement = _half_round_trip_ns(engine, iterations, copy_offload=True)
    return one_figure(without / with_offload, _what_binds(placement))


def _half_round_trip_ns(
    engine: Engine, iterations: int, copy_offload: bool
) -> tuple[float, Placement]:
    options = {"size_bytes": SIZE_BYTES, "iterations": iterations, "warmup": WARMUP}
    spec = ClusterSpec(
        ranks=tuple(RankSpec(node, "pingpong", options=options) for node in range(2)),
        nic=NicParameters(coalescing="stream", link_bits_per_second=0, dma_bytes_per_second=0),
        host=HostParameters(copy_offload=copy_offload),
        wait=WaitParameters(strategy="block"),
        deadline_s=RUN_DEADLINE_S,
    )
    result = engine.run(spec)
    samples = result.samples["rank0"]["half_round_trip_ns"]
    return float(np.median(samples)), result.placement


def _what_binds(placement: Placement) -> str:
    """Without a CPU for the dma agents the copies only change hands."""
    used = [process.cpu for process in placement.processes]
    cpus = [process.cpu for process in placement.processes if process.role == "dma"]
    if all(used.count(cpu) == 1 for cpu in cpus):
        return "the handlers"
    return "the CPU that handler, copies and rank share"
