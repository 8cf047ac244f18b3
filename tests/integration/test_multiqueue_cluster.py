"""Real processes on nodes of four cores: which core handles whose packets, by steering."""

from __future__ import annotations

import pytest
from support import resends
from support.clusters import on_both_engines, run

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

BLOCK = WaitParameters(strategy="block")
CORES = 4
PAIRS = 4
SIZE_BYTES = 100  # a small packet each


def counts(pair: int) -> int:
    """Messages of a pair's stream: no two have the same number."""
    return 300 + 100 * pair


def streams(apart: int = 0, core: int | None = None, **more: object) -> ClusterSpec:
    """Four streams from node 0 to node 1. Pair p has endpoint p of each node, and runs on core
    p + `apart`, or all pairs on `core`.
    """
    ranks = tuple(
        RankSpec(
            number % 2,
            "stream",
            (number // 2 + apart) % CORES if core is None else core,
            {
                "iterations": counts(number // 2),
                "warmup": 0,
                "size_bytes": SIZE_BYTES,
                "window": 16,
            },
        )
        for number in range(2 * PAIRS)
    )
    mx = more.pop("mx", None) or MxParameters()
    assert isinstance(mx, MxParameters)
    patient = mx.model_copy(update={"resend_delay_ns": resends.RESEND_DELAY_NS})
    return ClusterSpec(ranks=ranks, wait=BLOCK, mx=patient, **more)  # type: ignore[arg-type]


def received(result: ClusterResult, counter: str = "recv_small") -> list[int]:
    """What each core of node 1 has counted."""
    return [result.counters[f"node1.irq{core}"][counter] for core in range(CORES)]


def assert_intact(result: ClusterResult) -> None:
    for pair in range(PAIRS):
        assert result.samples[f"rank{2 * pair + 1}"]["count"].tolist() == [counts(pair)]
        assert result.counters[f"rank{2 * pair + 1}"]["recv_messages"] == counts(pair)


def assert_handled(result: ClusterResult, *cores: int) -> None:
    """Each pair's messages arrived on its one of `cores`, and nothing of others did."""
    assert_intact(result)
    packets = received(result)
    for core in range(CORES):
        own = sum(counts(pair) for pair in range(PAIRS) if cores[pair] == core)
        assert packets[core] == own, (core, packets)
    for pair in range(PAIRS):
        assert result.counters[f"rank{2 * pair}"]["resent_messages"] == 0


def off_the_diagonal(result: ClusterResult) -> int:
    """Interrupts of a queue on another core than the one of its number."""
    return sum(
        count
        for node in result.interrupts
        for core, row in enumerate(node)
        for vector, count in enumerate(row)
        if core != vector
    )


@pytest.mark.nightly("each strategy on each engine", but=4)
@on_both_engines
@pytest.mark.parametrize("coalescing", ["disabled", "timeout", "open-mx", "stream"])
def test_each_endpoint_is_handled_on_the_core_of_its_queue(coalescing: str) -> None:
    nic = NicParameters(rx_queues=CORES, coalescing=coalescing)
    result = run(streams(nic=nic, host=HostParameters(cores=CORES)))
    assert_handled(result, 0, 1, 2, 3)
    assert off_the_diagonal(result) == 0
    for counter in ("handover_endpoint", "handover_event"):
        assert received(result, counter) == [0] * CORES
    assert all(count > 0 for count in received(result, "recv_at_process"))


@on_both_engines
def test_three_queues_share_four_endpoints() -> None:
    nic = NicParameters(rx_queues=3, coalescing="open-mx")
    result = run(streams(nic=nic, host=HostParameters(cores=CORES)))
    assert_handled(result, 0, 1, 2, 0)
    assert received(result, "handover_endpoint") == [0] * CORES


@on_both_engines
def test_opening_an_endpoint_moves_its_process_to_the_core_of_its_queue() -> None:
    spec = streams(
        core=0,
        nic=NicParameters(rx_queues=CORES, coalescing="open-mx"),
        host=HostParameters(cores=CORES),
        mx=MxParameters(process_binding="auto"),
    )
    result = run(spec)
    assert_handled(result, 0, 1, 2, 3)
    assert received(result, "handover_event") == [0] * CORES
    assert all(count > 0 for count in received(result, "recv_at_process"))


@on_both_engines
def test_one_queue_round_robin_hands_everything_over() -> None:
    host = HostParameters(cores=CORES)
    result = run(streams(nic=NicParameters(coalescing="disabled"), host=host))
    assert_intact(result)
    assert sum(received(result, "handover_endpoint")) > 0
    assert sum(received(result, "handover_event")) > 0


@on_both_engines
def test_a_hash_that_knows_ip_only_sends_all_to_the_first_queue() -> None:
    nic = NicParameters(rx_queues=CORES, steering="rss", coalescing="open-mx")
    result = run(streams(nic=nic, host=HostParameters(cores=CORES)))
    assert_handled(result, 0, 0, 0, 0)
    assert off_the_diagonal(result) == 0


@on_both_engines
@pytest.mark.parametrize(("cpus", "takers"), [("", (0, 1, 2, 3)), ("1,3", (1, 3, 1, 3))])
def test_software_steering_hands_packets_to_its_cores(cpus: str, takers: tuple[int, ...]) -> None:
    nic = NicParameters(steering="rps", coalescing="open-mx")
    host = HostParameters(cores=CORES, irq_binding="0", rps_cpus=cpus)
    result = run(streams(nic=nic, host=host))
    assert_handled(result, *takers)
    assert received(result, "handover_endpoint") == [0] * CORES
    assert received(result, "rps_steered")[0] > 0
    assert [sum(row) > 0 for row in result.interrupts[1]] == [True, False, False, False]


@on_both_engines
def test_queues_follow_the_processes() -> None:
    nic = NicParameters(rx_queues=CORES, steering="arfs", coalescing="open-mx")
    result = run(streams(apart=1, nic=nic, host=HostParameters(cores=CORES)))
    assert_intact(result)
    # Each endpoint begins in the queue of its number, and moves; no two cores have frames of it at
    # once, so that it is handed over no more often than it moves.
    moves = result.counters["node1.nic"]["flow_moves"]
    assert PAIRS <= sum(received(result, "handover_endpoint")) <= moves
    assert off_the_diagonal(result) == 0
    assert sum(received(result, "recv_at_process")) > sum(received(result, "handover_event"))


@pytest.mark.nightly("each way to steer on each engine", but=3)
@on_both_engines
@pytest.mark.parametrize("copy_offload", [False, True])
@pytest.mark.parametrize("steering", ["endpoint", "arfs"])
def test_large_messages_arrive_whole_over_several_queues(steering: str, copy_offload: bool) -> None:
    options = {"iterations": 10, "warmup": 0, "size_bytes": 200_000}
    ranks = tuple(
        RankSpec(number % 2, "pingpong", number // 2, options) for number in range(2 * PAIRS)
    )
    spec = ClusterSpec(
        ranks=ranks,
        wait=BLOCK,
        nic=NicParameters(rx_queues=CORES, steering=steering, coalescing="open-mx"),
        mx=resends.MX,
        host=resends.HOST.model_copy(update={"cores": CORES, "copy_offload": copy_offload}),
    )
    result = run(spec)
    for number in range(2 * PAIRS):
        assert result.counters[f"rank{number}"]["recv_messages"] == 10
    for core in range(CORES):
        handled = result.counters[f"node1.irq{core}"]
        assert handled["recv_pull_reply"] == 10 * 137  # 1468 bytes each
        assert handled["handover_pull"] == 0
