"""How fast the simulated engine goes: packets and half round trips per second of real time."""

from __future__ import annotations

import sys
import time

from shrimpmx.bench.benchmark import RUN_DEADLINE_S, Benchmark, Sample, one_figure
from shrimpmx.bench.receive_path import receive_spec
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation.engine import Simulated

BOUND_BY = "the simulating CPU"
# Half round trips of a run per second that it is to take: about what a slow machine does.
EXCHANGES_PER_SECOND = 200_000
# Of the half round trips of ranks in this process, what ranks that are programs are to take.
SHARE_OF_PROGRAMS = 0.1
# The workload, as a program.
PROGRAM = """
import time, shrimpmx
from shrimpmx.cluster.nics.kind import kind_of
with shrimpmx.join() as rank:
    began_ns = time.perf_counter_ns()
    kind_of(rank.seat.run.nic).workloads["pingpong"](rank)
    rank.samples["took_ns"] = [time.perf_counter_ns() - began_ns]
"""
# Of the receive path's specification, whose count is for real processes.
SHARE_OF_REAL = 0.25


def simulated_benchmarks() -> list[Benchmark]:
    """The rows of the simulated engine."""
    return [
        Benchmark("simulated.receive_path_128B", "msg/s", _receive_path, 3, cpus=1),
        Benchmark("simulated.pingpong_0B", "half round trips/s", _pingpong, 3, cpus=1),
        Benchmark("simulated.programs_0B", "half round trips/s", _programs, 3, cpus=1),
    ]


def _receive_path(seconds: float) -> Sample:
    spec = receive_spec(SHARE_OF_REAL * seconds, "stream", "block", 0, 1)
    began = time.perf_counter()
    result = Simulated().run(spec)
    took = time.perf_counter() - began
    return one_figure(result.counters["rank0"]["recv_messages"] / took, BOUND_BY)


def _pingpong(seconds: float) -> Sample:
    iterations = max(1000, int(seconds * EXCHANGES_PER_SECOND / 2))
    began = time.perf_counter()
    Simulated().run(_pair(iterations))
    return one_figure(2 * iterations / (time.perf_counter() - began), BOUND_BY)


def _programs(seconds: float) -> Sample:
    """The same by real processes, from when they have met."""
    iterations = max(1000, int(seconds * EXCHANGES_PER_SECOND * SHARE_OF_PROGRAMS / 2))
    result = Simulated().run(_pair(iterations, (sys.executable, "-c", PROGRAM)))
    took_ns = int(result.samples["rank0"]["took_ns"][0])
    return one_figure(2 * iterations / took_ns * 1e9, BOUND_BY)


def _pair(iterations: int, command: tuple[str, ...] = ()) -> ClusterSpec:
    options = {"size_bytes": 0, "iterations": iterations, "warmup": 0}
    return ClusterSpec(
        ranks=tuple(
            RankSpec(node, "pingpong", options=options, command=command) for node in range(2)
        ),
        nic=NicParameters(coalescing="disabled"),
        wait=WaitParameters(strategy="block"),
        deadline_s=RUN_DEADLINE_S,
    )
