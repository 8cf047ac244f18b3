"""A host that is charged for interrupts and packets: when it handles what, to the nanosecond."""

from __future__ import annotations

from typing import Any

import pytest
from support.host_node import HostNode, frame
from support.memory import assert_counts

from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.shared.node import put_frame

TINY = frame("tiny")
COSTS = {"interrupt_time_ns": 4_000, "packet_cost_ns": 700}
TICK_NS = 250_000_000  # a quarter of the pulls' resend delay


def host_with(frames: int, **costs: Any) -> tuple[HostNode, InterruptAgent]:
    host = HostNode.make(event_ring_entries=1024, rx_ring_entries=1024)
    deliver(host, frames)
    host.raise_interrupt()
    irq = host.irq(**{**COSTS, **costs})
    # The first tick is set by the first step.
    return host, irq


def deliver(host: HostNode, frames: int) -> None:
    for _ in range(frames):
        assert put_frame(host.node, "rx", 0, TINY)


def handled(host: HostNode) -> int:
    return host.counters().get("recv_packets", 0)


def steps(host: HostNode, irq: InterruptAgent, start_ns: int = 0) -> list[tuple[int, int]]:
    """Step at each due time until the token is back: (time, frames handled so far)."""
    seen = []
    now_ns = start_ns
    while host.token() == 0:
        irq.step_at(now_ns)
        seen.append((now_ns, handled(host)))
        assert irq.due_ns is not None
        now_ns = irq.due_ns
    return seen


def test_an_interrupt_and_each_packet_take_their_time() -> None:
    host, irq = host_with(3)
    assert steps(host, irq, 1_000) == [
        (1_000, 0),  # the interrupt comes, 1 us late of its 4
        (4_000, 0),  # the first frame, 0.7 us
        (4_700, 1),
        (5_400, 2),
        (6_100, 3),  # and nothing is left
    ]
    assert_counts(host.counters(), {"interrupts": 1, "polls": 1, "recv_packets": 3, "recv_tiny": 3})


def test_nothing_happens_before_it_is_paid() -> None:
    host, irq = host_with(1)
    irq.step_at(0)
    for now_ns in (1, 2_000, 3_999):
        assert irq.step_at(now_ns) == 0
        assert irq.due_ns == 4_000
    irq.step_at(4_000)
    assert irq.step_at(4_699) == 0
    assert handled(host) == 0
    irq.step_at(4_700)
    assert handled(host) == 1


def test_an_interrupt_that_is_late_enough_costs_nothing_more() -> None:
    host, irq = host_with(1)
    assert steps(host, irq, 4_001) == [(4_001, 0), (4_701, 1)]


def test_interrupts_of_several_vectors_follow_each_other() -> None:
    host = HostNode.make(event_ring_entries=1024, rx_ring_entries=1024, rx_queues=2)
    host.raise_interrupt(0, now_ns=500)
    host.raise_interrupt(1, now_ns=900)
    irq = host.irq(**COSTS)
    irq.step_at(1_000)
    assert irq.due_ns == 500 + 2 * 4_000


def test_a_poll_that_has_paid_goes_on_when_another_vector_interrupts() -> None:
    host = HostNode.make(event_ring_entries=1024, rx_ring_entries=1024, rx_queues=2)
    for vector, count in ((1, 3), (0, 2)):
        for _ in range(count):
            assert put_frame(host.node, "rx", vector, TINY)
    irq = host.irq(packet_cost_ns=700)
    host.raise_interrupt(1)
    irq.step_at(0)
    host.raise_interrupt(0)
    seen = []
    for now_ns in (700, 1_400, 2_100, 2_100, 2_800, 3_500):
        assert irq.due_ns == now_ns
        irq.step_at(now_ns)
        depths = host.node.ring_depths()
        seen.append((depths["rx", 0], depths["rx", 1]))
    assert seen == [(2, 2), (2, 1), (2, 0), (2, 0), (1, 0), (0, 0)]
    assert (host.token(0), host.token(1)) == (1, 1)
    assert host.counters()["polls"] == 2


def flooded(vectors: int, steps: int, **costs: Any) -> tuple[HostNode, InterruptAgent]:
    """A core on whose every vector there is always more than a poll's budget of 2 takes."""
    host = HostNode.make(event_ring_entries=1024, rx_ring_entries=1024, rx_queues=vectors)
    irq = host.irq(budget=2, **costs)
    for vector in range(vectors):
        host.raise_interrupt(vector)
    now_ns = 0
    for _ in range(steps):
        for vector in range(vectors):
            while host.node.ring_depths()["rx", vector] < 4:
                assert put_frame(host.node, "rx", vector, TINY)
        irq.step_at(now_ns)
        assert irq.due_ns is not None
        now_ns = irq.due_ns
        host.events()
    return host, irq


@pytest.mark.parametrize("vectors", [1, 2, 3])
@pytest.mark.parametrize("cost_ns", [0, 700])
def test_polls_that_use_up_the_budget_lead_to_demotion(vectors: int, cost_ns: int) -> None:
    """Whichever of the vectors they were on."""
    steps = 40 if cost_ns == 0 else 40 * 3 * vectors
    host, irq = flooded(vectors, steps, packet_cost_ns=cost_ns, demote_after=10)
    assert irq.wants_demotion
    assert host.counters()["demotions"] == 1
    rounds = host.counters()["budget_exhausted"]
    assert rounds in (host.counters()["polls"] // vectors, host.counters()["polls"] // vectors - 1)


@pytest.mark.parametrize("cost_ns", [0, 700])
def test_no_vector_starves_behind_busier_ones(cost_ns: int) -> None:
    host, _ = flooded(3, 200, packet_cost_ns=cost_ns, demote_after=0)
    ring = host.node.ring_depths()
    assert all(ring["rx", vector] <= 4 for vector in range(3))
    tails = [host.ring_tail(vector) for vector in range(3)]
    assert max(tails) - min(tails) <= 2, "as many packets of each, but for the poll going on"


def test_a_late_step_pays_from_its_own_time() -> None:
    _, irq = host_with(2)
    irq.step_at(0)
    irq.step_at(10_000)
    assert irq.due_ns == 10_700


def test_frames_that_come_meanwhile_belong_to_the_poll() -> None:
    host, irq = host_with(1)
    irq.step_at(0)
    irq.step_at(4_000)
    deliver(host, 1)
    assert steps(host, irq, 4_700) == [(4_700, 1), (5_400, 2)]
    assert host.counters()["polls"] == 1


def test_the_budget_ends_a_charged_poll() -> None:
    host, irq = host_with(5, budget=2, interrupt_time_ns=0)
    assert [count for _, count in steps(host, irq)] == [0, 1, 2, 2, 3, 4, 4, 5]
    counters = host.counters()
    assert counters["polls"] == 3
    assert counters["budget_exhausted"] == 2


def test_only_interrupts_cost() -> None:
    host, irq = host_with(3, packet_cost_ns=0)
    assert steps(host, irq) == [(0, 0), (4_000, 3)]


def test_the_tick_waits_for_the_work() -> None:
    host, irq = host_with(1)
    irq.step_at(0)
    irq.step_at(TICK_NS)
    assert host.counters()["timer_ticks"] == 1
