"""Several rx queues on one node: tokens, timers, copies, and ranks that poll."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.host_node import CORE0, CORE1, RANK, SESSION, HostNode, core_agent, frame
from support.memory import assert_counts
from support.pull_pair import PULLER, PullPair

from shrimpmx.errors import InputError
from shrimpmx.host.copy_offload import CopyAgent
from shrimpmx.host.endpoint import close_dead
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.shared.node import put_frame

TAKEN, FREE, SUSPENDED, RESUMED, DEFERRED, OF_RANK = 0, 1, 2, 3, 256, 65536 + RANK
WATCHDOG, SUSPEND = 1, 2
FLUSH_NS, SUSPEND_NS, DEFERS = 20_000, 100_000, 3
TINY = frame("tiny")


def host_with(vectors: int = 2, **layout: Any) -> HostNode:
    settings = {"event_ring_entries": 4096, "rx_ring_entries": 1024, "tx_ring_entries": 1024}
    return HostNode.make(rx_queues=vectors, **{**settings, **layout})


def deliver(host: HostNode, vector: int, frames: int = 1) -> None:
    for _ in range(frames):
        assert put_frame(host.node, "rx", vector, TINY)


def deferring(host: HostNode, core: int) -> InterruptAgent:
    return host.irq(core, defer_hard_irqs=DEFERS, flush_timeout_ns=FLUSH_NS)


def left(host: HostNode) -> int:
    """Frames in the rx rings."""
    return sum(depth for (name, _), depth in host.node.ring_depths().items() if name == "rx")


def test_queues_with_their_processes_on_their_cores_hand_nothing_over() -> None:
    host = HostNode.make(cores=4, rx_queues=4, endpoints=4, irq_binding="per-queue", opened=False)
    agents = [host.irq(core) for core in range(4)]
    for number, endpoint in enumerate(host.endpoints):
        endpoint.open(SESSION)
        endpoint.process_core = number
    for _ in range(50):
        for number in range(4):
            data = frame("tiny", dst_endpoint=number)
            assert put_frame(host.node, "rx", number, data)
            (core,) = host.node.affinity(number)
            host.raise_interrupt(number, core)
            agents[core].step_at(0)
            assert len(host.events(number)) == 1
    for core in range(4):
        assert_counts(
            host.counters(core_agent(core)),
            {
                "interrupts": 50,
                "polls": 50,
                "recv_packets": 50,
                "recv_tiny": 50,
                "recv_at_process": 50,
            },
        )


def test_each_vector_has_its_own_timer() -> None:
    host = host_with()
    irq = deferring(host, 0)
    for vector, now_ns in ((0, 0), (1, 5_000)):
        deliver(host, vector)
        host.raise_interrupt(vector, now_ns=now_ns)
        irq.step_at(now_ns)
    assert (host.token(0), host.token(1)) == (DEFERRED, DEFERRED)
    due = []
    while host.token(1) != FREE:
        assert irq.due_ns is not None
        due.append(irq.due_ns)
        irq.step_at(irq.due_ns)
    assert due == [20_000, 25_000, 40_000, 45_000, 60_000, 65_000]
    assert host.token(0) == FREE
    assert host.counters()["poll_timers"] == 6


def test_frames_of_one_vector_do_not_put_off_the_timer_of_another() -> None:
    host = host_with()
    irq = deferring(host, 0)
    deliver(host, 1)
    host.raise_interrupt(1)
    irq.step_at(0)
    deliver(host, 1)
    for now_ns in range(1_000, FLUSH_NS, 1_000):
        deliver(host, 0)
        if host.token(0) == FREE:
            host.raise_interrupt(0, now_ns=now_ns)
        irq.step_at(now_ns)
    assert host.node.ring_depths()["rx", 1] == 1
    irq.step_at(FLUSH_NS)
    assert host.node.ring_depths()["rx", 1] == 0


def test_a_rank_polls_the_queue_of_its_endpoint_and_no_other() -> None:
    host = host_with(busy_poll=WATCHDOG)
    busy = BusyPoll(host.node, 0, vector=1)
    deliver(host, 0, 2)
    assert not busy.is_ready()
    assert busy.look_at(0) == 0
    deliver(host, 1, 3)
    host.set_token(TAKEN, 0)
    assert busy.is_ready()
    assert busy.look_at(0) == 3
    assert (host.token(0), host.token(1)) == (TAKEN, FREE)
    assert host.node.ring_depths()["rx", 0] == 2
    assert host.counters(CORE0)["busy_polls"] == 1


def test_a_rank_needs_a_vector_that_exists() -> None:
    with pytest.raises(InputError, match="no vector 2; its vectors are 0 to 1"):
        BusyPoll(host_with(busy_poll=WATCHDOG).node, 0, vector=2)


def test_suspensions_are_watched_by_the_timer_core_of_their_vector() -> None:
    host = host_with(busy_poll=SUSPEND, irq_binding="per-queue")
    agents = [deferring(host, core) for core in (0, 1)]
    slots = [host.wait_slot(runner) for runner in (CORE0, CORE1)]
    busy = BusyPoll(host.node, 0, SUSPEND_NS, vector=1)
    for agent, slot in zip(agents, slots, strict=True):
        agent.step_at(0)
        slot.arm()
    deliver(host, 1)
    assert busy.look_at(0) == 1
    assert (host.token(0), host.token(1)) == (FREE, SUSPENDED)
    assert [slot.wakes for slot in slots] == [0, 1]
    for agent in agents:
        agent.step_at(1)
    assert agents[1].due_ns == SUSPEND_NS
    deliver(host, 1, 2)
    assert agents[0].step_at(SUSPEND_NS) == 0
    assert agents[1].step_at(SUSPEND_NS) == 1 + 2


@pytest.mark.parametrize("held", [0, 1, 2])
def test_whichever_queue_a_dead_rank_polled_goes_on(held: int) -> None:
    host = host_with(3, busy_poll=SUSPEND, irq_binding="0/1/1")
    agents = [deferring(host, core) for core in (0, 1)]
    for vector in range(3):
        deliver(host, vector, 2)
        host.set_token(FREE, vector)
    host.set_token(OF_RANK, held)
    close_dead(host.node, 0)
    tokens = [FREE, FREE, FREE]
    tokens[held] = RESUMED
    assert [host.token(vector) for vector in range(3)] == tokens
    for agent in agents:
        agent.step_at(0)
    assert host.node.ring_depths()["rx", held] == 0
    assert left(host) == 4


def test_one_dma_agent_copies_from_all_queues() -> None:
    pair = PullPair(
        rx_queues=2, dma_runner=RANK, dma_agent=RANK, copy_message_bytes=1, rx_ring_entries=128
    )
    host = pair.hosts[PULLER]
    copier = CopyAgent(host.node, RANK)
    agents = [host.irq(core) for core in (0, 1)]
    pair.start(1 << 20)
    turn = 0
    while replies := pair.answer():
        for reply in replies:
            turn += 1
            while not put_frame(host.node, "rx", turn % 2, reply):
                assert copier.step_at(0)
            if turn % 5 == 0:
                host.raise_interrupt(0, core=0)
                host.raise_interrupt(1, core=turn // 5 % 2)
                for agent in agents:
                    agent.step_at(0)
        for vector in (0, 1):
            host.raise_interrupt(vector)
        agents[0].step_at(0)
        while copier.step_at(0):
            pass
    assert pair.ends()[0][1:] == (1 << 20, 0)
    assert bytes(pair.result) == pair.data
    copied = sum(host.counters(agent)["dmarecv_pull_reply"] for agent in (CORE0, CORE1))
    assert copied == (1 << 20) // 1468, "all but the last frame, which is short"
    assert left(host) == 0
    assert [host.ring_tail(vector) for vector in (0, 1)] == [turn // 2, turn - turn // 2]


class Nic:
    """Plays the NIC of a node: raises what is wished where the affinity says, and moves it."""

    def __init__(self, host: HostNode, draw: random.Random) -> None:
        self.host, self.draw, self.turn, self.sent = host, draw, 0, 0

    def act(self, now_ns: int) -> None:
        host, draw = self.host, self.draw
        for vector in range(host.node.vectors_count):
            if draw.random() < 0.3:
                deliver(host, vector, frames := draw.randint(1, 3))
                self.sent += frames
            if draw.random() < 0.2:
                host.node.set_affinity(vector, draw.choice(("0", "1", "0-1")))
            self.raise_wished(vector, now_ns)

    def raise_wished(self, vector: int, now_ns: int) -> None:
        if self.host.token(vector) != FREE or not self.host.node.ring_depths()["rx", vector]:
            return
        self.turn += 1
        cores = self.host.node.affinity(vector)
        self.host.raise_interrupt(vector, cores[self.turn % len(cores)], now_ns)


def interrupted(host: HostNode) -> bool:
    """An agent was woken: by the NIC, or by a rank that stopped looking."""
    return any(host.token(vector) in (TAKEN, RESUMED) for vector in (0, 1))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ranks_poll", [False, True])
def test_an_affinity_that_changes_loses_no_packet(seed: int, ranks_poll: bool) -> None:
    """With timers of either owner: the agent that deferred, or that of the vector's timer core."""
    draw = random.Random(seed)
    host = host_with(busy_poll=SUSPEND if ranks_poll else 0, irq_binding="per-queue")
    nic = Nic(host, draw)
    agents = [deferring(host, core) for core in (0, 1)]
    busy = [BusyPoll(host.node, 0, SUSPEND_NS, vector=vector) for vector in (0, 1)]
    handled = 0
    for now_ns in range(0, 2_000_000, 5_000):
        nic.act(now_ns)
        for rank in busy if ranks_poll else ():
            if draw.random() < 0.3:
                rank.look_at(now_ns)
        agents[draw.randrange(2)].step_at(now_ns)
        handled += len(host.events())
    # No rank looks any more, and no frame comes: what is left is the timers' and the NIC's.
    for now_ns in range(2_000_000, 2_000_000 + 5 * SUSPEND_NS, 5_000):
        for vector in (0, 1):
            nic.raise_wished(vector, now_ns)
        for agent in agents:
            if interrupted(host) or (agent.due_ns is not None and agent.due_ns <= now_ns):
                agent.step_at(now_ns)
        handled += len(host.events())
    assert handled == nic.sent
    assert left(host) == 0
    assert {host.token(0), host.token(1)} == {FREE}
