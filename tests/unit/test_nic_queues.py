"""A NIC with several rx queues: one DMA engine, and for each queue a policy and an interrupt."""

from __future__ import annotations

import random

import pytest
from support.agents import make_generator
from support.nic import PLAIN, Handler, Nodes, frame, make_firmware, run
from support.packets import ConnectPacket, encode, node_address

from shrimpmx.errors import InputError
from shrimpmx.link.rings import ring_links
from shrimpmx.nic.firmware import Firmware
from shrimpmx.nic.names import make_policies
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.strategies import OpenMx, Stream
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import COALESCING_NAMES
from shrimpmx.shared.node import put_frame, take_frames

DELAY_NS = 75_000


def several(queues: int = 4, **layout: object) -> Nodes:
    return Nodes(**{"cores": queues, "rx_queues": queues, **layout})  # type: ignore[arg-type]


def arrive(nodes: Nodes, time_ns: int, endpoint: int, number: int = 0, marked: bool = True) -> None:
    one = frame(number, marked=marked, endpoint=endpoint)
    assert put_frame(nodes[0], "link", 1, one, time_ns)


def numbers(frames: list[tuple[int, bytes]]) -> list[int]:
    return [int.from_bytes(data[40:48], "little") for _, data in frames]


# -- coalescing, a queue at a time ----------------------------------------------


def test_each_queue_has_a_policy_and_a_line_of_its_own() -> None:
    nic = make_firmware(several(), coalescing="stream")
    assert [queue.number for queue in nic.queues] == [0, 1, 2, 3]
    assert len({id(queue.policy) for queue in nic.queues}) == 4
    assert all(isinstance(queue.policy, Stream) for queue in nic.queues)


def test_queues_coalesce_independently() -> None:
    """A mark in one queue reports nothing of another, and each timer runs by itself."""
    nodes = several()
    nic = make_firmware(nodes, coalescing="open-mx")
    arrive(nodes, 1000, 0, marked=False)
    arrive(nodes, 3000, 2, marked=False)
    arrive(nodes, 4000, 1)
    nic.step_at(4050)
    assert nodes.take_interrupts() == [1]
    assert nic.due_ns == 1050 + DELAY_NS
    nic.step_at(1050 + DELAY_NS)
    assert nodes.take_interrupts() == [0]
    assert nic.due_ns == 3050 + DELAY_NS
    arrive(nodes, 77_000, 2)
    nic.step_at(77_050)
    assert nodes.take_interrupts() == [2], "a mark of its own queue"
    assert nodes.counters(0)["irq_raised_timeout"] == 1
    assert [queue.policy.due_ns for queue in nic.queues] == [None] * 4


def test_a_mark_is_deferred_by_packets_of_its_own_queue_only() -> None:
    """Two in queue 1 while one for queue 2 is on its way: its DMA is no matter."""
    nodes = several()
    nic = make_firmware(nodes, coalescing="stream")
    arrive(nodes, 1000, 1)
    arrive(nodes, 1010, 1)
    arrive(nodes, 1020, 2)
    nic.step_at(1050)
    assert nodes.take_interrupts() == []
    nic.step_at(1060)
    assert nodes.take_interrupts() == [1]
    nic.step_at(1070)
    assert nodes.take_interrupts() == [2]
    counters = nodes.counters(0)
    assert counters["irq_deferred"] == 1
    assert counters["irq_raised_deferred"] == 1
    assert counters["irq_raised_marked"] == 1


def test_deferrals_of_all_queues_are_counted() -> None:
    nodes = several()
    nic = make_firmware(nodes, coalescing="stream")
    for endpoint, gap_ns in ((1, 10), (2, 30), (3, 20)):
        arrive(nodes, 1000 * endpoint, endpoint)
        arrive(nodes, 1000 * endpoint + gap_ns, endpoint)
    run([nic], 0, 10_000, [])
    counters = nodes.counters(0)
    assert counters["irq_deferred"] == counters["irq_deferred_packets"] == 3
    assert counters["irq_deferred_longest_ns"] == 30


def test_each_queue_may_have_an_interrupt_outstanding_and_a_wish() -> None:
    nodes = several()
    nic = make_firmware(nodes, coalescing="disabled")
    handlers = [Handler(nodes, 0, queue) for queue in range(4)]
    for endpoint in range(4):
        arrive(nodes, 1000 + endpoint, endpoint)
    nic.step_at(1100)
    assert [handler.see_interrupt() for handler in handlers] == [True] * 4
    for endpoint in range(3):
        arrive(nodes, 2000 + endpoint, endpoint)
    nic.step_at(2100)
    assert [nodes.wish(0, queue) for queue in range(4)] == [1, 1, 1, 0]
    handlers[1].poll()  # takes both
    handlers[2].poll(1)
    for queue in (1, 2):
        handlers[queue].end()
    assert nic.step_at(2200) == 2
    assert [nodes.wish(0, queue) for queue in range(4)] == [1, 0, 0, 0]
    assert nodes.take_interrupts() == [2]
    counters = nodes.counters(0)
    assert (counters["irq_wished"], counters["irq_raised"], counters["irq_absorbed"]) == (7, 5, 1)


