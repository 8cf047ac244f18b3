"""Ranks that poll the rx ring: watchdog and irq-suspend, on one node. All times are exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from support.host_node import CORE0, NIC, RANK, SESSION, HostNode, frame

from shrimpmx.errors import InputError
from shrimpmx.host.endpoint import close_dead
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.shared.node import put_frame
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

TAKEN, FREE, SUSPENDED, RESUMED, DEFERRED, OF_RANK = 0, 1, 2, 3, 256, 65536 + RANK
WATCHDOG, SUSPEND = 1, 2
SUSPEND_NS, FLUSH_NS, DEFERS = 1_000_000, 20_000, 10
DEFERRING = {"defer_hard_irqs": DEFERS, "flush_timeout_ns": FLUSH_NS}
TICK_NS = 250_000_000


@dataclass
class Polled:
    """A node with a rank that polls, the irq agent of core 0, and that agent's wait slot."""

    host: HostNode
    busy: BusyPoll
    endpoint: Endpoint
    irq: InterruptAgent
    irq_slot: WaitSlotView

    @classmethod
    def make(cls, how: int = SUSPEND, frames: int = 0, core: int = 0, **layout: Any) -> Polled:
        settings = {"event_ring_entries": 1024, "rx_ring_entries": 1024, "tx_ring_entries": 1024}
        host = HostNode.make(opened=False, busy_poll=how, **{**settings, **layout})
        busy = BusyPoll(host.node, core, SUSPEND_NS)
        waiter = Waiter(host.control, RANK, make_strategy("block", 0))
        endpoint = Endpoint(
            host.node, 0, RANK, waiter, agent=RANK, session_id=SESSION, busy_poll=busy
        )
        defers = DEFERRING if how == SUSPEND else {}
        irq = host.irq(**defers)
        polled = cls(host, busy, endpoint, irq, host.wait_slot(CORE0))
        polled.deliver(frames)
        irq.step_at(0)
        return polled

    def deliver(self, frames: int) -> None:
        for _ in range(frames):
            assert put_frame(self.host.node, "rx", 0, frame("tiny"))

    def at(self, now_ns: int) -> int:
        """A pass at `now_ns`."""
        self.host.control.set_virtual_ns(now_ns)
        return self.endpoint.progress()

    @property
    def left(self) -> int:
        """Frames in the rx ring."""
        return self.host.node.ring_depths()["rx", 0]


# -- what a look does ------------------------------------------------------------------


def test_a_rank_takes_frames_without_an_interrupt() -> None:
    polled = Polled.make(WATCHDOG, frames=5)
    assert polled.busy.look_at(10) == 5
    assert (polled.left, polled.host.token()) == (0, FREE)
    expected = {"busy_polls": 1, "recv_packets": 5, "recv_tiny": 5}
    assert polled.host.counters(CORE0) == expected, "they count for the core's irq agent"
    assert polled.busy.found
    assert polled.busy.look_at(20) == 0
    assert not polled.busy.found


def test_the_budget_of_a_look_is_8() -> None:
    polled = Polled.make(WATCHDOG, frames=20)
    assert [polled.busy.look_at(0) for _ in range(4)] == [8, 8, 4, 0]
    assert polled.host.counters(CORE0)["busy_polls"] == 3


def test_the_messages_are_there_in_the_same_pass() -> None:
    polled = Polled.make(WATCHDOG, frames=3)
    assert polled.at(0) == 3
    assert polled.endpoint.counters()["recv_events"] == 3


def test_one_handles_frames_at_a_time() -> None:
    polled = Polled.make(WATCHDOG, frames=3)
    for token in (TAKEN, OF_RANK + 1):
        polled.host.set_token(token)
        assert polled.busy.look_at(0) == 0
        assert not polled.busy.is_ready()
        assert polled.host.token() == token
    assert polled.left == 3


def test_a_rank_whose_tx_ring_has_no_room_for_answers_leaves_frames_alone() -> None:
    polled = Polled.make(WATCHDOG, frames=3, tx_ring_entries=16)
    assert polled.busy.look_at(0) == 0
    assert not polled.busy.is_ready()
    assert polled.host.token() == FREE
    some = Polled.make(WATCHDOG, frames=8, tx_ring_entries=128)
    assert some.busy.look_at(0) == 3, "(128 - 128 / 8) / 32 blocks"


def test_answers_go_out_by_the_ranks_own_ring_and_count_for_it() -> None:
    polled = Polled.make(WATCHDOG)
    put_frame(polled.host.node, "rx", 0, frame("tiny", session=SESSION + 1))
    assert polled.busy.look_at(0) == 1
    depths = polled.host.node.ring_depths()
    assert (depths["endpoint_tx", 0], depths["core_tx", 0]) == (1, 0)
    assert polled.host.counters(RANK)["send_nack_lib"] == 1
    assert "send_nack_lib" not in polled.host.counters(CORE0)


