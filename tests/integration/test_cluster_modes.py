"""Real processes in every arrangement: sizes, generator, company, few CPUs, a user's policy."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support import resends
from support.clusters import (
    generator_stream,
    on_both_engines,
    pingpong_pair,
    run,
    sixteen_agents,
    stream_pair,
)
from support.machines import described

from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.errors import AgentError, InputError
from shrimpmx.nic.policy import Policy
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import PAPER_COALESCING_NAMES
from shrimpmx.workloads.messages import pingpong

BLOCK = WaitParameters(strategy="block")


SIZES = (1, 32, 33, 128, 129, 4096, 32768)


def pingpong_of_every_size(context: MxRank) -> RankSamples:
    initiator = context.number < context.peer
    for size_bytes in SIZES:
        pingpong(context.endpoint, context.partner, initiator, size_bytes, 20, 5)
    return {}


@on_both_engines
@pytest.mark.parametrize("event_ring", ["lock-free", "reset"])
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_every_size_arrives_intact(mtu: int, event_ring: str) -> None:
    result = run(
        ClusterSpec(
            tuple(RankSpec(node, "function", function=pingpong_of_every_size) for node in (0, 1)),
            wait=BLOCK,
            nic=NicParameters(mtu=mtu, coalescing="open-mx"),
            host=resends.HOST.model_copy(update={"event_ring": event_ring}),
            mx=resends.MX,
        )
    )
    assert result.counters["rank0"]["recv_messages"] == 25 * len(SIZES)
    assert result.counters["rank0"]["recv_duplicate"] == 0


@on_both_engines
@pytest.mark.parametrize("coalescing", PAPER_COALESCING_NAMES)
def test_the_generator_feeds_one_node(coalescing: str) -> None:
    result = run(generator_stream(2000, wait=BLOCK, nic=NicParameters(coalescing=coalescing)))
    stamps = result.samples["rank0"]["timestamps_ns"]
    assert (stamps[1:] >= stamps[:-1]).all()
    assert result.counters["rank0"]["recv_messages"] >= 2000
    assert result.counters["node1.generator"]["generated_packets"] >= 2000
    assert result.placement.processes[0].name == "nic"


@on_both_engines
@pytest.mark.parametrize("coalescing", PAPER_COALESCING_NAMES)
def test_completed_sends_interrupt_and_none_is_forgotten(coalescing: str) -> None:
    nic = NicParameters(coalescing=coalescing, tx_interrupts=True)
    result = run(stream_pair(500, 4096, wait=BLOCK, nic=nic))
    for node in (0, 1):
        counted, handled = result.counters[f"node{node}.nic"], result.counters[f"node{node}.irq0"]
        ended = counted["irq_raised"] + counted["irq_absorbed"]
        # At the end of the run a wish may wait on each of the two lines, and an interrupt.
        assert 0 <= counted["irq_wished"] - ended <= 2
        assert 0 <= counted["irq_raised"] - handled["interrupts"] <= 1
        assert 0 < handled["sends_reaped"] <= counted["tx_completed"] <= counted["tx_packets"]
        if coalescing == "disabled":
            assert counted["irq_raised_sent"] > 0


@on_both_engines
def test_a_handler_that_cannot_keep_up_gives_way() -> None:
    host = HostParameters(irq_budget=1, irq_demote_after=1)
    result = run(generator_stream(2000, wait=BLOCK, host=host))
    assert result.counters["node0.irq0"]["budget_exhausted"] > 0
    assert result.counters["node0.irq0"]["demotions"] > 0
    assert result.counters["rank0"]["recv_messages"] >= 2000


@on_both_engines
def test_a_stream_arrives_in_order_and_whole() -> None:
    result = run(stream_pair(3000, 64, wait=BLOCK, nic=NicParameters(coalescing="stream")))
    assert result.samples["rank1"]["count"].tolist() == [3000]
    assert result.counters["rank1"]["recv_messages"] == 3000
    assert result.worked("rank1")["recv_messages"] == 3000


def test_more_cores_than_cpus() -> None:
    options = {"iterations": 30, "warmup": 0}
    ranks = tuple(
        RankSpec(node, "pingpong", core, {**options, "peer": peer})
        for node, core, peer in ((0, 0, 2), (0, 1, 3), (1, 0, 0), (1, 1, 1))
    )
    spec = ClusterSpec(ranks=ranks, host=HostParameters(cores=2), wait=BLOCK)
    result = run(spec, topology=described({"packages": [[[0]]]}))
    assert result.placement.oversubscribed
    assert [result.counters[f"rank{number}"]["recv_messages"] for number in range(4)] == [30] * 4
    # Interrupts go round both cores of each node.
    assert all(core[0] > 0 for node in result.interrupts for core in node)


@pytest.mark.parametrize("wait", ["block", "sched"])
def test_everything_on_one_cpu(wait: str) -> None:
    one = described({"packages": [[[min(os.sched_getaffinity(0))]]]})
    result = run(pingpong_pair(wait=WaitParameters(strategy=wait)), topology=one)
    assert any("degraded" in note for note in result.placement.notes)
    assert result.counters["rank0"]["recv_messages"] == 55


def test_at_normal_priority() -> None:
    result = run(pingpong_pair(wait=BLOCK, realtime=False))
    assert set(result.realtime.values()) == {0}
    assert any("as asked" in note for note in result.placement.notes)


@on_both_engines
def test_company_burns_cpu_beside_the_ranks() -> None:
    company = (CompanionSpec(0), CompanionSpec(1, kind="nice"))
    result = run(pingpong_pair(wait=BLOCK, companions=company))
    assert result.counters["hog0"]["loops"] > 0
    assert result.usage["hog0"]["user_ns"] > 0
    assert result.counters["rank1"]["recv_messages"] == 55


@on_both_engines
def test_nothing_is_lost_on_a_link_that_loses() -> None:
    faults = LinkFaults(loss=0.05, duplicate=0.05, reorder=0.05, seed=3)
    mx = MxParameters(resend_delay_ns=5_000_000, ack_delay_ns=1_000_000)
    result = run(stream_pair(400, 200, wait=BLOCK, link_faults=faults, mx=mx))
    assert result.counters["rank1"]["recv_messages"] == 400
    lost = sum(result.counters[f"node{node}.nic"]["link_lost"] for node in (0, 1))
    assert lost > 0
    assert result.counters["rank0"]["resent_messages"] > 0


class Every(Policy):
    """An interrupt for each packet, in Python."""

    def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> str | None:
        return "packet"


class Broken(Policy):
    """A user's mistake."""

    def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> str | None:
        raise ZeroDivisionError("my own mistake")


