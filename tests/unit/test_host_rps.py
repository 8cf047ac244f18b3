"""Software steering (RPS): one queue's frames on many cores; counts and order are exact."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.host_node import NIC, SESSION, HostNode, core_agent, frame

from shrimpmx.cluster.engine.trace_text import words
from shrimpmx.errors import InputError
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.native.segment import SEGMENT_TRACE, Segment
from shrimpmx.native.trace import Trace
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import put_frame

CORES = 4
WATCHDOG = 1


class Steered:
    """A node whose four cores share the frames of one queue, by endpoint."""

    def __init__(self, endpoints: int = CORES, **more: Any) -> None:
        names = ("budget", "demote_after", "interrupt_time_ns", "packet_cost_ns", "defer_hard_irqs",
                 "flush_timeout_ns")  # fmt: skip
        costs = {name: more.pop(name) for name in names if name in more}
        settings = {"rx_ring_entries": 4096, "event_ring_entries": 4096, **more}
        self.host = HostNode.make(
            cores=CORES, endpoints=endpoints, steering="rps", opened=False, **settings
        )
        for endpoint in self.host.endpoints:
            endpoint.open(SESSION)
        self.agents: list[InterruptAgent] = [self.host.irq(core, **costs) for core in range(CORES)]
        self.sent = [0] * endpoints

    def deliver(self, *endpoints: int) -> None:
        for endpoint in endpoints:
            data = frame("tiny", dst_endpoint=endpoint, lib_seqnum=self.sent[endpoint])
            assert put_frame(self.host.node, "rx", 0, data)
            self.sent[endpoint] += 1

    def counters(self, core: int, *names: str) -> tuple[int, ...]:
        counted = self.host.counters(core_agent(core))
        return tuple(counted.get(name, 0) for name in names)

    def steps(self, core: int, count: int = 1, now_ns: int = 0) -> int:
        return sum(self.agents[core].step_at(now_ns) for _ in range(count))

    def backlog(self, core: int) -> int:
        depth: int = self.host.node.ring_depths()["backlog", core]
        return depth

    def seqnums(self, endpoint: int) -> list[int]:
        return [event["seqnum"] for event in self.host.events(endpoint)]


def test_each_endpoints_frames_go_to_its_core() -> None:
    steered = Steered()
    steered.deliver(0, 1, 1, 2, 0, 3, 3, 3)
    steered.host.raise_interrupt()
    assert steered.steps(0) == 1 + 8
    assert [steered.backlog(core) for core in range(CORES)] == [0, 2, 1, 3]
    assert steered.seqnums(0) == [0, 1], "its own frames are handled at once"
    assert steered.host.token() == 1
    counted = steered.counters(0, "rps_steered", "rps_interrupts", "recv_packets", "interrupts")
    assert counted == (6, 3, 2, 1)
    for core, frames in ((1, 2), (2, 1), (3, 3)):
        assert steered.steps(core) == 1 + frames
        assert steered.seqnums(core) == list(range(frames))
        assert steered.counters(core, "recv_packets", "recv_tiny", "polls") == (frames, frames, 1)
        assert steered.counters(core, "interrupts") == (0,), "no NIC interrupted it"
        assert steered.agents[core].scheduled_vectors == 0
        assert steered.steps(core) == 0


def test_a_core_is_woken_once_per_poll() -> None:
    steered = Steered()
    slots = [steered.host.wait_slot(core_agent(core)) for core in range(CORES)]
    for slot in slots:
        slot.arm()
    steered.deliver(1, 1, 2, 1)
    steered.host.raise_interrupt()
    steered.steps(0)
    assert [slot.wakes for slot in slots] == [0, 1, 1, 0]
    steered.deliver(1)
    steered.host.raise_interrupt()
    slots[1].arm()
    steered.steps(0)
    assert slots[1].wakes == 1, "the interrupt before is not taken yet"
    assert steered.counters(0, "rps_steered", "rps_interrupts") == (5, 2)
    assert steered.steps(1) == 1 + 4
    steered.deliver(1)
    steered.host.raise_interrupt()
    steered.steps(0)
    assert steered.counters(0, "rps_interrupts") == (3,)


def test_frames_without_endpoint_stay() -> None:
    steered = Steered()
    put_frame(steered.host.node, "rx", 0, b"\xff" * 60)
    steered.host.raise_interrupt(core=2)
    steered.steps(2)
    assert steered.counters(2, "recv_packets", "rps_steered") == (1, 0)


def test_only_the_cores_of_the_list_get_frames() -> None:
    steered = Steered(rps_cpus="1,3")
    steered.deliver(0, 1, 2, 3)
    steered.host.raise_interrupt()
    steered.steps(0)
    assert [steered.backlog(core) for core in range(CORES)] == [0, 2, 0, 2]
    steered.steps(1)
    steered.steps(3)
    assert [steered.seqnums(endpoint) for endpoint in range(4)] == [[0]] * 4
    assert steered.counters(1, "recv_packets") == steered.counters(3, "recv_packets") == (2,)


def test_a_full_backlog_drops_and_counts() -> None:
    steered = Steered(budget=4096)
    steered.deliver(*[1] * (NodeLayout.backlog_entries + 7), 0)
    steered.host.raise_interrupt()
    steered.steps(0)
    counted = steered.counters(0, "rps_steered", "rps_backlog_full", "rps_interrupts")
    assert counted == (NodeLayout.backlog_entries, 7, 1)
    assert steered.seqnums(0) == [0]
    while steered.steps(1):
        pass
    assert steered.seqnums(1) == list(range(NodeLayout.backlog_entries))
    assert steered.host.node.ring_depths()["rx", 0] == 0


def test_the_budget_bounds_a_poll_of_a_backlog() -> None:
    steered = Steered(demote_after=2)
    steered.deliver(*[1] * 150)
    steered.host.raise_interrupt()
    steered.steps(0, 3)
    assert steered.counters(0, "polls", "budget_exhausted", "rps_interrupts") == (3, 2, 1)
    wanted = []
    for handled in (64, 128, 150):
        steered.steps(1)
        assert steered.counters(1, "recv_packets") == (handled,)
        wanted.append(steered.agents[1].wants_demotion)
    assert wanted == [False, True, False]
    assert steered.counters(1, "polls", "budget_exhausted", "demotions") == (3, 2, 1)


def test_own_frames_go_behind_those_that_wait_for_this_core() -> None:
    steered = Steered()
    steered.deliver(1, 0)
    steered.host.raise_interrupt(core=0)
    steered.steps(0)
    steered.deliver(1, 1, 2)
    steered.host.raise_interrupt(core=1)
    assert steered.steps(1) == 2 + 3 + 3, "two interrupts, its poll and that of its backlog"
    assert steered.seqnums(1) == [0, 1, 2]
    assert steered.counters(1, "rps_steered", "recv_packets", "interrupts") == (1, 3, 1)


@pytest.mark.parametrize("seed", range(12))
def test_an_endpoints_order_is_kept_and_no_frame_is_lost(seed: int) -> None:
    """Under any interleaving, the queue's interrupts going round over the cores."""
    draw = random.Random(seed)
    steered = Steered(endpoints=6, budget=draw.choice((1, 3, 64)),
                      defer_hard_irqs=draw.choice((0, 0, 2)), flush_timeout_ns=5)  # fmt: skip
    turn = 0
    arrived: list[list[int]] = [[] for _ in range(6)]
    for now_ns in range(1, 5_000):
        if now_ns < 400 and draw.random() < 0.4:
            steered.deliver(*draw.choices(range(6), k=draw.randint(1, 5)))
        if steered.host.token() == 1 and steered.host.node.ring_depths()["rx", 0]:
            steered.host.raise_interrupt(core=turn % CORES, now_ns=now_ns)
            turn += 1
        steered.steps(draw.randrange(CORES), now_ns=now_ns)
        for endpoint in range(6):
            arrived[endpoint] += steered.seqnums(endpoint)
    assert arrived == [list(range(count)) for count in steered.sent]
    handled = [steered.counters(core, "recv_packets")[0] for core in range(CORES)]
    of_core = [sum(steered.sent[e] for e in range(6) if e % CORES == c) for c in range(CORES)]
    assert handled == of_core