def test_a_wish_that_meets_a_polling_rank_is_told_to_the_nic() -> None:
    polled = Polled.make(WATCHDOG, frames=1)
    nic = polled.host.wait_slot(NIC)
    nic.arm()
    polled.busy.look_at(0)
    assert nic.wakes == 0
    polled.deliver(1)
    polled.host.set_wish(1)
    polled.busy.look_at(0)
    assert (polled.host.token(), nic.wakes) == (FREE, 1)


def test_watchdogs_handler_has_no_timers() -> None:
    polled = Polled.make(WATCHDOG, frames=1)
    polled.host.raise_interrupt()
    polled.irq.step_at(0)
    assert (polled.host.token(), polled.irq.due_ns) == (FREE, TICK_NS)


# -- suspension --------------------------------------------------------------------------


def test_a_rank_that_finds_frames_keeps_interrupts_off() -> None:
    polled = Polled.make(frames=2)
    polled.irq_slot.arm()
    assert polled.at(1_000) == 2
    assert polled.host.token() == SUSPENDED
    assert polled.irq_slot.wakes == 1, "it is told to set its timer"
    assert polled.irq.step_at(2_000) == 0
    assert polled.irq.due_ns == 1_000 + SUSPEND_NS
    assert polled.host.counters(CORE0)["suspensions"] == 1


def test_as_long_as_it_finds_some_the_timer_never_polls() -> None:
    polled = Polled.make(frames=1)
    polled.at(0)
    polled.irq.step_at(0)
    polled.irq_slot.arm()
    for now_ns in range(900_000, 9_000_000, 900_000):
        polled.deliver(1)
        assert polled.at(now_ns) == 1
        due_ns = polled.irq.due_ns
        assert due_ns is not None
        if due_ns <= now_ns + 100_000:
            assert polled.irq.step_at(due_ns) == 0
            assert polled.irq.due_ns == now_ns + SUSPEND_NS
    assert polled.irq_slot.wakes == 0, "an agent with a timer needs no wake-up"
    assert polled.host.counters(CORE0)["suspensions"] == 1
    assert "poll_timers" not in polled.host.counters(CORE0)


def test_a_stalled_application_is_relieved_at_its_timeout() -> None:
    polled = Polled.make(frames=1)
    polled.at(500)
    polled.irq.step_at(500)
    polled.deliver(70)
    assert polled.irq.step_at(500 + SUSPEND_NS - 1) == 0
    assert polled.irq.step_at(500 + SUSPEND_NS) == 65, "the timer, and its budget of frames"
    polled.irq.step_at(500 + SUSPEND_NS)
    assert (polled.left, polled.host.token()) == (0, DEFERRED)
    for number in range(1, DEFERS + 1):
        polled.irq.step_at(500 + SUSPEND_NS + number * FLUSH_NS)
    assert (polled.host.token(), polled.irq.due_ns) == (FREE, TICK_NS)
    assert polled.host.counters(CORE0)["poll_timers"] == 1 + DEFERS


def test_a_timer_that_comes_in_the_middle_of_a_poll_is_set_by_the_next_suspension() -> None:
    polled = Polled.make(frames=1)
    polled.at(0)
    polled.irq.step_at(0)
    polled.host.set_token(OF_RANK)
    assert polled.irq.step_at(SUSPEND_NS) == 0
    assert polled.irq.due_ns == TICK_NS, "nothing is suspended"
    polled.host.set_token(FREE)
    polled.irq_slot.arm()
    polled.deliver(1)
    polled.at(SUSPEND_NS + 5)
    assert (polled.host.token(), polled.irq_slot.wakes) == (SUSPENDED, 1)
    polled.irq.step_at(SUSPEND_NS + 5)
    assert polled.irq.due_ns == 2 * SUSPEND_NS + 5


def test_a_look_in_vain_goes_back_to_timers_and_then_to_interrupts() -> None:
    polled = Polled.make(frames=1)
    polled.at(0)
    polled.irq.step_at(0)
    polled.irq_slot.arm()
    assert polled.at(30_000) == 0
    assert (polled.host.token(), polled.irq_slot.wakes) == (RESUMED, 1)
    assert polled.irq.step_at(30_000) == 1, "it polls at once, as a scheduled softirq"
    for number in range(1, DEFERS + 1):
        assert (polled.host.token(), polled.irq.due_ns) == (DEFERRED, 30_000 + number * FLUSH_NS)
        polled.irq.step_at(30_000 + number * FLUSH_NS)
    assert polled.host.token() == FREE


def test_a_resumed_handler_that_is_still_deferring_can_be_suspended_again() -> None:
    polled = Polled.make(frames=1)
    polled.at(0)
    polled.irq.step_at(0)
    polled.at(10_000)
    polled.irq.step_at(10_000)
    assert polled.host.token() == DEFERRED
    polled.irq_slot.arm()
    polled.deliver(1)
    assert polled.at(15_000) == 1
    assert (polled.host.token(), polled.irq_slot.wakes) == (SUSPENDED, 0)
    assert polled.irq.step_at(30_000) == 0, "its deferral's timer finds the suspension"
    assert polled.irq.due_ns == 15_000 + SUSPEND_NS
    assert polled.host.counters(CORE0)["suspensions"] == 2