def test_the_first_of_many_deadlines_is_kept() -> None:
    """Against all policies' own, whatever happens to them."""
    chance = random.Random(1)
    nodes = several(8)
    nic = make_firmware(nodes, coalescing="open-mx", rx_usecs=3)
    handlers = [Handler(nodes, 0, queue) for queue in range(8)]
    now_ns = 1000
    for number in range(2000):
        if chance.random() < 0.5:
            arrive(nodes, now_ns, chance.randrange(8), number, chance.random() < 0.3)
        now_ns += chance.randrange(700)
        nic.step_at(now_ns)
        due = [queue.policy.due_ns for queue in nic.queues if queue.policy.due_ns is not None]
        pending = nodes.counters(0).get("rx_packets", 0) < nodes.control.agent_counters(0)["steps"]
        if due and pending:
            assert nic.due_ns is not None
            assert nic.due_ns <= min(due)
        if nic.due_ns is not None and nic.due_ns > now_ns + 50:
            assert nic.due_ns == min(due)
        chance.choice(handlers).serve()


# -- the DMA engine --------------------------------------------------------------


def test_packets_of_all_queues_pass_one_engine_in_order() -> None:
    """60 bytes take the engine 60 ns each, whichever ring they go to."""
    nodes = several()
    nic = make_firmware(nodes, coalescing="timeout", dma_bytes_per_second=10**9)
    for number, endpoint in enumerate((2, 0, 2, 3)):
        arrive(nodes, 1000, endpoint, number)
    run([nic], 0, 5000, [])
    times = {
        queue: [time_ns for time_ns, _ in take_frames(nodes[0], "rx", queue)] for queue in range(4)
    }
    assert times == {0: [1170], 1: [], 2: [1110, 1230], 3: [1290]}


def test_dmas_complete_in_order_of_submission() -> None:
    """Each frame is visible when the engine has done it, 60 bytes in 600 ns, and no sooner."""
    chance = random.Random(2)
    nodes = several(5)
    nic = make_firmware(nodes, coalescing="timeout", dma_bytes_per_second=10**8)
    for number in range(200):
        arrive(nodes, 1000, chance.randrange(250), number)
    nic.step_at(1000)
    for number in range(200):
        now_ns = 1000 + 600 * (number + 1) + 50
        nic.step_at(now_ns - 1)
        assert nodes.counters(0).get("rx_packets", 0) == number
        nic.step_at(now_ns)
        seen = [one for queue in range(5) for one in take_frames(nodes[0], "rx", queue)]
        assert [time_ns for time_ns, _ in seen] == [now_ns]
        assert numbers(seen) == [number]


def test_one_full_ring_drops_and_the_others_take() -> None:
    nodes = several(rx_ring_entries=16)
    nic = make_firmware(nodes, coalescing="timeout")
    for number in range(20):
        arrive(nodes, 1000, 3, number)
        arrive(nodes, 1000, number % 3, number)
    run([nic], 0, 5000, [])
    assert [len(take_frames(nodes[0], "rx", queue)) for queue in range(4)] == [7, 7, 6, 16]
    assert nodes.counters(0)["rx_drop_ring_full"] == 4


@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
def test_every_packet_is_handled_once_and_in_its_endpoints_order(coalescing: str) -> None:
    chance = random.Random(coalescing)
    nodes = several(8, rx_ring_entries=256)
    nic = make_firmware(nodes, coalescing=coalescing, rx_usecs=5, dma_bytes_per_second=10**9)
    handlers = [Handler(nodes, 0, queue) for queue in range(8)]
    sent: dict[int, list[int]] = {endpoint: [] for endpoint in range(16)}
    now_ns = 1000
    for number in range(800):
        endpoint = chance.randrange(16)
        arrive(nodes, now_ns, endpoint, number, chance.random() < 0.4)
        sent[endpoint].append(number)
        now_ns = run([nic], now_ns, now_ns + chance.randrange(400), handlers)
    run([nic], now_ns, now_ns + 10**6, handlers)
    for endpoint, expected in sent.items():
        frames = handlers[endpoint % 8].frames
        assert numbers([one for one in frames if one[1][17] == endpoint]) == expected
    assert nodes.counters(0)["rx_packets"] == 800
    counters = nodes.counters(0)
    assert counters["irq_wished"] == counters["irq_raised"] + counters.get("irq_absorbed", 0)


# -- interrupts to cores ----------------------------------------------------------


