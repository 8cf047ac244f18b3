"""Streams of 4 MiB messages between two nodes: what they carry, and what limits them.

The figure leaves nothing out: all bytes, from the first send to the completion of the last
receive. Two-node runs on two CPUs put the NICs beside node 0, so that its CPU sends, forwards
and delivers; the link's limit can be taken away to see how far it comes.
"""

from __future__ import annotations

from shrimpmx.bench.benchmark import (
    BUSY_SHARE,
    LINK_BITS_PER_SECOND,
    RUN_DEADLINE_S,
    WIRE_OVERHEAD_BYTES,
    Sample,
    one_figure,
)
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.mx import MemoryName, MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.wire.tables import wire_geometry

MESSAGE_BYTES = 4 << 20
# Messages under way: enough that the link stays busy while a rank turns one round (ours).
WINDOW = 4
# Sizes a run of a given time: about the link's rate, and what two CPUs do without it.
MESSAGES_PER_SECOND = {True: 300, False: 800}
MESSAGES_MIN = 40


def throughput(
    engine: Engine, seconds: float, mtu: int, *, limited: bool = True, memory: MemoryName = "auto"
) -> Sample:
    """One stream of about `seconds`: its payload, Gb/s.

    Not `limited`: neither link nor DMA takes time. `memory`: how handlers reach the
    ranks' buffers, as `MxParameters.memory`.
    """
    count = max(MESSAGES_MIN, int(seconds * MESSAGES_PER_SECOND[limited]))
    options = {"size_bytes": MESSAGE_BYTES, "iterations": count, "warmup": 0, "window": WINDOW}
    free = {} if limited else {"link_bits_per_second": 0, "dma_bytes_per_second": 0}
    spec = ClusterSpec(
        ranks=tuple(RankSpec(node, "stream", options=options) for node in range(2)),
        nic=NicParameters(mtu=mtu, coalescing="stream", **free),
        mx=MxParameters(memory=memory),
        wait=WaitParameters(strategy="block"),
        deadline_s=RUN_DEADLINE_S,
    )
    result = engine.run(spec)
    begin_ns = int(result.samples["rank0"]["started_ns"][0])
    elapsed_ns = int(result.samples["rank1"]["timestamps_ns"][-1]) - begin_ns
    gigabits = count * MESSAGE_BYTES * 8 / elapsed_ns
    if limited and gigabits > BUSY_SHARE * payload_limit(mtu) / 1e9:
        return one_figure(gigabits, "the link")
    return one_figure(gigabits, busiest_cpu(result, elapsed_ns, count * MESSAGE_BYTES))


def payload_limit(mtu: int) -> float:
    """Payload that the link can carry in frames of `mtu` bytes, bit/s."""
    payload = wire_geometry(mtu, "native").pull_frame_bytes
    return LINK_BITS_PER_SECOND * payload / (mtu + WIRE_OVERHEAD_BYTES)


def busiest_cpu(result: ClusterResult, elapsed_ns: int, size_bytes: int) -> str:
    """The CPU with the least time left and its users, ns per byte of payload.

    "waiting" if every CPU had time left: for wake-ups, interrupts and coalescing delays.
    """
    shares: dict[int, dict[str, float]] = {}
    for process in result.placement.processes:
        busy_ns = result.usage.get(process.name, {}).get("task_clock_ns", 0)
        busy_ns -= result.accounts.get(process.name, {}).get("spin_ns", 0)
        shares.setdefault(process.cpu, {})[process.name] = busy_ns / size_bytes
    totals = {cpu: sum(parts.values()) for cpu, parts in shares.items()}
    cpu = max(totals, key=lambda number: totals[number])
    parts = sorted(shares[cpu].items(), key=lambda part: -part[1])
    words = ", ".join(f"{name} {ns:.2f}" for name, ns in parts)
    if totals[cpu] * size_bytes < BUSY_SHARE * elapsed_ns:
        return f"waiting; most on CPU {cpu}: {words} ns/byte"
    return f"CPU {cpu}: {words} ns/byte"
