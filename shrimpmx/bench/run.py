"""`shrimpmx bench`: what each part of the emulator costs on this machine, and what binds it.

Every figure is bracketed by a cache-line probe: `state` is near or far, and a turn during
which it changed is dropped ("unknown" with one CPU, which has no distance). Set-ups that are
to be compared take turns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from shrimpmx.bench import copy_offload, host_costs, intra_node
from shrimpmx.bench.matching import exchange
from shrimpmx.bench.probe import probe, round_trips
from shrimpmx.bench.queues import QueueBenchmark, queue_benchmarks
from shrimpmx.bench.receive_path import receive_path
from shrimpmx.bench.ring_pass import ring_pass
from shrimpmx.bench.throughput import throughput
from shrimpmx.bench.waiting import WaitBenchmark, wait_benchmarks
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.results.environment import unavailable
from shrimpmx.results.runs import DISTANCES
from shrimpmx.results.statistics import summarise_runs
from shrimpmx.settings.mx import MemoryName
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import PAPER_COALESCING_NAMES
from shrimpmx.settings.wait import WaitParameters

# A turn during which the CPUs changed their distance is taken again, this often in all.
ATTEMPTS = 3
UNSTEADY = "the CPUs changed their distance during every turn; try again on a quieter machine"
ONE_CPU = "needs two CPUs, this process may use only one"
LINK_BITS_PER_SECOND = 10_000_000_000
RUN_DEADLINE_S = 60.0
# How handlers and other ranks reach a rank's buffer (mx.memory).
MEMORY_KINDS: tuple[MemoryName, ...] = ("heap", "process-vm", "bounce")

Figures = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Figures of one turn of one benchmark, and what bound them."""

    figures: Figures
    bound_by: str


@dataclass(frozen=True)
class Benchmark:
    """One figure: `measure(seconds)` takes one turn; `turns` of them make the result."""

    name: str
    unit: str
    measure: Callable[[float], Sample]
    turns: int = 5
    cpus: int = 2


def run_bench(only: list[str] | None, seconds: float, engine: Engine) -> list[dict[str, Any]]:
    """Measure every benchmark, or those whose names begin with one of `only`.

    `seconds` is about the time of one benchmark, `engine` runs the clusters. Returns the rows of
    `bench --json`: name, unit, samples, median, ci95, state, bound_by; or name, unit and
    unavailable. Raises InputError if `only` names none.
    """
    every = benchmarks(engine)
    chosen = [b for b in every if not only or any(b.name.startswith(o) for o in only)]
    if not chosen:
        names = ", ".join(sorted({b.name.partition("[")[0] for b in every}))
        raise InputError(f"no benchmark begins with {', '.join(only or [])}; there are {names}")
    cpus = sorted(os.sched_getaffinity(0))
    taken: dict[str, list[tuple[Sample, str]]] = {b.name: [] for b in chosen}
    possible = [b for b in chosen if len(cpus) >= b.cpus]
    for turn in range(max((b.turns for b in possible), default=0)):
        for benchmark in possible:
            if turn < benchmark.turns:
                taken[benchmark.name] += bracketed(benchmark, seconds, cpus)
    return [_row(b, taken[b.name], b in possible) for b in chosen]


def bracketed(benchmark: Benchmark, seconds: float, cpus: list[int]) -> list[tuple[Sample, str]]:
    """One turn between two probes, and the distance of the CPUs; none if it never kept still.

    With one CPU there is no distance to change: "unknown".
    """
    for _attempt in range(ATTEMPTS):
        before, _ = probe(cpus)
        sample = benchmark.measure(seconds / benchmark.turns)
        after, _ = probe(cpus)
        if before == after and (before in DISTANCES or len(cpus) < 2):
            return [(sample, before)]
    return []


def _row(
    benchmark: Benchmark, taken: list[tuple[Sample, str]], possible: bool = True
) -> dict[str, Any]:
    row: dict[str, Any] = {"name": benchmark.name, "unit": benchmark.unit}
    if not taken:
        return {**row, **unavailable(UNSTEADY if possible else ONE_CPU)}
    useful = [(sample, state) for sample, state in taken if sample.figures.size]
    if not useful:
        return {**row, **unavailable("the CPUs were too busy for a single sample")}
    # The state that most turns saw; figures of the other are no part of the median.
    states = [state for _, state in useful]
    state = max(sorted(set(states)), key=states.count)
    chosen = [sample for sample, seen in useful if seen == state]
    figures = np.concatenate([sample.figures for sample in chosen])
    summary = summarise_runs([sample.figures for sample in chosen])
    bounds = [sample.bound_by for sample in chosen]
    return {
        **row,
        "samples": [float(f"{figure:.6g}") for figure in figures[:1000]],
        "median": summary.median,
        "ci95": [summary.low, summary.high],
        "state": state,
        "bound_by": max(sorted(set(bounds)), key=bounds.count),
    }


