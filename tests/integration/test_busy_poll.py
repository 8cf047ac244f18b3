"""The host's three strategies in real processes, small: handlers by timer, ranks that poll."""

from __future__ import annotations

import numpy as np
import pytest
from support.clusters import (
    ENDLESS,
    generator_stream,
    on_both_engines,
    pingpong_pair,
    run,
    stream_pair,
)
from support.conditions import patient

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import AgentFault, ClusterSpec, RankSpec
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

STRATEGIES = ("napi-defer", "irq-suspend", "watchdog")
ITERATIONS = 60


def nic(coalescing: str) -> NicParameters:
    return NicParameters(coalescing=coalescing)


def check_conservation(result: ClusterResult) -> None:
    for node in (0, 1):
        counters = result.counters[f"node{node}.nic"]
        irq = result.counters[f"node{node}.irq0"]
        assert counters["rx_packets"] == irq["recv_packets"]
        # One may be on its way when the run ends.
        assert 0 <= counters["irq_raised"] - irq["interrupts"] <= 1
        ended = counters["irq_raised"] + counters["irq_absorbed"]
        assert counters["irq_wished"] - ended in (0, 1)


@pytest.mark.nightly("each strategy and wait", but=14)
@on_both_engines
@pytest.mark.parametrize("wait", ["spin", "block", "spin-block", "sched", "notify"])
@pytest.mark.parametrize("coalescing", STRATEGIES)
def test_pingpong(coalescing: str, wait: str, both_engines: str) -> None:
    wanted = WaitParameters(strategy=wait)
    result = run(pingpong_pair(ITERATIONS, nic=nic(coalescing), wait=wanted))
    for rank in ("rank0", "rank1"):
        assert len(result.samples[rank]["half_round_trip_ns"]) == ITERATIONS
    check_conservation(result)
    polls = sum(result.counters[f"node{node}.irq0"]["busy_polls"] for node in (0, 1))
    if coalescing == "napi-defer":
        assert polls == 0
        assert result.counters["node0.irq0"]["poll_timers"] > 0
    elif wait == "spin" and both_engines == "simulated":
        # On a slow machine the irq agent's timer comes before the ranks' next look, each time.
        assert polls > ITERATIONS, "spinning ranks find most messages themselves"


@pytest.mark.nightly("each strategy and size", but=8)
@on_both_engines
@pytest.mark.parametrize("size_bytes", [0, 4096, 100_000])
@pytest.mark.parametrize("coalescing", STRATEGIES)
def test_stream(coalescing: str, size_bytes: int) -> None:
    count = 40 if size_bytes > 32_768 else 1000
    result = run(stream_pair(count, size_bytes, window=16, nic=nic(coalescing)))
    assert result.counters["rank1"]["recv_messages"] >= count
    check_conservation(result)
    received = result.counters["node1.nic"]
    assert received["irq_raised"] < received["rx_packets"]


@on_both_engines
@pytest.mark.parametrize("coalescing", STRATEGIES)
def test_a_generators_stream(coalescing: str) -> None:
    host = HostParameters(interrupt_time_ns=4000, packet_cost_ns=800)
    result = run(generator_stream(1000, nic=nic(coalescing), host=host))
    assert result.counters["rank0"]["recv_messages"] >= 1000
    received, irq = result.counters["node0.nic"], result.counters["node0.irq0"]
    # The generator sends until the run ends, so that frames may lie in the ring then, and an
    # interrupt may be on its way.
    assert 0 <= received["rx_packets"] - irq["recv_packets"] <= NicParameters().rx_ring_entries
    assert 0 <= received["irq_raised"] - irq["interrupts"] <= 1
    assert received["irq_raised"] < received["rx_packets"]


@on_both_engines
@pytest.mark.parametrize("coalescing", ["irq-suspend", "watchdog"])
def test_ranks_that_share_a_node_poll_for_each_other(coalescing: str) -> None:
    options = {"iterations": ITERATIONS, "size_bytes": 200, "warmup": 5}
    ranks = tuple(RankSpec(i % 2, "pingpong", core=i // 2, options=options) for i in range(4))
    host = HostParameters(cores=2)
    result = run(ClusterSpec(ranks=ranks, nic=nic(coalescing), host=host))
    for number in range(4):
        half_ns = result.samples[f"rank{number}"]["half_round_trip_ns"]
        assert len(half_ns) == ITERATIONS
        assert np.all(half_ns > 0)


@pytest.mark.parametrize("coalescing", ["irq-suspend", "watchdog"])
def test_a_killed_rank_leaves_the_others_of_its_node_their_frames(coalescing: str) -> None:
    ranks = []
    for number in range(4):
        options = {"iterations": ENDLESS if number < 2 else ITERATIONS, "size_bytes": 200}
        ranks.append(RankSpec(number % 2, "pingpong", options=options))
    result = run(
        ClusterSpec(
            ranks=tuple(ranks),
            nic=nic(coalescing),
            wait=WaitParameters(strategy="block"),
            mx=MxParameters(resend_delay_ns=round(patient(20e6)), resends_max=1500),
            survive=True,
            agent_faults=(AgentFault("rank0", "kill", 0.05),),
        )
    )
    assert "rank0" in result.lost
    for rank in ("rank2", "rank3"):
        assert len(result.samples[rank]["half_round_trip_ns"]) == ITERATIONS
