"""aRFS on the NIC's side: frames follow a wish once none is left in the old queue."""

from __future__ import annotations

import random

import pytest
from support.nic import Handler, Nodes, frame, make_firmware

from shrimpmx.nic.firmware import Firmware
from shrimpmx.shared.node import put_frame, take_frames

QUEUES = 4


def make(steering: str = "arfs", rx_ring_entries: int = 1024) -> tuple[Nodes, Firmware]:
    nodes = Nodes(
        cores=QUEUES, rx_queues=QUEUES, steering=steering, rx_ring_entries=rx_ring_entries
    )
    return nodes, make_firmware(nodes, coalescing="disabled")


def arrive(nodes: Nodes, time_ns: int, number: int = 0, endpoint: int = 1) -> None:
    assert put_frame(nodes[0], "link", 1, frame(number, endpoint=endpoint), time_ns)


def depths(nodes: Nodes) -> list[int]:
    return [nodes[0].ring_depths()["rx", queue] for queue in range(QUEUES)]


def test_without_a_wish_an_endpoint_stays_where_it_began() -> None:
    nodes, nic = make()
    for number in range(8):
        arrive(nodes, 1000 + number, number, number)
    nic.step_at(2000)
    assert depths(nodes) == [2, 2, 2, 2]
    assert "flow_moves" not in nodes.counters(0)
    assert "rx_queue_changes" not in nodes.counters(0)


def test_a_first_frame_goes_where_it_is_wanted() -> None:
    nodes, nic = make()
    nodes.wanted(1).value = 1 + 3
    arrive(nodes, 1000)
    nic.step_at(2000)
    assert depths(nodes) == [0, 0, 0, 1]
    assert nodes.wanted(1).value == 0
    assert nodes.flow(1) == 3
    assert nodes.counters(0)["flow_moves"] == 1
    assert "rx_queue_changes" not in nodes.counters(0), "the first frame changed no queue"


def test_a_flow_moves_when_its_old_queue_has_no_frame_for_it() -> None:
    nodes, nic = make()
    arrive(nodes, 1000, 0)
    arrive(nodes, 1001, 1, endpoint=5)  # also in queue 1
    nic.step_at(1040)  # on its way to host memory
    nodes.wanted(1).value = 1 + 2
    arrive(nodes, 1045, 2)
    nic.step_at(2000)
    assert depths(nodes) == [0, 3, 0, 0], "its DMA was pending"
    arrive(nodes, 3000, 3)
    nic.step_at(3050)
    assert depths(nodes) == [0, 4, 0, 0], "not handled yet"
    assert nodes.wanted(1).value == 1 + 2, "the wish stays"
    arrive(nodes, 4000, 4, endpoint=5)
    nic.step_at(4050)
    assert len(take_frames(nodes[0], "rx", 1, 4)) == 4
    arrive(nodes, 5000, 5)
    nic.step_at(5050)
    assert depths(nodes) == [0, 1, 1, 0], "one for endpoint 5 is left, which is no matter"
    assert nodes.wanted(1).value == 0
    assert nodes.counters(0)["flow_moves"] == 1
    assert nodes.counters(0)["rx_queue_changes"] == 1


def test_a_wish_for_the_queue_that_it_has_is_no_move() -> None:
    nodes, nic = make()
    nodes.wanted(1).value = 1 + 1
    arrive(nodes, 1000)
    nic.step_at(2000)
    assert nodes.wanted(1).value == 0
    assert "flow_moves" not in nodes.counters(0)


@pytest.mark.parametrize("wanted", [QUEUES + 1, 0xFFFFFFFF])
def test_a_wish_for_a_queue_that_there_is_not_is_dropped(wanted: int) -> None:
    nodes, nic = make()
    nodes.wanted(1).value = wanted
    arrive(nodes, 1000)
    nic.step_at(2000)
    assert depths(nodes) == [0, 1, 0, 0]
    assert nodes.wanted(1).value == 0
    assert "flow_moves" not in nodes.counters(0)


def test_other_steering_takes_no_wishes() -> None:
    nodes, nic = make("endpoint")
    nodes.wanted(1).value = 1 + 2
    arrive(nodes, 1000)
    nic.step_at(2000)
    assert depths(nodes) == [0, 1, 0, 0]
    assert nodes.wanted(1).value == 1 + 2


def test_a_dropped_frame_is_not_waited_for() -> None:
    nodes, nic = make(rx_ring_entries=16)
    for number in range(20):
        arrive(nodes, 1000, number)
    nic.step_at(2000)
    assert nodes.counters(0)["rx_drop_ring_full"] == 4
    take_frames(nodes[0], "rx", 1)
    nodes.wanted(1).value = 1 + 0
    arrive(nodes, 3000)
    nic.step_at(4000)
    assert depths(nodes) == [1, 0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_no_frame_of_an_endpoint_overtakes_another(seed: int) -> None:
    """Processes move all the time and handlers are slow; an endpoint's frames are in one queue."""
    chance = random.Random(seed)
    nodes, nic = make()
    handlers = [Handler(nodes, 0, queue) for queue in range(QUEUES)]
    arrived: dict[int, list[int]] = {endpoint: [] for endpoint in range(6)}
    handled: dict[int, list[int]] = {endpoint: [] for endpoint in range(6)}
    now_ns = 1000
    for number in range(3000):
        endpoint = chance.randrange(6)
        if chance.random() < 0.6:
            arrive(nodes, now_ns, number, endpoint)
            arrived[endpoint].append(number)
        if chance.random() < 0.2:
            nodes.wanted(chance.randrange(6)).value = 1 + chance.randrange(QUEUES)
        now_ns += chance.randrange(120)
        nic.step_at(now_ns)
        handler = chance.choice(handlers)
        if handler.see_interrupt():
            handler.poll(chance.choice((1, 64)))
            handler.end()
            for _, data in handler.frames:
                handled[data[17]].append(int.from_bytes(data[40:48], "little"))
            handler.frames.clear()
    for endpoint, numbers in handled.items():
        assert numbers == arrived[endpoint][: len(numbers)]
    assert nodes.counters(0)["flow_moves"] > 100
    assert nodes.counters(0)["flow_moves"] >= nodes.counters(0)["rx_queue_changes"] > 50
