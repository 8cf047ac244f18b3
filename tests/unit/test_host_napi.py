"""napi-defer: the handler leaves interrupts off and polls by timer. All times are exact."""

from __future__ import annotations

from typing import Any

import pytest
from support.host_node import CORE1, NIC, HostNode, frame
from support.memory import assert_counts

from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.shared.node import put_frame

TINY = frame("tiny")
FREE, DEFERRED = 1, 256  # tokens
FLUSH_NS = 20_000
DEFERS = 10
TICK_NS = 250_000_000


def deferring(host: HostNode, core: int = 0, **more: Any) -> InterruptAgent:
    settings = {"defer_hard_irqs": DEFERS, "flush_timeout_ns": FLUSH_NS, **more}
    return host.irq(core, **settings)


def host_with(frames: int, **layout: Any) -> HostNode:
    host = HostNode.make(event_ring_entries=1024, rx_ring_entries=1024, **layout)
    deliver(host, frames)
    return host


def deliver(host: HostNode, frames: int) -> None:
    for _ in range(frames):
        assert put_frame(host.node, "rx", 0, TINY)


def test_ten_times_20_us_after_the_last_frame() -> None:
    """Linux's example: 10 timers of 20 us find nothing, the last of them unmasks."""
    host = host_with(5)
    irq = deferring(host)
    host.raise_interrupt()
    irq.step_at(0)
    for number in range(1, DEFERS + 1):
        assert host.token() == DEFERRED, f"interrupts are off before timer {number}"
        assert irq.due_ns == number * FLUSH_NS
        assert irq.step_at(number * FLUSH_NS - 1) == 0
        assert irq.step_at(number * FLUSH_NS) == 1
        assert host.counters()["poll_timers"] == number
    assert host.token() == FREE
    assert irq.due_ns == TICK_NS
    expected = {"interrupts": 1, "polls": 11, "poll_timers": 10}
    expected |= {"recv_packets": 5, "recv_tiny": 5}
    assert_counts(host.counters(), expected)


def test_a_poll_that_finds_work_begins_the_count_anew() -> None:
    host = host_with(1)
    irq = deferring(host)
    host.raise_interrupt()
    irq.step_at(0)
    for number in range(1, DEFERS):
        irq.step_at(number * FLUSH_NS)
    deliver(host, 3)
    assert irq.step_at(DEFERS * FLUSH_NS) == 4, "a timer and three frames"
    for number in range(DEFERS + 1, 2 * DEFERS + 1):
        assert host.token() == DEFERRED
        irq.step_at(number * FLUSH_NS)
    assert host.token() == FREE
    assert host.counters()["interrupts"] == 1


def test_so_does_one_that_uses_up_its_budget() -> None:
    host = host_with(1)
    irq = deferring(host, budget=4, defer_hard_irqs=2)
    host.raise_interrupt()
    irq.step_at(0)
    deliver(host, 4)
    assert irq.step_at(FLUSH_NS) == 5
    assert (host.token(), irq.due_ns) == (0, FLUSH_NS), "it polls on"
    irq.step_at(FLUSH_NS)
    assert (host.token(), irq.due_ns) == (DEFERRED, 2 * FLUSH_NS), "one of two is left"
    irq.step_at(2 * FLUSH_NS)
    assert host.token() == DEFERRED
    irq.step_at(3 * FLUSH_NS)
    assert host.token() == FREE


def test_an_interrupt_that_finds_nothing_is_not_followed_by_timers() -> None:
    host = host_with(0)
    host.raise_interrupt()
    deferring(host).step_at(0)
    assert host.token() == FREE


def test_a_late_timer_is_not_caught_up_with() -> None:
    host = host_with(1)
    irq = deferring(host)
    host.raise_interrupt()
    irq.step_at(0)
    irq.step_at(55_000)
    assert irq.due_ns == 75_000
    assert host.counters()["poll_timers"] == 1


def test_a_timer_costs_what_an_interrupt_does() -> None:
    host = host_with(1)
    irq = deferring(host, interrupt_time_ns=3_000, packet_cost_ns=700)
    host.raise_interrupt()
    irq.step_at(0)
    assert irq.due_ns == 3_000
    irq.step_at(3_000)
    irq.step_at(3_700)
    assert irq.due_ns == 3_700 + FLUSH_NS
    deliver(host, 1)
    irq.step_at(23_700)
    assert irq.due_ns == 26_700
    irq.step_at(26_700)
    assert len(host.events()) == 1, "the second frame is not paid for yet"
    irq.step_at(27_400)
    assert len(host.events()) == 1
    assert irq.due_ns == 27_400 + FLUSH_NS


def test_a_wish_waits_for_the_last_timer() -> None:
    host = host_with(1)
    irq = deferring(host, defer_hard_irqs=2)
    nic = host.wait_slot(NIC)
    nic.arm()
    host.raise_interrupt()
    host.set_wish(1)
    irq.step_at(0)
    irq.step_at(FLUSH_NS)
    assert nic.wakes == 0
    irq.step_at(2 * FLUSH_NS)
    assert (host.token(), nic.wakes) == (FREE, 1)


def test_each_core_keeps_its_own_timers() -> None:
    host = host_with(2)
    first, second = deferring(host, 0), deferring(host, 1)
    host.raise_interrupt(core=1)
    second.step_at(5)
    assert host.token() == DEFERRED + 1
    assert first.step_at(5 + FLUSH_NS) == 0, "the timer is core 1's"
    assert second.due_ns == 5 + FLUSH_NS
    for number in range(1, DEFERS + 1):
        second.step_at(5 + number * FLUSH_NS)
    assert host.token() == FREE
    assert second.due_ns is None
    assert host.counters(CORE1)["poll_timers"] == DEFERS


@pytest.mark.parametrize("timer", [1, 4, DEFERS])
def test_what_comes_while_interrupts_are_off_waits_for_the_next_timer(timer: int) -> None:
    host = host_with(1)
    irq = deferring(host)
    host.raise_interrupt()
    irq.step_at(0)
    host.events()
    for number in range(1, timer):
        irq.step_at(number * FLUSH_NS)
    deliver(host, 1)
    assert irq.step_at(timer * FLUSH_NS - 1) == 0
    assert host.events() == []
    irq.step_at(timer * FLUSH_NS)
    assert len(host.events()) == 1
