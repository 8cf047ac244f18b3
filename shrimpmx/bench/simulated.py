"""How fast the simulated engine goes: packets and half round trips per second of real time."""

from __future__ import annotations

import time

from shrimpmx.bench.benchmark import RUN_DEADLINE_S, Benchmark, Sample, one_figure
from shrimpmx.bench.receive_path import receive_spec
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.wait import WaitParameters
from shrimpmx.simulation.engine import Simulated

BOUND_BY = "the simulating CPU"
# Half round trips of a run per second that it is to take: about what a slow machine does.
EXCHANGES_PER_SECOND = 200_000
# Of the receive path's specification, whose count is for real processes.
SHARE_OF_REAL = 0.25


def simulated_benchmarks() -> list[Benchmark]:
    """The rows of the simulated engine."""
    return [
        Benchmark("simulated.receive_path_128B", "msg/s", _receive_path, 3, cpus=1),
        Benchmark("simulated.pingpong_0B", "half round trips/s", _pingpong, 3, cpus=1),
    ]


def _receive_path(seconds: float) -> Sample:
    spec = receive_spec(SHARE_OF_REAL * seconds, "stream", "block", 0, 1)
    began = time.perf_counter()
    result = Simulated().run(spec)
    took = time.perf_counter() - began
    return one_figure(result.counters["rank0"]["recv_messages"] / took, BOUND_BY)


def _pingpong(seconds: float) -> Sample:
    iterations = max(1000, int(seconds * EXCHANGES_PER_SECOND / 2))
    options = {"size_bytes": 0, "iterations": iterations, "warmup": 0}
    spec = ClusterSpec(
        ranks=tuple(RankSpec(node, "pingpong", options=options) for node in range(2)),
        nic=NicParameters(coalescing="disabled"),
        wait=WaitParameters(strategy="block"),
        deadline_s=RUN_DEADLINE_S,
    )
    began = time.perf_counter()
    Simulated().run(spec)
    return one_figure(2 * iterations / (time.perf_counter() - began), BOUND_BY)
