"""The irq agent: budget, token, wishes, demotion, several vectors."""

from __future__ import annotations

from typing import Any

import pytest
from support.host_node import CORE0, CORE1, NIC, RANK, HostNode, frame
from support.memory import assert_counts

from shrimpmx.errors import InputError
from shrimpmx.shared.node import put_frame

TINY = frame("tiny")
TICK_NS = 250_000_000  # a quarter of the pulls' resend delay


def host_with(frames: int, **layout: Any) -> HostNode:
    host = HostNode.make(event_ring_entries=1024, rx_ring_entries=1024, **layout)
    deliver(host, frames)
    return host


def deliver(host: HostNode, frames: int, vector: int = 0) -> None:
    for _ in range(frames):
        assert put_frame(host.node, "rx", vector, TINY)


def test_nothing_is_polled_without_an_interrupt() -> None:
    host = host_with(3)
    irq = host.irq()
    assert irq.step_at(0) == 0
    assert irq.due_ns == TICK_NS
    assert host.counters() == {}
    assert irq.name == "node0.irq0"


def test_an_interrupt_empties_the_ring_and_returns_the_token() -> None:
    host = host_with(5)
    irq = host.irq()
    host.raise_interrupt()
    assert irq.step_at(0) == 6, "an interrupt and five frames"
    assert host.token() == 1
    assert irq.due_ns == TICK_NS
    assert len(host.events()) == 5
    assert_counts(host.counters(), {"interrupts": 1, "polls": 1, "recv_packets": 5, "recv_tiny": 5})
    assert irq.step_at(1) == 0


def test_an_interrupt_with_an_empty_ring_returns_the_token() -> None:
    host = host_with(0)
    host.raise_interrupt()
    assert host.irq().step_at(0) == 1
    assert host.token() == 1
    assert_counts(host.counters(), {"interrupts": 1, "polls": 1})


def test_the_budget_bounds_a_poll_and_keeps_the_token() -> None:
    host = host_with(150)
    irq = host.irq()
    host.raise_interrupt()
    for now_ns, handled in ((10, 64), (20, 128)):
        irq.step_at(now_ns)
        assert host.counters()["recv_packets"] == handled
        assert host.token() == 0
        assert irq.due_ns == now_ns
        assert irq.scheduled_vectors == 1
    irq.step_at(30)
    assert host.token() == 1
    assert irq.due_ns == 10 + TICK_NS
    expected = {"interrupts": 1, "polls": 3, "budget_exhausted": 2, "recv_packets": 150}
    assert expected.items() <= host.counters().items()


def test_exactly_the_budget_needs_one_more_poll() -> None:
    host = host_with(64)
    irq = host.irq()
    host.raise_interrupt()
    irq.step_at(0)
    assert host.token() == 0
    irq.step_at(0)
    assert host.token() == 1
    assert host.counters()["polls"] == 2


@pytest.mark.parametrize("budget", [1, 3, 16, 17, 1000])
def test_any_budget(budget: int) -> None:
    host = host_with(100)
    irq = host.irq(budget=budget, demote_after=0)
    host.raise_interrupt()
    while irq.step_at(0):
        assert host.counters()["recv_packets"] <= budget * host.counters()["polls"]
    assert host.counters()["recv_packets"] == 100
    assert host.counters()["polls"] == 100 // budget + 1
    assert host.token() == 1


def test_a_budget_of_zero_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        HostNode.make().irq(budget=0)


def test_slots_are_handed_back_before_the_poll_ends_for_the_nic() -> None:
    host = HostNode.make(rx_ring_entries=64, event_ring_entries=1024)
    irq = host.irq()
    for _ in range(50):
        deliver(host, 64)
        assert not put_frame(host.node, "rx", 0, TINY)
        host.raise_interrupt()
        while irq.step_at(0):
            pass
        host.events()
    assert host.counters()["recv_tiny"] == 3200


def test_handing_back_a_token_that_is_wished_for_wakes_the_nic() -> None:
    host = host_with(2)
    nic = host.wait_slot(NIC)
    nic.arm()
    host.raise_interrupt()
    host.set_wish(1)
    host.irq().step_at(0)
    assert host.token() == 1
    assert nic.wakes == 1


def test_without_a_wish_the_nic_sleeps_on() -> None:
    host = host_with(2)
    nic = host.wait_slot(NIC)
    nic.arm()
    host.raise_interrupt()
    host.irq().step_at(0)
    assert nic.wakes == 0
    assert nic.armed == 1