@on_both_engines
def test_a_users_policy_decides() -> None:
    result = run(pingpong_pair(wait=BLOCK, policy=lambda index: Every()))
    nic = result.counters["node0.nic"]
    assert nic["irq_raised"] == nic["irq_raised_packet"] > 0


@on_both_engines
def test_a_users_policy_is_made_for_each_rx_queue() -> None:
    result = run(two_queues(lambda _index: Every()))
    assert result.counters["node0.nic"]["irq_raised"] > 0
    assert all(result.interrupts[0][core][core] > 0 for core in (0, 1))


def test_a_users_policy_serves_one_rx_queue() -> None:
    shared = Every()
    with pytest.raises(AgentError, match="nic failed: a coalescing policy has state and serves"):
        run(two_queues(lambda _index: shared))


def two_queues(policy: Callable[[int], Policy]) -> ClusterSpec:
    nic, host = NicParameters(rx_queues=2), HostParameters(cores=2)
    ranks = tuple(
        RankSpec(number % 2, "pingpong", options={"iterations": 30, "warmup": 0})
        for number in range(4)
    )
    return ClusterSpec(ranks=ranks, wait=BLOCK, nic=nic, host=host, policy=policy)


@on_both_engines
def test_a_users_policy_that_raises_ends_the_run_with_its_traceback() -> None:
    with pytest.raises(
        AgentError, match=r"nic failed: ZeroDivisionError: my own mistake"
    ) as caught:
        run(pingpong_pair(wait=BLOCK, policy=lambda index: Broken()))
    assert "in on_dma_complete" in caught.value.traceback
    assert caught.value.exit_code == 3


def test_impossible_runs_are_refused_before_anything_starts() -> None:
    with pytest.raises(InputError, match="no CPU 99 here; the usable CPUs are"):
        Forked().place(pingpong_pair(cpus={"node0.core0": 99}))
    with pytest.raises(
        InputError,
        match="no workload 'dance'; nic 'ethernet' has anatomy, idle, invalid, "
        "pingpong, soak, stream",
    ):
        Forked().run(ClusterSpec(ranks=(RankSpec(0, "dance"),)))


def test_a_run_keeps_a_log_and_a_trace(tmp_path: Path) -> None:
    with run_log(tmp_path, logging.DEBUG) as path:
        run(pingpong_pair(wait=BLOCK), directory=tmp_path)
        run(pingpong_pair(wait=BLOCK), directory=tmp_path)
    assert path.read_text().count("5 processes on") + path.read_text().count("6 processes on") == 2


def test_sixteen_agents_start_and_stop() -> None:
    result = run(sixteen_agents())
    assert len(list(result.placement.agents())) == 16
    # How long it may take: tests/timing.
    assert result.launch_s > 0
    assert result.stop_s > 0
