"""Real processes over native MX's NIC: no interrupt, no handler, every message intact."""

from __future__ import annotations

import os

import pytest
from support import resends
from support.clusters import (
    ENDLESS,
    generator_stream,
    on_both_engines,
    pingpong_pair,
    run,
    stream_pair,
)
from support.conditions import patient
from support.machines import described

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import AgentFault, ClusterSpec, RankSpec
from shrimpmx.errors import AgentError
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

MX_NIC = NicParameters(nic_kind="mx")
BLOCK = WaitParameters(strategy="block")


def assert_no_interrupt(result: ClusterResult) -> None:
    for node in result.interrupts:
        assert {count for core in node for count in core} == {0}
    for name, counters in result.counters.items():
        assert counters.get("irq_raised", 0) == 0
        assert counters.get("interrupts", 0) == 0
        assert not name.partition(".")[2].startswith("irq")


@pytest.mark.nightly("each size on each engine", but=8)
@on_both_engines
@pytest.mark.parametrize("wait", ["spin", "block"])
@pytest.mark.parametrize("size_bytes", [0, 100, 4096, 32768, 1 << 20])
def test_a_pingpong_of_any_size(size_bytes: int, wait: str) -> None:
    more = {"nic": MX_NIC, "mx": resends.MX, "host": resends.HOST}
    result = run(pingpong_pair(20, size_bytes, wait=WaitParameters(strategy=wait), **more))
    assert result.counters["rank0"]["recv_messages"] == 25
    replies = 715 * 25 if size_bytes == 1 << 20 else 0
    for node in (0, 1):
        handled = result.counters[f"node{node}.mx"]
        assert handled["recv_pull_reply"] == handled["send_pull_reply"] == replies
        assert result.counters[f"node{node}.nic"]["mx_handled"] == handled["recv_packets"]
        # Only ranks that sleep are woken.
        assert wait == "block" or handled["rank_wakes"] == 0
    assert_no_interrupt(result)


@on_both_engines
@pytest.mark.parametrize("size_bytes", [64, 4096, 300_000])
def test_a_stream_arrives_in_order_and_whole(size_bytes: int) -> None:
    count = 1000 if size_bytes < 100_000 else 30
    result = run(stream_pair(count, size_bytes, wait=BLOCK, nic=MX_NIC))
    assert result.samples["rank1"]["count"].tolist() == [count]
    assert result.counters["rank1"]["recv_messages"] == count
    assert_no_interrupt(result)


@on_both_engines
def test_nothing_is_lost_on_a_link_that_loses() -> None:
    faults = LinkFaults(loss=0.05, duplicate=0.05, reorder=0.05, seed=3)
    mx = MxParameters(resend_delay_ns=5_000_000, ack_delay_ns=1_000_000)
    host = HostParameters(pull_resend_delay_ns=5_000_000)
    more = {"link_faults": faults, "mx": mx, "host": host, "nic": MX_NIC}
    result = run(stream_pair(200, 200, wait=BLOCK, **more))
    assert result.counters["rank1"]["recv_messages"] == 200
    result = run(pingpong_pair(10, 100_000, wait=BLOCK, **more))
    assert result.counters["rank0"]["recv_messages"] == 15
    assert result.counters["node0.nic"]["link_lost"] > 0


@on_both_engines
def test_the_generator_feeds_a_native_mx_nic() -> None:
    result = run(generator_stream(2000, wait=BLOCK, nic=MX_NIC))
    assert result.counters["rank0"]["recv_messages"] >= 2000
    assert result.counters["node0.mx"]["recv_small"] >= 2000
    assert_no_interrupt(result)


@on_both_engines
def test_several_ranks_of_a_node_share_its_nic() -> None:
    options = {"iterations": 30, "warmup": 0, "size_bytes": 20_000}
    ranks = tuple(
        RankSpec(node, "pingpong", core, {**options, "peer": peer})
        for node, core, peer in ((0, 0, 2), (0, 1, 3), (1, 0, 0), (1, 1, 1))
    )
    host = HostParameters(cores=2)
    result = run(ClusterSpec(ranks=ranks, host=host, wait=BLOCK, nic=MX_NIC))
    assert [result.counters[f"rank{number}"]["recv_messages"] for number in range(4)] == [30] * 4
    assert_no_interrupt(result)


@pytest.mark.parametrize("wait", ["block", "sched"])
def test_everything_on_one_cpu(wait: str) -> None:
    one = described({"packages": [[[min(os.sched_getaffinity(0))]]]})
    result = run(pingpong_pair(wait=WaitParameters(strategy=wait), nic=MX_NIC), topology=one)
    assert result.counters["rank0"]["recv_messages"] == 55


def test_a_nic_process_per_node_and_no_process_of_a_handler() -> None:
    nics = {"node0.nic": 0, "node1.nic": 0}
    result = run(pingpong_pair(wait=BLOCK, nic=MX_NIC, cpus=nics))
    names = [process.name for process in result.placement.processes]
    assert names == ["node0.nic", "node1.nic", "rank0", "rank1"]
    assert result.counters["rank0"]["recv_messages"] == 55


def test_a_nic_that_is_killed_ends_the_run_and_is_named() -> None:
    spec = pingpong_pair(ENDLESS, wait=BLOCK, nic=MX_NIC, agent_faults=(AgentFault("nic"),))
    with pytest.raises(AgentError, match=r"nic \(pid \d+, node0.nic, node0.mx, .* was killed"):
        run(spec)


def test_a_nic_that_stops_for_a_while_loses_nothing() -> None:
    fault = AgentFault("nic", "stop", 0.02, stop_for_s=0.1)
    result = run(stream_pair(20_000, 64, wait=BLOCK, nic=MX_NIC, agent_faults=(fault,)))
    assert result.counters["rank1"]["recv_messages"] == 20_000


@pytest.mark.parametrize("size_bytes", [8, 20_000, 300_000])
def test_a_killed_rank_ends_its_partner_alone(size_bytes: int) -> None:
    ranks = tuple(
        RankSpec(
            number % 2,
            "pingpong",
            options={
                "iterations": ENDLESS if number < 2 else 100,
                "size_bytes": size_bytes,
                "warmup": 0,
            },
        )
        for number in range(4)
    )
    spec = ClusterSpec(
        ranks=ranks,
        wait=BLOCK,
        nic=MX_NIC,
        mx=MxParameters(resend_delay_ns=round(patient(20e6)), resends_max=1500),
        survive=True,
        agent_faults=(AgentFault("rank1", "kill", 0.05),),
    )
    result = run(spec)
    assert set(result.lost) == {"rank0", "rank1"}
    assert "was killed by SIGKILL" in result.lost["rank1"]
    assert [result.counters[rank]["recv_messages"] for rank in ("rank2", "rank3")] == [100, 100]
