"""Any frame is a legal one or one counted drop, and none makes a handler leave its memory."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.guarded import GuardedSegment, run_in_child
from support.host_node import CORE0, RANK, SESSION
from support.hostile import SUMS, hostile_frame
from support.memory import make_control
from support.packet_base import FrameError
from support.packets import decode

from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.host.raw import RawEndpoint
from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node, take_frames
from shrimpmx.wire.check import check

FRAMES = 10_000  # for each of the two formats
FORMATS = [(1500, "native"), (9000, "native"), (9000, "compatible")]


class GuardedNode:
    """Node 0 of three between guard pages: endpoint 0 and the raw endpoint are open."""

    def __init__(self, mtu: int = 1500, wire_format: str = "native") -> None:
        agents = [("nic", "nic", 0), ("irq0", "irq", 1), ("irq1", "irq", 1), ("rank0", "rank", 3)]
        self.control = make_control(["nic", "irq0", "irq1", "rank0"], agents, 3)
        layout = NodeLayout(
            nodes_count=3, endpoints=2, mtu=mtu, wire_format=wire_format, rx_ring_entries=16,
            tx_ring_entries=64, link_ring_entries=16, event_ring_entries=64,
            core_runners=[1], core_agents=[CORE0],
        )  # fmt: skip
        self.segment: Any = GuardedSegment(Node.size_bytes(layout))
        self.node = Node.create(self.segment, self.control, layout)
        self.endpoint = DriverEndpoint(self.node, 0, RANK, RANK)
        self.endpoint.open(SESSION)
        self.raw = RawEndpoint(self.node, 0, RANK)
        self.raw.open()
        self.handler = ReceiveHandler(self.node, 0, CORE0)

    def accounted(self) -> int:
        """Frames that were a legal one or a counted drop; each counts once."""
        counts = self.control.agent_counters(CORE0)
        for name in SUMS:
            del counts[name]
        full = counts["unexp_eventq_full"] + counts["exp_eventq_full"]
        named = sum(n for name, n in counts.items() if name.startswith(("recv_", "drop_")))
        return named + full - counts["recv_packets"]

    def empty(self) -> None:
        """What the rank, the NIC and the daemon do: take what came."""
        while self.endpoint.take_event() is not None:
            pass
        while self.raw.receive() is not None:
            pass
        take_frames(self.node, "core_tx")


def feed(target: GuardedNode, frames: list[bytes], note: Callable[[bytes], None]) -> None:
    """One batch; each frame must be accounted for at once."""
    before = target.accounted()
    for number, frame in enumerate(frames, 1):
        note(frame)
        target.handler.handle_frame(frame, number == len(frames))
        counts = target.control.agent_counters(CORE0)
        assert target.accounted() - before == number, {k: n for k, n in counts.items() if n}
    target.empty()


@pytest.mark.parametrize(("mtu", "wire_format"), FORMATS[::2])
def test_20_000_hostile_frames_in_guarded_memory(mtu: int, wire_format: str) -> None:
    def work(note: Callable[[bytes], None]) -> None:
        draw = random.Random(mtu)
        for _ in range(FRAMES // 2000):
            target = GuardedNode(mtu, wire_format)
            for _ in range(50):
                compatible = wire_format == "compatible"
                feed(target, [hostile_frame(draw, mtu, compatible) for _ in range(40)], note)

    assert run_in_child(work) == ""


@pytest.mark.parametrize(("mtu", "wire_format"), FORMATS)
def test_the_two_checks_agree_on_hostile_frames(mtu: int, wire_format: str) -> None:
    draw = random.Random(7)
    seen = set()
    for _ in range(3000):
        frame = hostile_frame(draw, mtu, wire_format == "compatible")
        try:
            decode(frame, mtu, wire_format)
            fault = ""
        except FrameError as error:
            fault = error.fault
        assert check(frame, mtu, wire_format) == fault, frame.hex()
        seen.add(fault)
    assert len(seen) == 8, "every fault and the good frame"


@given(
    seeds=st.lists(st.integers(0, 2**32), min_size=1, max_size=20),
    damage=st.lists(st.tuples(st.integers(0, 1499), st.integers(0, 255)), max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_any_sequence_of_frames_is_accounted_for(
    seeds: list[int], damage: list[tuple[int, int]]
) -> None:
    frames = [bytearray(hostile_frame(random.Random(seed))) for seed in seeds]
    for place, value in damage:
        frame = frames[place % len(frames)]
        if frame:
            frame[place % len(frame)] = value
    target = GuardedNode()
    feed(target, [bytes(frame) for frame in frames], lambda frame: None)
    target.segment.close()


def test_a_crash_in_a_child_names_its_frame() -> None:
    def work(note: Callable[[bytes], None]) -> None:
        note(b"the last frame")
        segment = GuardedSegment(4096)
        memory = (ctypes.c_char * 1).from_address(segment.address + 4096)
        memory[0] = b"x"

    assert run_in_child(work) == f"SIGSEGV at frame {b'the last frame'.hex()}"