# -- what there is to measure ----------------------------------------------


def benchmarks(engine: Engine) -> list[Benchmark]:
    """Every benchmark of this machine; `engine` runs those of clusters."""
    found = [
        Benchmark("ring_pass_64B", "ns", _ring_pass),
        Benchmark("cache_line_round_trip", "ns", _cache_line),
        Benchmark("wake_same_cpu", "us", _wake_same, cpus=1),
        Benchmark("wake_cross_cpu", "us", _wake_cross),
        Benchmark("interrupt_to_handler", "us", _interrupt),
    ]
    for waiting in wait_benchmarks():
        found.append(Benchmark(waiting.name, waiting.unit, _waiting(waiting), cpus=waiting.cpus))
    for posted in (1, 100, 10_000):
        name = f"library.match_posted[{posted}]"
        found.append(Benchmark(name, "ns", _match_posted(posted), cpus=1))
    for limit in ("no-limit", "10G"):
        for wait in ("spin", "block"):
            for coalescing in PAPER_COALESCING_NAMES:
                name = f"receive_path_128B[{coalescing},{wait},{limit}]"
                found.append(
                    Benchmark(name, "msg/s", _receive_path(engine, coalescing, wait, limit), 3)
                )
    for queued in queue_benchmarks(engine):
        found.append(
            Benchmark(queued.name, queued.unit, _of_queues(queued), queued.turns, queued.cpus)
        )
    for coalescing in PAPER_COALESCING_NAMES:
        found.append(
            Benchmark(f"pingpong_0B[{coalescing}]", "us", _pingpong(engine, coalescing), 3, 1)
        )
    found += [
        Benchmark("intranode.pingpong_8", "us", _intra_node_latency),
        Benchmark("intranode.rate_8", "msg/s", _intra_node_rate),
        Benchmark("intranode.bandwidth_4MiB", "MiB/s", _intra_node_bandwidth),
        Benchmark("intranode.share_of_copy_4MiB", "of one copy", _intra_node_share),
    ]
    found.append(Benchmark("large.copy_offload", "of without", partial(_copy_offload, engine), 3))
    found += [
        Benchmark("large.throughput_1500", "Gb/s", _throughput(engine, 1500), 3),
        Benchmark("large.throughput_9000", "Gb/s", _throughput(engine, 9000), 3),
        Benchmark(
            "large.throughput_unlimited", "Gb/s", _throughput(engine, 9000, limited=False), 3
        ),
    ]
    for memory in MEMORY_KINDS:
        name = memory.replace("-", "_")
        between = _throughput(engine, 9000, limited=False, memory=memory)
        found.append(Benchmark(f"memory.{name}", "Gb/s", between, 3))
        found.append(Benchmark(f"memory.{name}[intra-node]", "MiB/s", _intra_node_memory(memory)))
    found.append(Benchmark("launch_16_agents", "s", partial(_launch, engine), 3, 1))
    return found


def _cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def _two_cpus() -> tuple[int, int]:
    first, second = _cpus()[:2]
    return first, second


def _ring_pass(seconds: float) -> Sample:
    first, second = _cpus()[:2]
    figures: list[float] = []
    until = time.monotonic() + seconds
    while not figures or time.monotonic() < until:
        figure = ring_pass(first, second)
        if figure is not None:
            figures.append(figure)
    return Sample(np.array(figures), "cache lines between the CPUs")


def _cache_line(seconds: float) -> Sample:
    first, second = _cpus()[:2]
    return Sample(round_trips(first, second, int(seconds * 1e9)), "cache lines between the CPUs")


def _wake_same(seconds: float) -> Sample:
    first = _cpus()[0]
    return Sample(host_costs.wake_up(first, first, seconds) / 1000, "the kernel's switch")


def _wake_cross(seconds: float) -> Sample:
    first, second = _cpus()[:2]
    return Sample(host_costs.wake_up(first, second, seconds) / 1000, "the interrupt of a CPU")


def _interrupt(seconds: float) -> Sample:
    first, second = _cpus()[:2]
    figures = host_costs.interrupt_to_handler(first, second, seconds)
    return Sample(figures / 1000, "the interrupt of a CPU")


def _waiting(benchmark: WaitBenchmark) -> Callable[[float], Sample]:
    return lambda seconds: Sample(benchmark.figures(seconds), benchmark.bound_by)


