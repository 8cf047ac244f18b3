"""Copy offload in real processes: the dma agents do the copies, and nothing else changes."""

from __future__ import annotations

import pytest
from support import resends
from support.clusters import on_both_engines, pingpong_pair, run

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.settings.nic import NicParameters

ITERATIONS, WARMUP = 20, 2
SIZE_BYTES = 256 << 10
FRAMES = -(-SIZE_BYTES // 1468)


def exchange(coalescing: str, copy_offload: bool, cores: int = 1) -> ClusterResult:
    host = resends.HOST.model_copy(update={"copy_offload": copy_offload, "cores": cores})
    nic = NicParameters.model_validate({"coalescing": coalescing})
    return run(pingpong_pair(ITERATIONS, SIZE_BYTES, WARMUP, host=host, nic=nic, mx=resends.MX))


@on_both_engines
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("coalescing", ["disabled", "stream"])
def test_the_dma_agents_copy(coalescing: str, cores: int) -> None:
    result = exchange(coalescing, True, cores)
    for node in range(2):
        rank, dma = result.counters[f"rank{node}"], result.counters[f"node{node}.dma"]
        handlers = [result.counters[f"node{node}.irq{core}"] for core in range(cores)]
        offloaded = sum(handler["dmarecv_pull_reply"] for handler in handlers)
        assert rank["recv_messages"] == ITERATIONS + WARMUP
        # The last frame of a message is too short to be worth it.
        assert offloaded == (ITERATIONS + WARMUP) * (FRAMES - 1)
        assert dma["copies"] == offloaded
        assert dma["copied_bytes"] == sum(handler["dmarecv_bytes"] for handler in handlers)
        assert dma["copies_refused"] == 0
        told = dma["pull_done"] + sum(handler["pull_done"] for handler in handlers)
        assert told == ITERATIONS + WARMUP


@on_both_engines
def test_without_offload_there_is_no_dma_agent() -> None:
    result = exchange("stream", False)
    assert not [name for name in result.counters if name.endswith(".dma")]
    assert result.counters["node0.irq0"]["dmarecv_pull_reply"] == 0
