"""SHRIMP's NIC, handlers and ranks as real processes: every strategy waits for flags."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
from support.clusters import on_both_engines, run
from support.vmmc_programs import LIMIT_NS, PAGE, VMMC, cluster, flag_pingpong, map_when_exported

from shrimpmx.cluster.engine.trace_text import words
from shrimpmx.cluster.nics.vmmc import VmmcRank
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AgentError, InputError, VmmcError
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.strategies import PAPER_WAIT_NAMES, WAIT_NAMES

ROUNDS = 100
SLEEPING = [name for name in WAIT_NAMES if name not in ("spin", "sched", "spin-sched")]


@pytest.mark.nightly("each wait on each engine", but=12)
@on_both_engines
@pytest.mark.parametrize("strategy", WAIT_NAMES)
def test_ranks_play_by_flags(strategy: str) -> None:
    wait = WaitParameters(strategy=strategy, spin_ns=20_000)  # type: ignore[arg-type]
    result = run(cluster(flag_pingpong(ROUNDS), wait=wait))
    for rank in ("rank0", "rank1"):
        assert result.samples[rank]["rounds"].tolist() == [ROUNDS]
        assert result.accounts[rank]["waits"] >= ROUNDS - 1


@on_both_engines
def test_a_trace_tells_of_every_update_and_changes_nothing() -> None:
    """Ranks lend the NICs their CPU in a traced run, too."""
    spec = cluster(flag_pingpong(ROUNDS), wait=WaitParameters(strategy="block"))
    traced = dataclasses.replace(spec, trace_entries=4096)
    plain, told = run(spec), run(traced)
    assert told.placement.lends == plain.placement.lends
    seen = Counter(
        (told.agents[each.agent], words(each).partition(" for")[0]) for each in told.records
    )
    for node in (0, 1):
        updates = told.counters[f"rank{node}"]["sent_updates"]
        assert updates == plain.counters[f"rank{node}"]["sent_updates"]
        assert seen[f"node{node}.nic", "frame sent: update"] == updates
        assert seen[f"node{1 - node}.nic", "frame arrived: update"] == updates


@pytest.mark.parametrize("strategy", SLEEPING)
def test_no_wake_up_is_lost(strategy: str) -> None:
    # A spin limit of about the time that a hand-over takes: both ends of it are met.
    wait = WaitParameters(strategy=strategy, spin_ns=15_000)  # type: ignore[arg-type]
    run(cluster(flag_pingpong(1000, pause_us=60), wait=wait))


@pytest.mark.nightly("each strategy on each engine", but=4)
@on_both_engines
@pytest.mark.parametrize("strategy", ["block", "notify", "spin-block", "watchdog"])
@pytest.mark.parametrize("cores", [1, 2])
def test_two_pairs_share_the_nics(strategy: str, cores: int) -> None:
    wait = WaitParameters(strategy=strategy, spin_ns=20_000)  # type: ignore[arg-type]
    ranks = tuple(
        RankSpec(node, "function", pair % cores, function=flag_pingpong(ROUNDS))
        for pair in range(2)
        for node in (0, 1)
    )
    host = HostParameters(cores=cores)
    result = run(ClusterSpec(ranks=ranks, nic=VMMC, host=host, wait=wait))
    assert all(result.samples[f"rank{n}"]["rounds"] == ROUNDS for n in range(4))


@pytest.mark.nightly("each strategy on each engine", but=1)
@on_both_engines
@pytest.mark.parametrize("strategy", PAPER_WAIT_NAMES)
def test_five_pairs_share_a_core_of_each_node(strategy: str) -> None:
    wait = WaitParameters(strategy=strategy, spin_ns=20_000)  # type: ignore[arg-type]
    rounds = 3 if strategy == "spin" else 20
    result = run(cluster(flag_pingpong(rounds), (0, 1) * 5, wait=wait))
    assert all(result.samples[f"rank{n}"]["rounds"] == rounds for n in range(10))


@on_both_engines
def test_two_ranks_of_one_node_are_partners_by_their_own_nic() -> None:
    run(cluster(flag_pingpong(ROUNDS), (0, 0), wait=WaitParameters(strategy="block")))


@on_both_engines
def test_a_buffer_is_withdrawn_in_the_middle_of_a_stream() -> None:
    last = 1 << 20

    def stream(context: VmmcRank) -> None:
        process = context.process
        control = process.export(PAGE)
        ready = control.flag(0)
        partner = map_when_exported(process, context.peer_node, context.peer_endpoint)
        if context.number == 0:
            target = map_when_exported(process, context.peer_node, context.peer_endpoint, 1)
            data = np.full(16 * PAGE, 1, np.uint8)
            number, more = 0, 10
            while more:
                # Some are under way when the other one tells that it has withdrawn the buffer.
                more -= ready.value
                number += 1
                data[:] = number % 256
                target.update(data)
                partner.set_flag(0, number)
            partner.set_flag(0, last)
            return
        buffer = process.export(16 * PAGE)
        assert process.wait([ready], timeout_ns=LIMIT_NS) == [ready]
        buffer.withdraw()
        after = buffer.memory.copy()
        partner.set_flag(0, 1)
        while ready.value != last:
            assert process.wait([ready], timeout_ns=LIMIT_NS)
        assert np.array_equal(buffer.memory, after), "written after it was withdrawn"

    result = run(cluster(stream, wait=WaitParameters(strategy="spin-block")))
    counters = next(of for name, of in result.counters.items() if name == "node1.nic")
    assert counters["drop_vmmc_not_exported"] > 0


@on_both_engines
def test_a_map_request_that_is_refused_says_why() -> None:
    def ask(context: VmmcRank) -> None:
        process = context.process
        process.export(PAGE, allowed_node=context.node)
        for endpoint, index, wanted in [
            (context.peer_endpoint, 9, "not-exported"),
            (9, 0, "no-process"),
        ]:
            with pytest.raises(VmmcError) as caught:
                process.map(context.peer_node, endpoint, index, timeout_ns=LIMIT_NS)
            assert caught.value.status == wanted
        with pytest.raises(VmmcError) as caught:
            map_when_exported(process, context.peer_node, context.peer_endpoint)
        assert caught.value.status == "not-allowed"

    run(cluster(ask, wait=WaitParameters(strategy="block")))


def test_workloads_are_those_of_the_nic() -> None:
    with pytest.raises(
        InputError, match=r"'soak' needs nic=ethernet or nic=mx; nic 'vmmc' has .*idle"
    ):
        run(ClusterSpec(ranks=(RankSpec(0, "soak"),), nic=VMMC))
    with pytest.raises(InputError, match="'ttcp' needs nic=vmmc; nic 'ethernet' has"):
        run(ClusterSpec(ranks=(RankSpec(0, "ttcp"),)))


def test_a_rank_without_a_partner_is_told() -> None:
    with pytest.raises(AgentError, match="rank 0 has no peer 1; ranks are 0 to 0"):
        run(cluster(flag_pingpong(1), (0,)))