def test_costs_are_paid_where_frames_are_handled() -> None:
    steered = Steered(interrupt_time_ns=4_000, packet_cost_ns=700)
    steered.deliver(1, 1, 0, 1)
    steered.host.raise_interrupt()
    seen = []
    now_ns = 0
    while steered.host.token() == 0:
        steered.steps(0, now_ns=now_ns)
        seen.append((now_ns, *steered.counters(0, "recv_packets", "rps_steered")))
        now_ns = steered.agents[0].due_ns or 0
    assert seen == [(0, 0, 0), (4_000, 0, 2), (4_700, 1, 3)]
    assert steered.counters(0, "rps_interrupts", "polls") == (1, 1)
    handled, now_ns = [], 10_000
    while steered.steps(1, now_ns=now_ns):
        handled.append((now_ns, *steered.counters(1, "recv_packets")))
        now_ns = steered.agents[1].due_ns or now_ns
    assert handled == [(10_000, 0), (14_000, 0), (14_700, 1), (15_400, 2), (16_100, 3)]


def test_a_charged_poll_hands_on_up_to_its_budget() -> None:
    steered = Steered(packet_cost_ns=700, budget=4)
    steered.deliver(*[1] * 6)
    steered.host.raise_interrupt()
    steered.steps(0)
    assert (steered.backlog(1), steered.host.token()) == (4, 0)
    steered.steps(0)
    assert (steered.backlog(1), steered.host.token()) == (6, 1)
    assert steered.counters(0, "polls", "budget_exhausted", "recv_packets") == (2, 1, 0)


