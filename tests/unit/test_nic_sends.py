"""Completed sends that interrupt, under the virtual clock: when, why, and none forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.agents import make_irq
from support.eager_packets import TrucPacket
from support.memory import assert_counts, runner_place, word32
from support.nic import PLAIN, Nodes, frame, make_firmware
from support.packets import encode, node_address

from shrimpmx.errors import InputError
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.link.rings import ring_links
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.nic.firmware import Firmware
from shrimpmx.nic.interrupt_line import InterruptLine
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.strategies import Disabled
from shrimpmx.settings.strategies import COALESCING_NAMES
from shrimpmx.shared.node import put_frame
from shrimpmx.shared.sizes import ENDPOINT_DESCRIPTOR_BYTES

SENDS_FREED_AT = 164  # in struct endpoint_descriptor
DELAY_NS = 75_000
FRAME_NS = 84  # 60 bytes and 24 around them, a byte per ns
CAUSES = ("packet", "marked", "deferred", "timeout", "frames", "sent")


class Sender:
    """Node 0: its NIC, and the irq agents of its cores."""

    def __init__(
        self,
        cores: int = 1,
        policy: Policy | None = None,
        endpoints: int = 1,
        reuse_ns: int = 0,
        **changes: Any,
    ) -> None:
        self.nodes = Nodes(cores=cores, tx_interrupts=True, endpoints=endpoints)
        parameters = PLAIN.model_copy(update={"link_bits_per_second": 8 * 10**9, **changes})
        if policy is None:
            self.nic = make_firmware(self.nodes, parameters=parameters)
        else:
            links = ring_links(self.nodes.nodes, 0, parameters)
            self.nic = Firmware(self.nodes[0], *links, parameters, policy)
        self.irq = [
            make_irq(self.nodes[0], core, 2, demote_after=0, reuse_ns=reuse_ns)
            for core in range(cores)
        ]

    def send(self, frames: int = 1, ring: str = "core_tx", index: int = 0) -> None:
        for _ in range(frames):
            assert put_frame(self.nodes[0], ring, index, frame(destination=1, source=0))

    def freed(self, endpoint: int) -> int:
        """Frames of an endpoint whose buffers a handler has freed."""
        layout = self.nodes.layouts[0]
        start = layout.endpoints_offset + endpoint * ENDPOINT_DESCRIPTOR_BYTES
        return word32(self.nodes[0].segment, start + SENDS_FREED_AT).value

    def receive(self, time_ns: int, marked: bool = True) -> None:
        """A frame that the handler drops and answers with none."""
        dropped = encode(
            TrucPacket(
                destination=node_address(0), source=node_address(1), peer_index=1, marked=marked
            )
        )
        assert put_frame(self.nodes[0], "link", 1, dropped, time_ns)

    def counters(self) -> dict[str, int]:
        return self.nodes.counters(0)

    def handled(self) -> dict[str, int]:
        return self.nodes.control.agent_counters(2)

    def check(self) -> None:
        """Every wish is counted and has ended, and every interrupt has a cause and was taken."""
        counters = self.counters()
        wished, raised = counters.get("irq_wished", 0), counters.get("irq_raised", 0)
        assert wished == raised + counters.get("irq_absorbed", 0)
        assert raised == sum(counters.get(f"irq_raised_{cause}", 0) for cause in CAUSES)
        assert raised == self.handled()["interrupts"]


def test_a_send_is_complete_when_its_last_byte_has_left() -> None:
    host = Sender(coalescing="disabled")
    host.send(2)
    host.nic.step_at(1000)
    assert_counts(host.counters(), {"tx_packets": 2, "tx_completed": 0})
    assert host.nic.due_ns == 1000 + FRAME_NS
    host.nic.step_at(1000 + FRAME_NS)
    assert_counts(host.counters(), {"tx_completed": 1, "irq_raised": 1, "irq_raised_sent": 1})


def test_one_interrupt_is_outstanding_and_its_handler_learns_of_all_sends() -> None:
    host = Sender(coalescing="disabled")
    host.send(3)
    host.nic.step_at(1000)
    for number in (1, 2, 3):
        host.nic.step_at(1000 + number * FRAME_NS)
    assert_counts(host.counters(), {"irq_wished": 2, "irq_raised": 1, "irq_held_back": 1})
    host.irq[0].step_at(2000)
    assert_counts(host.handled(), {"interrupts": 1, "sends_reaped": 3, "polls": 0})
    host.nic.step_at(2000)
    assert_counts(host.counters(), {"irq_raised": 1, "irq_absorbed": 1})
    host.check()
    host.send()
    host.nic.step_at(3000)
    host.nic.step_at(3000 + FRAME_NS)
    assert_counts(host.counters(), {"irq_raised": 2, "irq_raised_sent": 2})


@pytest.mark.parametrize("sends", [1, 2])
def test_a_handler_wakes_a_nic_that_wishes_for_another_interrupt(sends: int) -> None:
    """It has slept since: the first interrupt reports one send, and all others wait for it."""
    host = Sender(coalescing="disabled")
    host.send(sends)
    host.nic.step_at(1000)
    for number in range(1, sends + 1):
        host.nic.step_at(1000 + number * FRAME_NS)
    slot = WaitSlotView(host.nodes.control.segment.view(), runner_place(host.nodes.control, 0))
    slot.arm()
    host.irq[0].step_at(2000)
    assert slot.wakes == sends - 1


@pytest.mark.parametrize("rings", ["cccee", "ccE", "eeccEE", "ecEc", "EEEe", "ccc"])
def test_a_handler_frees_the_buffers_of_ranks_that_have_left_and_no_others(rings: str) -> None:
    """Of a core's ring, c, and of two endpoints', e and E, which the NIC takes in turn: a reply of
    a pull that has left is no buffer of a rank's that still waits.
    """
    host = Sender(coalescing="disabled", endpoints=2, reuse_ns=100)
    taken = "".join(sorted(rings, key="ceE".index))
    for ring in taken:
        if ring == "c":
            host.send()
        else:
            host.send(1, "endpoint_tx", "eE".index(ring))
    host.nic.step_at(1000)
    for number in range(1, len(rings) + 1):
        host.nic.step_at(1000 + number * FRAME_NS)
        host.irq[0].step_at(1000 + number * FRAME_NS)
        left = taken[:number]
        assert host.handled()["sends_reaped"] == number
        assert [host.freed(0), host.freed(1)] == [left.count("e"), left.count("E")]


@pytest.mark.parametrize("link", [0, 8 * 10**9])
def test_frames_that_leave_together_are_counted_for_their_own_ranks(link: int) -> None:
    """However many there are of each at a time."""
    host = Sender(coalescing="disabled", endpoints=2, reuse_ns=100, link_bits_per_second=link)
    steps = range(1, 200)  # the far node takes none
    for step in steps:
        time_ns = step * 10_000
        host.send(step % 3)
        host.send(step % 5, "endpoint_tx", 0)
        host.send(step % 2, "endpoint_tx", 1)
        for after_ns in range(0, 11 * FRAME_NS, FRAME_NS):
            host.nic.step_at(time_ns + after_ns)
            host.irq[0].step_at(time_ns + after_ns)
    assert [host.freed(0), host.freed(1)] == [sum(s % 5 for s in steps), sum(s % 2 for s in steps)]


def test_the_timer_reports_sends_and_packets_by_one_interrupt() -> None:
    host = Sender(coalescing="timeout")
    host.send(2)
    host.receive(2000, marked=False)
    host.nic.step_at(1000)
    host.nic.step_at(3000)
    due_ns = 1000 + FRAME_NS + DELAY_NS  # since the first send was complete
    assert host.nic.due_ns == due_ns
    host.nic.step_at(due_ns)
    host.irq[0].step_at(due_ns)
    host.nic.step_at(due_ns + 1)
    assert_counts(host.counters(), {"irq_raised": 1, "irq_raised_timeout": 1, "tx_completed": 2})
    assert_counts(host.handled(), {"interrupts": 1, "sends_reaped": 2, "recv_packets": 1})
    assert host.nic.due_ns is None
    host.check()


def test_sends_alone_are_reported_by_the_timer_and_no_ring_is_polled() -> None:
    host = Sender(coalescing="open-mx")
    host.send()
    host.nic.step_at(1000)
    host.nic.step_at(1000 + FRAME_NS)
    assert "irq_wished" not in host.counters(), "no send is marked"
    host.nic.step_at(1000 + FRAME_NS + DELAY_NS)
    host.irq[0].step_at(10**6)
    assert_counts(host.handled(), {"interrupts": 1, "sends_reaped": 1, "polls": 0})
    assert host.nodes.token().value == 1
    host.check()


@pytest.mark.parametrize("coalescing", ["open-mx", "stream"])
def test_the_interrupt_of_a_mark_reports_sends_too(coalescing: str) -> None:
    host = Sender(coalescing=coalescing)
    host.send()
    host.receive(2000)
    host.nic.step_at(1000)
    host.nic.step_at(2050)
    host.irq[0].step_at(2050)
    assert_counts(host.handled(), {"interrupts": 1, "sends_reaped": 1, "recv_packets": 1})
    assert host.nic.due_ns is None, "the timer has nothing left to report"
    host.check()


def test_packets_that_the_handler_takes_by_itself_leave_the_timer_to_sends() -> None:
    host = Sender(coalescing="timeout", rx_frames=2)
    host.receive(1000)
    host.nic.step_at(1050)
    host.send()
    host.nic.step_at(1100)
    host.nic.step_at(1100 + FRAME_NS)
    host.receive(1300)
    host.nodes.token().value = 0  # a handler polls
    host.nic.step_at(1350)
    assert host.nodes.wish()
    host.nodes.token().value = 1
    host.nic.step_at(1400)
    host.irq[0].step_at(1400)
    host.nic.step_at(1500)
    assert_counts(host.handled(), {"sends_reaped": 1, "recv_packets": 2})
    host.check()


def test_sends_interrupt_a_poll_and_packets_do_not() -> None:
    host = Sender(cores=2, coalescing="disabled")
    host.nodes.token().value = 0  # the handler of some core polls
    host.receive(1000)
    host.send()
    host.nic.step_at(1000)
    host.nic.step_at(1500)
    assert_counts(host.counters(), {"irq_wished": 2, "irq_raised": 1, "irq_raised_sent": 1})
    assert host.nodes.take_interrupts(vector=0) == []
    for irq in host.irq:
        irq.step_at(1500)
    assert_counts(host.handled(), {"interrupts": 1, "sends_reaped": 1, "polls": 0})
    host.nodes.token().value = 1
    host.nic.step_at(2000)
    assert_counts(host.counters(), {"irq_raised": 2, "irq_raised_packet": 1})


def test_a_packet_waits_until_the_interrupt_of_a_send_has_begun() -> None:
    host = Sender(coalescing="disabled")
    host.send()
    host.nic.step_at(1000)
    host.nic.step_at(1000 + FRAME_NS)
    host.receive(1200)
    host.nic.step_at(1250)
    assert_counts(host.counters(), {"irq_raised": 1, "irq_held_back": 1})
    host.irq[0].step_at(1300)
    host.nic.step_at(1300)
    host.irq[0].step_at(1300)
    assert_counts(host.counters(), {"irq_raised": 2, "irq_raised_packet": 1})
    assert_counts(host.handled(), {"interrupts": 2, "recv_packets": 1})
    host.check()


def test_an_interrupt_of_a_send_takes_the_time_of_any_interrupt() -> None:
    host = Sender(coalescing="disabled")
    irq = make_irq(host.nodes[0], 0, 2, interrupt_time_ns=4000)
    host.send()
    host.nic.step_at(1000)
    host.nic.step_at(1000 + FRAME_NS)
    irq.step_at(1100)
    assert irq.due_ns == 1000 + FRAME_NS + 4000
    assert_counts(host.handled(), {"interrupts": 1, "sends_reaped": 0})
    irq.step_at(irq.due_ns)
    assert_counts(host.handled(), {"interrupts": 1, "sends_reaped": 1})


def test_a_policy_in_python_may_answer_a_completed_send() -> None:
    class Answers(Policy):
        def on_send_complete(self, now_ns: int) -> bool:
            return now_ns >= 2000

    host = Sender(policy=Answers())
    for now_ns in (1000, 3000):
        host.send()
        host.nic.step_at(now_ns)
        host.nic.step_at(now_ns + FRAME_NS)
    assert_counts(host.counters(), {"tx_completed": 2, "irq_raised": 1, "irq_raised_sent": 1})


def test_without_them_completed_sends_are_no_events() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="disabled", link_bits_per_second=8 * 10**9)
    put_frame(nodes[0], "core_tx", 0, frame(destination=1, source=0))
    nic.step_at(1000)
    assert nic.due_ns is None
    assert_counts(nodes.counters(0), {"tx_packets": 1, "tx_completed": 0})
    with pytest.raises(InputError, match="completed sends"):
        InterruptLine(nodes[0], 0, Disabled(), 0, of_sends=True)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(("receive", "send", "step", "sleep", "irq0", "irq1")),
        st.integers(0, 400),
        st.booleans(),
    ),
    max_size=120,
)


def settle(host: Sender, now_ns: int) -> None:
    agents: list[Firmware | InterruptAgent] = [host.nic, *host.irq]
    # The last timer is over by then: that of the rank's tick runs for ever.
    while now_ns < 10**8:
        while sum(agent.step_at(now_ns) for agent in agents):
            pass
        due = [agent.due_ns for agent in agents if agent.due_ns is not None]
        now_ns = max(now_ns + 1, min(due))


@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
@settings(max_examples=40)
@given(actions=ACTIONS)
def test_any_interleaving_reports_every_send(
    coalescing: str, actions: list[tuple[str, int, bool]]
) -> None:
    host = Sender(cores=2, coalescing=coalescing, rx_usecs=5)
    now_ns, arrival_ns, sent = 0, 0, 0
    for action, number, marked in actions:
        if action == "receive":
            arrival_ns = max(arrival_ns, now_ns) + number
            host.receive(arrival_ns, marked)
        elif action == "send":
            host.send()
            sent += 1
        elif action.startswith("irq"):
            host.irq[int(action[-1])].step_at(now_ns)
        else:
            due_ns = host.nic.due_ns
            now_ns = now_ns + number if action == "step" else max(now_ns, due_ns or 0)
            host.nic.step_at(now_ns)
    host.send()
    settle(host, now_ns)
    assert_counts(host.counters(), {"tx_completed": sent + 1, "tx_packets": sent + 1})
    if coalescing not in ("watchdog", "irq-suspend"):  # these leave them to the next interrupt
        assert host.handled()["sends_reaped"] == sent + 1
    host.check()