def test_it_asks_to_be_demoted_when_the_budget_keeps_running_out() -> None:
    host = host_with(300)
    irq = host.irq(demote_after=3)
    host.raise_interrupt()
    wanted = []
    while irq.step_at(0):
        wanted.append(irq.wants_demotion)
        host.events()
    assert wanted == [False, False, True, True, False]
    assert host.counters()["demotions"] == 1
    deliver(host, 100)
    host.raise_interrupt()
    while irq.step_at(0):
        assert not irq.wants_demotion
    assert host.counters()["demotions"] == 1


def test_demotion_can_be_switched_off() -> None:
    host = host_with(900)
    irq = host.irq(demote_after=0)
    host.raise_interrupt()
    while irq.step_at(0):
        assert not irq.wants_demotion
        host.events()
    assert "demotions" not in host.counters()
    assert host.counters()["budget_exhausted"] == 14


def test_a_core_serves_all_vectors_that_are_bound_to_it() -> None:
    host = host_with(0, rx_queues=3)
    irq = host.irq()
    for vector, frames in ((0, 10), (1, 70), (2, 20)):
        deliver(host, frames, vector)
        host.raise_interrupt(vector)
    irq.step_at(0)
    assert [host.token(vector) for vector in range(3)] == [1, 0, 1]
    assert irq.scheduled_vectors == 0b10
    irq.step_at(0)
    assert host.token(1) == 1
    assert len(host.events()) == 100
    assert host.counters()["interrupts"] == 3
    assert host.counters()["budget_exhausted"] == 1


def test_an_interrupt_stays_on_its_core() -> None:
    host = host_with(4)
    first, second = host.irq(0), host.irq(1)
    host.raise_interrupt(core=1)
    assert first.step_at(0) == 0
    assert second.step_at(0) == 5
    assert "interrupts" not in host.counters(CORE0)
    assert host.counters(CORE1)["interrupts"] == 1


def test_core_0_ticks_and_no_other() -> None:
    host = host_with(0)
    first, second = host.irq(0), host.irq(1)
    assert (first.due_ns, second.due_ns) == (0, None)
    for now_ns in (5, TICK_NS + 4, TICK_NS + 5, TICK_NS + 9, 9 * TICK_NS, 10 * TICK_NS):
        assert first.step_at(now_ns) == second.step_at(now_ns) == 0
    assert first.due_ns == 11 * TICK_NS, "late ticks are not caught up with"
    assert second.due_ns is None
    assert_counts(host.counters(CORE0), {"timer_ticks": 3})
    assert host.counters(CORE1) == {}


@pytest.mark.parametrize(
    ("delay_ns", "tick_ns"),
    [(1_000_000, 1_000_000), (3_999_999, 1_000_000), (8 * 10**6, 2 * 10**6)],
)
def test_a_tick_is_a_quarter_of_the_resend_delay_or_1_ms(delay_ns: int, tick_ns: int) -> None:
    irq = host_with(0, pull_resend_delay_ns=delay_ns).irq()
    irq.step_at(7)
    assert irq.due_ns == 7 + tick_ns


def test_the_rank_is_woken_once_per_poll() -> None:
    host = host_with(40)
    rank = host.wait_slot(3)
    rank.arm()
    host.raise_interrupt()
    host.irq().step_at(0)
    assert rank.wakes == 1


@pytest.mark.parametrize(("cpu", "paid_ns"), [(3, 2000), (4, 5000)])
def test_the_call_that_wakes_a_rank_precedes_the_end_of_its_poll(cpu: int, paid_ns: int) -> None:
    """Frames that come meanwhile find the token taken, and interrupt nothing."""
    host = host_with(1)
    host.control.set_placement(CORE0, 3, 0)
    host.control.set_placement(RANK, cpu, 0)
    irq = host.irq(wake_here_call_ns=2000, wake_call_ns=5000)
    rank = host.wait_slot(RANK)
    rank.arm()
    host.raise_interrupt()
    irq.step_at(100)
    assert (rank.wakes, host.token(), irq.due_ns) == (1, 0, 100 + paid_ns)
    deliver(host, 1)
    host.set_wish(2)
    assert irq.step_at(100 + paid_ns - 1) == 0
    for _ in range(2):
        irq.step_at(100 + paid_ns)
    assert (host.token(), len(host.events())) == (1, 2)
    assert host.counters()["interrupts"] == 1


def test_a_poll_whose_calls_others_charge_ends_a_step_after_them() -> None:
    host = host_with(1)
    irq = host.irq(is_process=True)
    rank = host.wait_slot(RANK)
    for armed in (True, False):
        if armed:
            rank.arm()
        else:
            deliver(host, 1)
        host.raise_interrupt()
        irq.step_at(100)
        assert host.token() == (int(not armed))
        irq.step_at(100)
        assert host.token() == 1