def test_a_core_that_empties_its_backlog_leaves_its_filling_to_who_polls_the_queue() -> None:
    steered = Steered(packet_cost_ns=700)
    steered.deliver(1)
    steered.host.raise_interrupt()
    steered.steps(0)
    steered.deliver(1, 0)
    steered.host.raise_interrupt()
    steered.steps(0)
    assert (steered.backlog(1), steered.host.token()) == (1, 0), "the second frame is not told yet"
    for now_ns in (0, 700):
        steered.steps(1, now_ns=now_ns)
    assert steered.seqnums(1) == [0]
    assert steered.counters(1, "polls") == (1,)
    assert (steered.backlog(1), steered.host.token()) == (0, 0)
    assert steered.steps(1, now_ns=700) == 0
    steered.steps(0, now_ns=700)
    assert (steered.backlog(1), steered.host.token()) == (1, 1)
    for now_ns in (700, 1_400):
        steered.steps(1, now_ns=now_ns)
    assert steered.seqnums(1) == [1]


def test_the_trace_tells_a_vector_from_the_backlog() -> None:
    steered = Steered()
    agents, entries = core_agent(CORES - 1) + 1, 64
    memory = Segment.anonymous(Trace.size_bytes(agents, entries), SEGMENT_TRACE)
    trace = Trace.create(memory, agents, entries)
    steered.agents[1].use_trace(trace, core_agent(1))
    steered.deliver(1)
    steered.host.raise_interrupt()
    steered.steps(0)
    steered.deliver(1)
    steered.host.raise_interrupt(core=1)
    steered.steps(1)
    told = [words(record) for record in trace.records()]
    assert [line for line in told if not line.startswith("event")] == [
        "interrupt taken on core 1, vector 0, backlog",
        "poll begins, vector 0, budget 64",
        "poll ends, vector 0: 1 packet",
        "poll begins, backlog, budget 64",
        "poll ends, backlog: 2 packets",
    ]


def test_a_wish_is_told_to_the_nic() -> None:
    steered = Steered()
    nic = steered.host.wait_slot(NIC)
    nic.arm()
    steered.deliver(1)
    steered.host.raise_interrupt()
    steered.host.set_wish(1)
    steered.steps(0)
    assert nic.wakes == 1


def test_it_does_not_go_with_copy_offload_or_polling_ranks() -> None:
    with pytest.raises(InputError, match="no copy_offload"):
        HostNode.make(steering="rps", dma_runner=3, dma_agent=3).irq()
    with pytest.raises(InputError, match="another coalescing strategy"):
        HostNode.make(steering="rps", busy_poll=WATCHDOG).irq()