def test_each_queues_interrupts_go_to_its_core() -> None:
    nodes = several(irq_binding="2/0/3/1")
    nic = make_firmware(nodes, coalescing="disabled")
    for endpoint, core in enumerate((2, 0, 3, 1)):
        arrive(nodes, 1000 * (endpoint + 1), endpoint)
        nic.step_at(1000 * (endpoint + 1) + 50)
        assert nodes.take_interrupts(0, endpoint) == [core]
    counts = nodes[0].interrupt_counts()
    assert counts == [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]]


def test_a_list_has_turns_and_a_change_takes_effect_at_the_next_interrupt() -> None:
    nodes = several(2, cores=8, irq_binding="1,4-5/7")
    nic = make_firmware(nodes, coalescing="disabled")
    cores: list[int] = []
    for number in range(9):
        if number == 4:
            nodes[0].set_affinity(0, "2,6")
        if number == 7:
            nodes[0].set_affinity(0, "0")
        for endpoint in range(2):
            arrive(nodes, 1000 * number + endpoint, endpoint)
        nic.step_at(1000 * number + 100)
        cores += nodes.take_interrupts(0, 0)
        assert nodes.take_interrupts(0, 1) == [7], "the other vector's is as it was"
        for vector in range(2):
            nodes.token(0, vector).value = 1
    assert cores == [1, 4, 5, 1, 2, 6, 2, 0, 0]


def test_a_remembered_wish_goes_by_the_affinity_of_its_delivery() -> None:
    nodes = several(2, cores=4, irq_binding="0/1")
    nic = make_firmware(nodes, coalescing="disabled")
    handler = Handler(nodes, 0, 1)
    arrive(nodes, 1000, 1)
    nic.step_at(1050)
    handler.see_interrupt()
    arrive(nodes, 2000, 1)
    nic.step_at(2050)
    nodes[0].set_affinity(1, "3")
    handler.end()
    nic.step_at(2100)
    assert nodes.take_interrupts(0, 1) == [3]


# -- policies ---------------------------------------------------------------------


class Counting(Policy):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
        self.seen.append(dma_pending)
        return True


class Failing(Policy):
    def on_arrival(self, now_ns: int, marked: bool, length_bytes: int) -> None:
        raise ValueError("my policy")


def test_a_users_policy_is_made_for_each_queue() -> None:
    made: list[Counting] = []

    def make() -> Counting:
        made.append(Counting())
        return made[-1]

    nodes = several(3)
    nic = Firmware(nodes[0], *ring_links(nodes.nodes, 0, PLAIN), PLAIN, make)
    for number, endpoint in enumerate((0, 2, 2)):
        arrive(nodes, 1000 + number, endpoint)
    nic.step_at(2000)
    assert [policy.seen for policy in made] == [[0], [], [1, 0]]


def test_the_failure_of_any_queues_policy_is_reported() -> None:
    nodes = several()
    nic = Firmware(nodes[0], *ring_links(nodes.nodes, 0, PLAIN), PLAIN, Failing)
    arrive(nodes, 1000, 2)
    with pytest.raises(ValueError, match="my policy"):
        nic.step_at(2000)
    assert nic.failure is nic.queues[2].policy.failure


def test_one_policy_serves_one_queue() -> None:
    shared = Counting()
    for choice in (shared, OpenMx(1000), lambda: shared):
        with pytest.raises(
            InputError, match="serves one rx queue, but there are 2: give a function"
        ):
            make_policies(choice, 2)
        assert len(make_policies(choice, 1)) == 1
    with pytest.raises(InputError, match="a coalescing policy is a name"):
        make_policies(lambda: "fast", 1)  # type: ignore[arg-type, return-value]
    assert len(make_policies(NicParameters(), 5)) == 5


# -- the generator ------------------------------------------------------------------


@pytest.mark.parametrize("other_rate", [0, 2_000_000])
def test_no_invalid_packet_is_lost_before_slow_handlers_of_several_queues(other_rate: int) -> None:
    nodes = several(rx_ring_entries=64)
    generator = make_generator(
        nodes[1],
        *ring_links(nodes.nodes, 1, PLAIN),
        frames="invalid",
        count=1000,
        other_rate=other_rate,
    )
    nic = make_firmware(nodes, coalescing="timeout", rx_usecs=20)
    handlers = [Handler(nodes, 0, queue) for queue in range(4)]
    request = ConnectPacket(
        source=node_address(0), destination=node_address(1), peer_index=0, src_endpoint=3
    )
    put_frame(nodes[1], "link", 0, encode(request), 1000)
    run([generator, nic], 1000, 2_000_000, handlers)
    invalid = [data for _, data in handlers[0].frames if data[12:14] == b"\x86\xdf"]
    assert len(invalid) == 1000
    assert [len(handler.frames) > 0 for handler in handlers[1:]].count(True) == 1 + bool(other_rate)
    assert "rx_drop_ring_full" not in nodes.counters(0)
