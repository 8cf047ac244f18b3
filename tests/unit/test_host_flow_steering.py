"""aRFS, the host's side: handlers ask that frames come where their process is."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from support.host_node import SESSION, HostNode, core_agent, frame

from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.shared.node import put_frame

CORES = 4
FLOW_BYTES = 8
WATCHDOG = 1


class Flows:
    """A node of four cores; the test plays the NIC."""

    def __init__(self, irq_binding: str = "per-queue", vectors: int = CORES, **more: Any) -> None:
        settings = {"steering": "arfs", "tx_ring_entries": 1024, **more}
        self.host = HostNode.make(
            cores=CORES, rx_queues=vectors, irq_binding=irq_binding, **settings
        )
        self.host.endpoints[1].open(SESSION)
        self.agents = [self.host.irq(core) for core in range(CORES)]

    def receive(self, vector: int, core: int, endpoint: int = 0, frames: int = 1) -> None:
        """Frames that come by `vector`, whose interrupt goes to `core`."""
        for _ in range(frames):
            assert put_frame(self.host.node, "rx", vector, frame("tiny", dst_endpoint=endpoint))
        self.host.raise_interrupt(vector, core)
        self.agents[core].step_at(0)

    def flow(self, endpoint: int = 0) -> tuple[int, int]:
        """(wanted, queue)"""
        place = self.host.layout.flows_offset + FLOW_BYTES * endpoint
        wanted, queue = struct.unpack_from("<II", self.host.node.segment.view(), place)
        return wanted, queue

    def follow(self, endpoint: int = 0) -> None:
        """The NIC sends the frames of `endpoint` to the queue that is wanted."""
        place = self.host.layout.flows_offset + FLOW_BYTES * endpoint
        wanted, _ = self.flow(endpoint)
        struct.pack_into("<I", self.host.node.segment.view(), place + 4, wanted - 1)

    def requests(self) -> int:
        cores = [self.host.counters(core_agent(core)) for core in range(CORES)]
        return sum(counters.get("flow_requests", 0) for counters in cores)


def test_a_handler_asks_once_for_the_queue_of_the_processs_core() -> None:
    flows = Flows()
    flows.host.endpoint.process_core = 2
    for _ in range(5):
        flows.receive(0, 0, frames=3)
    assert flows.flow() == (3, 0)
    assert flows.requests() == 1
    flows.follow()
    flows.receive(2, 2)
    assert flows.requests() == 1
    assert flows.flow(1) == (0, 1), "the other endpoint's frames stay"


def test_it_follows_a_process_that_moves_there_and_back() -> None:
    flows = Flows()
    queue = 0
    for number, core in enumerate((3, 1, 0, 2, 0), 1):
        flows.host.endpoint.process_core = core
        flows.receive(queue, queue)
        assert flows.flow() == (core + 1, queue)
        assert flows.requests() == number
        flows.follow()
        queue = core


@pytest.mark.parametrize("core", [0, 1])
def test_a_wish_ends_when_the_process_comes_back_before_it_is_granted(core: int) -> None:
    """Whether its own core handles the next frame, or another one of the same queue."""
    flows = Flows("0-1/1/2/3")
    flows.host.endpoint.process_core = 2
    flows.receive(0, core)
    assert flows.flow() == (3, 0)
    flows.host.endpoint.process_core = 0
    flows.receive(0, core)
    assert flows.flow() == (0, 0)
    assert flows.requests() == 1
    flows.host.endpoint.process_core = 2
    flows.receive(0, core)
    assert (flows.flow(), flows.requests()) == ((3, 0), 2), "it goes away again"


def test_frames_that_were_on_their_way_ask_for_nothing() -> None:
    flows = Flows()
    flows.host.endpoint.process_core = 2
    flows.receive(0, 0)
    flows.follow()
    flows.receive(0, 0)
    assert flows.requests() == 1


def test_nothing_is_asked_for_when_the_queue_serves_the_core() -> None:
    flows = Flows("0-3/1/2/3")
    flows.host.endpoint.process_core = 3
    for core in range(CORES):
        flows.receive(0, core)
    assert flows.requests() == 0


def test_the_lowest_queue_that_serves_the_core_is_taken() -> None:
    flows = Flows("0/0-1/1-2/2-3")
    flows.host.endpoint.process_core = 2
    flows.receive(0, 0)
    assert flows.flow() == (3, 0)


def test_an_affinity_that_changes_is_followed() -> None:
    flows = Flows()
    flows.host.endpoint.process_core = 0
    flows.receive(0, 0)
    assert flows.requests() == 0
    flows.host.node.set_affinity(0, "1")
    flows.host.node.set_affinity(3, "0")
    flows.receive(0, 1)
    assert flows.flow() == (4, 0)


@pytest.mark.parametrize("irq_binding", ["0/1", "1/1"])
def test_a_core_without_a_queue_is_left_alone(irq_binding: str) -> None:
    flows = Flows(irq_binding, vectors=2)
    flows.host.endpoint.process_core = 3
    flows.receive(0, 0)
    flows.receive(1, 1)
    assert (flows.requests(), flows.flow()) == (0, (0, 0))


def test_without_the_processs_core_nothing_is_asked_for() -> None:
    flows = Flows()
    flows.receive(0, 1)
    assert flows.requests() == 0


@pytest.mark.parametrize("steering", ["endpoint", "rss"])
def test_only_arfs_asks(steering: str) -> None:
    flows = Flows(steering=steering)
    flows.host.endpoint.process_core = 2
    flows.receive(0, 0)
    assert (flows.requests(), flows.flow()) == (0, (0, 0))


def test_a_rank_that_polls_for_another_one_asks_too() -> None:
    """It looks at the queue that it was told; the request counts for its core's irq agent."""
    flows = Flows(busy_poll=WATCHDOG)
    flows.host.endpoints[1].process_core = 2
    busy = BusyPoll(flows.host.node, 1, vector=1)
    assert put_frame(flows.host.node, "rx", 1, frame("tiny", dst_endpoint=1))
    assert put_frame(flows.host.node, "rx", 0, frame("tiny", dst_endpoint=1))
    assert busy.look_at(0) == 1
    assert flows.flow(1) == (3, 1)
    assert flows.host.counters(core_agent(1))["flow_requests"] == 1
