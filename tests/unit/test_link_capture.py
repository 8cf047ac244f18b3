"""A capture: the frames that pass the ends of a link, and what becomes of them."""

from __future__ import annotations

import pytest
from support.capture import new_capture
from support.nic import PLAIN, Nodes, frame, small_frame

from shrimpmx.errors import InputError, SegmentError
from shrimpmx.link.line import EmulatedLine
from shrimpmx.link.rings import ring_links
from shrimpmx.native.trace import Capture, CapturedFrame
from shrimpmx.nic.firmware import Firmware
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.shared.node import put_frame

TEN_GIGABIT = 10_000_000_000
SENDER, RECEIVER = 1, 0
FOREVER_NS = 10_000_000


class Wire:
    """A NIC that takes what a test sends to it on a captured link."""

    def __init__(
        self, capture: Capture | None, faults: LinkFaults | None = None, **layout: int
    ) -> None:
        self.nodes = Nodes(**layout)
        parameters = PLAIN.model_copy(
            update={"link_bits_per_second": TEN_GIGABIT, "link_delay_ns": 500}
        )
        self.line: EmulatedLine = ring_links(self.nodes.nodes, SENDER, parameters, faults)[0]
        ends = ring_links(self.nodes.nodes, RECEIVER, parameters)
        self.nic = Firmware(self.nodes[RECEIVER], *ends, parameters)
        if capture is not None:
            self.line.use_capture(capture)
            self.nic.use_capture(capture, RECEIVER)

    def send(self, *frames: bytes, now_ns: int = 1000) -> None:
        for each in frames:
            assert self.line.send(now_ns, RECEIVER, each)
        self.line.flush_at(now_ns)
        self.line.flush_at(FOREVER_NS)
        self.nic.step_at(2 * FOREVER_NS)


def sent_and_received(capture: Capture) -> tuple[list[CapturedFrame], list[CapturedFrame]]:
    return capture.frames_of(SENDER), capture.frames_of(RECEIVER)


def test_both_ends_keep_a_frame_with_the_times_of_its_first_and_last_bit() -> None:
    capture = new_capture()
    Wire(capture).send(small_frame(128), frame(2))
    sent, received = sent_and_received(capture)
    # 168 + 24 bytes take 153.6 ns at 10 Gb/s; then comes the second frame, and 500 ns of delay.
    assert [each.time_ns for each in sent] == [1000, 1153]
    assert [each.time_ns for each in received] == [1653, 1720]
    for each, data in zip(sent, (small_frame(128), frame(2)), strict=True):
        assert (each.data, each.length, each.received) == (data, len(data), False)
    assert [each.data for each in received] == [each.data for each in sent]
    assert all(each.received and each.dropped is None for each in received)
    assert capture.frames() == sorted([*sent, *received], key=lambda each: each.time_ns)


def test_a_full_ring_keeps_the_last_frames_and_counts_all() -> None:
    capture = new_capture(end_bytes=8 * 1536)
    Wire(capture).send(*(frame(number) for number in range(12)))
    assert capture.written(SENDER) == 12
    kept = [each.data for each in capture.frames_of(SENDER)]
    assert kept == [frame(number) for number in range(5, 12)]


def test_a_snap_length_cuts_frames_and_makes_room_for_more() -> None:
    capture = new_capture(end_bytes=8 * 1536, snap_bytes=20)
    Wire(capture).send(*(small_frame(100) for _ in range(12)))
    sent = capture.frames_of(SENDER)
    assert len(sent) == 12
    assert {each.data for each in sent} == {small_frame(100)[:20]}
    assert {each.length for each in sent} == {len(small_frame(100))}


@pytest.mark.parametrize(
    ("faults", "name"),
    [
        (LinkFaults(loss=0.3), "link_lost"),
        (LinkFaults(duplicate=0.3), "link_duplicated"),
        (LinkFaults(reorder=0.3, reorder_degree=2), "link_reordered"),
        (LinkFaults(corrupt=0.3), "link_corrupted"),
    ],
)
def test_each_fault_is_noted_as_often_as_it_is_counted(faults: LinkFaults, name: str) -> None:
    capture = new_capture()
    wire = Wire(capture, faults)
    wire.send(*(small_frame(8) for _ in range(40)))
    sent, received = sent_and_received(capture)
    count = wire.nodes.counters(SENDER)[name]
    assert [each.faults for each in sent].count((name,)) == count > 0
    assert [each.faults for each in sent].count(()) == 40 - count
    more = {"link_lost": -count, "link_duplicated": count}.get(name, 0)
    assert len(received) == 40 + more


def test_a_damaged_frame_is_whole_where_it_was_sent_and_dropped_where_it_arrives() -> None:
    capture = new_capture()
    wire = Wire(capture, LinkFaults(corrupt=1))
    wire.send(small_frame(100))
    [sent], [received] = sent_and_received(capture)
    assert sent.data == small_frame(100) != received.data
    assert (sent.bad_fcs, received.bad_fcs) == (False, True)
    assert received.dropped is not None
    assert wire.nodes.counters(RECEIVER) == {"rx_bad_fcs": 1}


def test_frames_that_are_held_for_the_last_one_are_noted() -> None:
    capture = new_capture()
    wire = Wire(capture, LinkFaults(reorder=1, reorder_degree=50))
    wire.send(frame(1))
    [sent], [received] = sent_and_received(capture)
    assert sent.faults == ("link_reordered",)
    assert received.time_ns > sent.time_ns + 500


def test_what_no_link_takes_is_kept_with_the_reason() -> None:
    capture = new_capture()
    wire = Wire(capture)
    stranger = b"\x02" + b"\xff" * 5 + frame(1)[6:]
    put_frame(wire.nodes[RECEIVER], "core_tx", 0, stranger)
    wire.nic.step_at(0)
    [kept] = capture.frames_of(RECEIVER)
    assert (kept.data[:6], kept.received) == (stranger[:6], False)
    assert kept.dropped is not None
    assert wire.nodes.counters(RECEIVER) == {"tx_no_route": 1}


def test_a_full_rx_ring_is_noted_at_the_frames_that_find_it_so() -> None:
    capture = new_capture()
    wire = Wire(capture, rx_ring_entries=16)
    wire.send(*(small_frame(8) for _ in range(40)))
    dropped = [each for each in capture.frames_of(RECEIVER) if each.dropped]
    assert len(dropped) == wire.nodes.counters(RECEIVER)["rx_drop_ring_full"] > 0


def test_times_are_the_same_without_a_capture() -> None:
    faults = LinkFaults(loss=0.1, duplicate=0.2, reorder=0.2, corrupt=0.2)
    counted = []
    for capture in (None, new_capture()):
        wire = Wire(capture, faults)
        wire.send(*(small_frame(8) for _ in range(40)))
        counted.append([wire.nodes.counters(node) for node in (SENDER, RECEIVER)])
    assert counted[0] == counted[1]


def test_an_end_that_there_is_not() -> None:
    wire = Wire(None)
    with pytest.raises(InputError, match="no end 1"):
        wire.line.use_capture(new_capture(ends=1))


def test_too_little_room() -> None:
    segment = new_capture().segment
    with pytest.raises(SegmentError, match="needs"):
        Capture.create(segment, 2, 1 << 21, 1500)