def test_events_that_the_handler_posted_suspend_too() -> None:
    polled = Polled.make(frames=2)
    polled.host.raise_interrupt()
    polled.irq.step_at(0)
    assert polled.host.token() == DEFERRED
    assert polled.at(3_000) == 2
    assert polled.host.token() == SUSPENDED
    polled.irq.step_at(FLUSH_NS)
    assert polled.irq.due_ns == 3_000 + SUSPEND_NS


def test_events_do_not_take_the_token_from_a_handler_at_work() -> None:
    polled = Polled.make(frames=2)
    polled.host.raise_interrupt()
    polled.irq.step_at(0)
    polled.host.set_token(TAKEN)
    assert polled.at(1_000) == 2
    assert polled.host.token() == TAKEN


def test_a_deferral_of_another_core_that_a_rank_ends_is_watched_by_the_timer_core() -> None:
    polled = Polled.make(frames=1)
    other = polled.host.irq(1, **DEFERRING)
    polled.host.raise_interrupt(core=1)
    other.step_at(0)
    assert polled.host.token() == DEFERRED + 1
    polled.irq_slot.arm()
    polled.at(5_000)
    assert (polled.host.token(), polled.irq_slot.wakes) == (SUSPENDED, 1)
    assert other.step_at(FLUSH_NS) == 0
    assert other.due_ns is None
    polled.irq.step_at(FLUSH_NS)
    assert polled.irq.due_ns == 5_000 + SUSPEND_NS


# -- not to leave interrupts off ----------------------------------------------------------


def test_the_look_before_a_sleep_resumes_and_other_looks_do_not() -> None:
    polled = Polled.make(frames=1)
    rank = polled.host.wait_slot(RANK)
    polled.at(0)
    assert not polled.busy.is_ready()
    assert polled.host.token() == SUSPENDED, "a rank that spins goes on looking"
    rank.arm()
    polled.irq_slot.arm()
    assert not polled.busy.is_ready()
    assert (polled.host.token(), polled.irq_slot.wakes) == (RESUMED, 1)


def test_a_rank_with_frames_to_take_does_not_go_to_sleep() -> None:
    polled = Polled.make(frames=1)
    polled.at(0)
    polled.deliver(1)
    polled.host.wait_slot(RANK).arm()
    assert polled.busy.is_ready()
    assert polled.host.token() == SUSPENDED


def test_closing_resumes() -> None:
    polled = Polled.make(frames=1)
    polled.at(0)
    polled.endpoint.close()
    assert polled.host.token() == RESUMED


def test_a_dead_rank_is_relieved_by_the_timer() -> None:
    polled = Polled.make(frames=1)
    polled.at(0)
    polled.irq.step_at(0)
    close_dead(polled.host.node, 0)
    assert polled.host.token() == SUSPENDED, "not in the middle of a poll"
    polled.deliver(1)
    polled.irq.step_at(SUSPEND_NS)
    assert polled.left == 0
    assert polled.host.counters(CORE0)["drop_bad_endpoint"] == 1


@pytest.mark.parametrize("how", [WATCHDOG, SUSPEND])
def test_the_token_of_a_rank_that_died_in_a_poll_comes_back(how: int) -> None:
    polled = Polled.make(how, frames=3)
    polled.host.set_token(OF_RANK)
    polled.irq_slot.arm()
    close_dead(polled.host.node, 0)
    assert (polled.host.token(), polled.irq_slot.wakes) == (RESUMED, 1)
    for number in range(DEFERS + 1):
        polled.irq.step_at(number * FLUSH_NS)
    assert (polled.left, polled.host.token()) == (0, FREE)


def test_a_death_wakes_the_neighbours() -> None:
    """It may have posted an event for one, and died before it woke it."""
    polled = Polled.make(WATCHDOG)
    rank = polled.host.wait_slot(RANK)
    word = rank.arm()
    close_dead(polled.host.node, 1)
    assert rank.sleep(word, 0) == 0


def test_a_wait_in_vain_goes_back_to_interrupts() -> None:
    polled = Polled.make(frames=1)
    polled.at(0)
    assert polled.host.token() == SUSPENDED
    receive = polled.endpoint.irecv(bytearray(1), 1)
    polled.host.control.set_virtual_ns(20_000)
    assert polled.endpoint.wait(receive, timeout_ns=0) is None
    assert polled.host.token() == RESUMED


def test_another_ranks_token_stays_with_it() -> None:
    polled = Polled.make(WATCHDOG)
    polled.host.set_token(OF_RANK + 1)
    close_dead(polled.host.node, 0)
    assert polled.host.token() == OF_RANK + 1


# -- refusals -------------------------------------------------------------------------------


def test_not_beside_a_dma_agent() -> None:
    host = HostNode.make(dma_runner=NIC, rx_ring_entries=64)
    with pytest.raises(InputError, match="dma agent"):
        BusyPoll(host.node, 0)


def test_not_on_a_core_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no core 2; its cores are 0 to 1"):
        BusyPoll(HostNode.make().node, 2)