def _match_posted(posted: int) -> Callable[[float], Sample]:
    """A message finds its receive among `posted` with distinct matches, which is posted again."""

    def measure(seconds: float) -> Sample:
        figures = exchange(posted, seconds)
        # The requests of the longest queue outgrow the near caches.
        return Sample(figures, "the caches" if posted > 1000 else "the receiving CPU")

    return measure


def _receive_path(
    engine: Engine, coalescing: str, wait: str, limit: str
) -> Callable[[float], Sample]:
    """Generator, link and firmware on one CPU; handler and rank on another."""
    rate = 0 if limit == "no-limit" else LINK_BITS_PER_SECOND

    def measure(seconds: float) -> Sample:
        found = receive_path(engine, seconds, coalescing, wait, rate)
        return Sample(np.array([found.messages_per_second]), found.bound_by)

    return measure


def _of_queues(benchmark: QueueBenchmark) -> Callable[[float], Sample]:
    return lambda seconds: Sample(*benchmark.measure(seconds))


def _pingpong(engine: Engine, coalescing: str) -> Callable[[float], Sample]:
    def measure(seconds: float) -> Sample:
        # 200 us a round trip is the slowest of the four by far: enough for `seconds`.
        iterations = max(100, int(seconds / 200e-6))
        options = {"size_bytes": 0, "iterations": iterations, "warmup": 50}
        spec = ClusterSpec(
            ranks=tuple(RankSpec(node, "pingpong", options=options) for node in range(2)),
            nic=NicParameters(coalescing=coalescing),
            wait=WaitParameters(strategy="spin"),
            deadline_s=RUN_DEADLINE_S,
        )
        result = engine.run(spec)
        figures = result.samples["rank0"]["half_round_trip_ns"].astype(np.float64) / 1000
        delayed = float(np.median(figures)) >= spec.nic.rx_usecs
        return Sample(figures, "the coalescing delay" if delayed else "wake-ups across CPUs")

    return measure


def _intra_node_latency(seconds: float) -> Sample:
    return Sample(intra_node.latency(_two_cpus(), seconds), "cache lines and the calls")


def _intra_node_rate(seconds: float) -> Sample:
    return Sample(intra_node.rate(_two_cpus(), seconds), "the calls")


def _intra_node_bandwidth(seconds: float) -> Sample:
    messages, _copies = intra_node.bandwidth(_two_cpus(), seconds)
    return Sample(messages, "one copy between the CPUs")


def _intra_node_share(seconds: float) -> Sample:
    """Of the speed at which the same processes copy the same bytes without the library."""
    messages, copies = intra_node.bandwidth(_two_cpus(), seconds)
    return Sample(messages / copies, "one copy between the CPUs")


def _copy_offload(engine: Engine, seconds: float) -> Sample:
    """Rate of 1 MiB messages with copy offload, of the rate without."""
    ratio, bound_by = copy_offload.throughput_ratio(engine, seconds)
    return Sample(np.array([ratio]), bound_by)


def _intra_node_memory(memory: MemoryName) -> Callable[[float], Sample]:
    def measure(seconds: float) -> Sample:
        messages, _copies = intra_node.bandwidth(_two_cpus(), seconds, memory)
        return Sample(messages, "three copies" if memory == "bounce" else "one copy")

    return measure


def _throughput(
    engine: Engine, mtu: int, *, limited: bool = True, memory: MemoryName = "auto"
) -> Callable[[float], Sample]:
    """4 MiB messages from node to node; one figure a turn, since messages overlap."""

    def measure(seconds: float) -> Sample:
        found = throughput(engine, seconds, mtu, limited=limited, memory=memory)
        return Sample(np.array([found.gigabits_per_second]), found.bound_by)

    return measure


def _launch(engine: Engine, seconds: float) -> Sample:
    """Starting and stopping 16 processes: 2 NICs' share, 2 handlers, 2 ranks, and hogs."""
    figures: list[float] = []
    until = time.monotonic() + seconds
    while not figures or time.monotonic() < until:
        options = {"size_bytes": 0, "iterations": 1, "warmup": 0}
        ranks = tuple(RankSpec(node, "pingpong", options=options) for node in range(2))
        spec = ClusterSpec(ranks=ranks)
        processes = len(engine.place(spec).processes)
        more = tuple(CompanionSpec(i % 2, kind="nice") for i in range(16 - processes))
        result = engine.run(ClusterSpec(ranks, companions=more, deadline_s=RUN_DEADLINE_S))
        figures.append(result.launch_s + result.stop_s)
    return Sample(np.array(figures), "forks and exits")
