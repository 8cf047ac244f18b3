"""The receive path at full speed: how many 128-byte messages a second, and what binds them.

Generator, link and firmware run on one CPU; handlers and ranks on another.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from shrimpmx.bench.benchmark import (
    BUSY_SHARE,
    RUN_DEADLINE_S,
    WIRE_OVERHEAD_BYTES,
    Benchmark,
    Sample,
    one_figure,
)
from shrimpmx.bench.interrupt_costs import per_packet
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec, GeneratorSpec, RankSpec
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.nic import NicParameters

# A NIC and a handler on two CPUs pass frames in bursts of up to this many before one waits for
# the other; larger rings no longer raise the rate (ours, docs/performance.md).
RING_ENTRIES = 4096
WINDOW = 2048
# Receives that the rank posts ahead.
POSTED = 256
# Sizes a run of a given time; whatever the rate is, the run is not cut short.
MESSAGES_PER_SECOND = 4_000_000
MESSAGES_MIN = 20_000
MESSAGE_BYTES = 128
FRAME_BYTES = 16 + 24 + MESSAGE_BYTES


def receive_path(
    engine: Engine,
    seconds: float,
    coalescing: str,
    wait: str,
    link_bits_per_second: int = 0,
    queues: int = 1,
) -> Sample:
    """One run of about `seconds` by `engine`: messages per second.

    `link_bits_per_second`: 0 for no limit of link and DMA. `queues`: rx queues of the receiving
    node, each with a core and a rank of its own, of which the first one receives.
    """
    spec = receive_spec(seconds, coalescing, wait, link_bits_per_second, queues)
    result = engine.run(spec)
    arrays = result.samples["rank0"]
    # The first tenth warms up: page faults, empty caches.
    stamps_ns = arrays["timestamps_ns"].astype(np.float64)
    per_message_ns = np.diff(stamps_ns[stamps_ns.size // 10 :]) / float(arrays["batch"][0])
    # One figure a turn: the batches of a turn follow each other and are not independent.
    rate = float(1e9 / per_message_ns.mean())
    return one_figure(rate, _what_binds(result, rate, link_bits_per_second))


def receive_spec(
    seconds: float, coalescing: str, wait: str, link_bits_per_second: int, queues: int
) -> ClusterSpec:
    """What `receive_path` runs."""
    options = {
        "size_bytes": MESSAGE_BYTES,
        "iterations": max(MESSAGES_MIN, int(seconds * MESSAGES_PER_SECOND)),
        "warmup": 0,
        "window": POSTED,
    }
    idle = (RankSpec(0, "idle", core=core) for core in range(1, queues))
    return ClusterSpec(
        mode="generator",
        ranks=(RankSpec(0, "stream", options=options), *idle),
        nic=NicParameters(
            coalescing=coalescing,
            link_bits_per_second=link_bits_per_second,
            **({} if link_bits_per_second else {"dma_bytes_per_second": 0}),
            rx_ring_entries=RING_ENTRIES,
            rx_queues=queues,
        ),
        host=HostParameters(cores=queues, event_ring_entries=RING_ENTRIES),
        wait=WaitParameters(strategy=wait),
        generator=GeneratorSpec(size_bytes=MESSAGE_BYTES, window=WINDOW),
        deadline_s=RUN_DEADLINE_S,
    )


def _what_binds(result: ClusterResult, messages_per_second: float, rate: int) -> str:
    """The part that had no time left: the link, or the CPU of handler and rank.

    "waiting" if neither: the rank slept or spun, for an interrupt, its coalescing delay, or
    the NIC's CPU.
    """
    if rate:
        limit = rate / (8 * (FRAME_BYTES + WIRE_OVERHEAD_BYTES))
        if messages_per_second > BUSY_SHARE * limit:
            return "the link"
    elapsed_ns = max(1, result.elapsed_ns.get("rank0", 1))
    busy_ns = sum(
        result.usage.get(process, {}).get("task_clock_ns", 0) for process in ("rank0", "node0.irq0")
    )
    busy_ns -= result.accounts.get("rank0", {}).get("spin_ns", 0)
    if busy_ns > BUSY_SHARE * elapsed_ns:
        return "the receiving CPU"
    return "waiting"


STEERINGS = ("endpoint", "rss", "arfs")
QUEUES = (1, 8)


def queue_benchmarks(engine: Engine) -> list[Benchmark]:
    """Every benchmark of several rx queues."""
    found = [
        Benchmark(f"steering.{kind}", "ns", partial(_steering, kind), cpus=1) for kind in STEERINGS
    ]
    for queues in QUEUES:
        one = partial(receive_path, engine, coalescing="stream", wait="block", queues=queues)
        found.append(Benchmark(f"queues.receive_path_128B[{queues}]", "msg/s", one))
    return found


def _steering(kind: str, seconds: float) -> Sample:
    return Sample(per_packet(kind, seconds), "the NIC's CPU")
