"""`shrimpmx bench`: what each part of the emulator costs on this machine, and what binds it.

Every figure is bracketed by a cache-line probe: `state` is near or far, and a turn during
which it changed is dropped ("unknown" with one CPU, which has no distance). Set-ups that are
to be compared take turns.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import numpy as np

from shrimpmx.bench import copy_offload, host_costs, interrupt_costs, intra_node
from shrimpmx.bench.benchmark import LINK_BITS_PER_SECOND, RUN_DEADLINE_S, Benchmark, Sample
from shrimpmx.bench.matching import exchange
from shrimpmx.bench.probe import probe, round_trips
from shrimpmx.bench.receive_path import queue_benchmarks, receive_path
from shrimpmx.bench.ring_pass import ring_pass
from shrimpmx.bench.simulated import simulated_benchmarks
from shrimpmx.bench.throughput import throughput
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.results.environment import unavailable
from shrimpmx.results.runs import DISTANCES
from shrimpmx.results.statistics import summarise_runs
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.mx import MemoryName
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import PAPER_COALESCING_NAMES

NS_PER_US = 1000.0


def wait_benchmarks() -> list[Benchmark]:
    """Every benchmark of waiting."""
    found = [Benchmark("wait.at_once", "ns", _at_once, cpus=1)]
    for place, cpus, bound_by in (
        ("same-cpu", 1, "the kernel's switch"),
        ("other-cpu", 2, "the interrupt of a CPU"),
    ):
        for name, unit in (("wake", "us"), ("wake_bare", "us"), ("wake_ratio", "of bare")):
            measure = partial(_wake, name, cpus - 1, bound_by)
            found.append(Benchmark(f"wait.{name}[{place}]", unit, measure, cpus=cpus))
    return found


def _at_once(seconds: float) -> Sample:
    return Sample(host_costs.at_once(seconds), "the calls")


def _wake(name: str, other: int, bound_by: str, seconds: float) -> Sample:
    """`other`: index of the CPU, among those of this process, of the one that is woken."""
    cpus = sorted(os.sched_getaffinity(0))
    by_slot, by_futex = host_costs.wake_ups(cpus[0], cpus[other], seconds)
    if name == "wake_ratio":
        return Sample(by_slot / by_futex, bound_by)
    return Sample((by_slot if name == "wake" else by_futex) / NS_PER_US, bound_by)


# A turn during which the CPUs changed their distance is taken again, this often in all.
ATTEMPTS = 3
UNSTEADY = "the CPUs changed their distance during every turn; try again on a quieter machine"
ONE_CPU = "needs two CPUs, this process may use only one"
# How handlers and other ranks reach a rank's buffer (mx.memory).
MEMORY_KINDS: tuple[MemoryName, ...] = ("heap", "process-vm", "bounce")


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
    found += wait_benchmarks()
    for posted in (1, 100, 10_000):
        match = partial(_match_posted, posted)
        found.append(Benchmark(f"library.match_posted[{posted}]", "ns", match, cpus=1))
    for limit, rate in (("no-limit", 0), ("10G", LINK_BITS_PER_SECOND)):
        for wait in ("spin", "block"):
            for coalescing in PAPER_COALESCING_NAMES:
                # Generator, link and firmware on one CPU; handler and rank on another.
                path = partial(
                    receive_path,
                    engine,
                    coalescing=coalescing,
                    wait=wait,
                    link_bits_per_second=rate,
                )
                name = f"receive_path_128B[{coalescing},{wait},{limit}]"
                found.append(Benchmark(name, "msg/s", path, 3))
    found += queue_benchmarks(engine)
    for coalescing in PAPER_COALESCING_NAMES:
        pingpong = partial(_pingpong, engine, coalescing)
        found.append(Benchmark(f"pingpong_0B[{coalescing}]", "us", pingpong, 3, 1))
    offload = partial(copy_offload.throughput_ratio, engine)
    found += [
        Benchmark("intranode.pingpong_8", "us", _intra_node_latency),
        Benchmark("intranode.rate_8", "msg/s", _intra_node_rate),
        Benchmark("mpi.pingpong_8", "us", partial(_mpi_latency, False)),
        Benchmark("mpi.exchange_8", "us", partial(_mpi_latency, True)),
        Benchmark("intranode.bandwidth_4MiB", "MiB/s", partial(_intra_node_bandwidth, "auto")),
        Benchmark("intranode.share_of_copy_4MiB", "of one copy", _intra_node_share),
        Benchmark("large.copy_offload", "of without", offload, 3),
    ]
    # One figure a turn, since messages overlap.
    unlimited = partial(throughput, engine, mtu=9000, limited=False)
    found += [
        Benchmark("large.throughput_1500", "Gb/s", partial(throughput, engine, mtu=1500), 3),
        Benchmark("large.throughput_9000", "Gb/s", partial(throughput, engine, mtu=9000), 3),
        Benchmark("large.throughput_unlimited", "Gb/s", unlimited, 3),
    ]
    for memory in MEMORY_KINDS:
        name = f"memory.{memory.replace('-', '_')}"
        between = partial(unlimited, memory=memory)
        within = partial(_intra_node_bandwidth, memory)
        found.append(Benchmark(name, "Gb/s", between, 3))
        found.append(Benchmark(f"{name}[intra-node]", "MiB/s", within))
    found += simulated_benchmarks()
    found.append(Benchmark("launch_16_agents", "s", partial(_launch, engine), 3, 1))
    return found


def _two_cpus() -> tuple[int, int]:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    return first, second


def _ring_pass(seconds: float) -> Sample:
    first, second = _two_cpus()
    figures: list[float] = []
    until = time.monotonic() + seconds
    while not figures or time.monotonic() < until:
        figure = ring_pass(first, second)
        if figure is not None:
            figures.append(figure)
    return Sample(np.array(figures), "cache lines between the CPUs")


def _cache_line(seconds: float) -> Sample:
    first, second = _two_cpus()
    return Sample(round_trips(first, second, int(seconds * 1e9)), "cache lines between the CPUs")


def _wake_same(seconds: float) -> Sample:
    first = min(os.sched_getaffinity(0))
    return Sample(host_costs.wake_up(first, first, seconds) / 1000, "the kernel's switch")


def _wake_cross(seconds: float) -> Sample:
    first, second = _two_cpus()
    return Sample(host_costs.wake_up(first, second, seconds) / 1000, "the interrupt of a CPU")


def _interrupt(seconds: float) -> Sample:
    first, second = _two_cpus()
    figures = interrupt_costs.interrupt_to_handler(first, second, seconds)
    return Sample(figures / 1000, "the interrupt of a CPU")


def _match_posted(posted: int, seconds: float) -> Sample:
    """A message finds its receive among `posted` with distinct matches, which is posted again."""
    # The requests of the longest queue outgrow the near caches.
    bound_by = "the caches" if posted > 1000 else "the receiving CPU"
    return Sample(exchange(posted, seconds), bound_by)


def _pingpong(engine: Engine, coalescing: str, seconds: float) -> Sample:
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


def _intra_node_latency(seconds: float) -> Sample:
    return Sample(intra_node.latency(_two_cpus(), seconds), "cache lines and the calls")


def _mpi_latency(at_once: bool, seconds: float) -> Sample:
    figures = intra_node.mpi_latency(_two_cpus(), seconds, at_once)
    return Sample(figures, "cache lines and the calls")


def _intra_node_rate(seconds: float) -> Sample:
    return Sample(intra_node.rate(_two_cpus(), seconds), "the calls")


def _intra_node_bandwidth(memory: MemoryName, seconds: float) -> Sample:
    messages, _copies = intra_node.bandwidth(_two_cpus(), seconds, memory)
    return Sample(messages, "three copies" if memory == "bounce" else "one copy between the CPUs")


def _intra_node_share(seconds: float) -> Sample:
    """Of the speed at which the same processes copy the same bytes without the library."""
    messages, copies = intra_node.bandwidth(_two_cpus(), seconds)
    return Sample(messages / copies, "one copy between the CPUs")


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
