"""Packets of another protocol: what a generator sends, and what the NIC makes of them."""

from __future__ import annotations

import struct

import pytest
from support.agents import make_generator
from support.nic import PLAIN, Handler, Nodes, frame, make_firmware, run
from support.packets import ConnectPacket, encode, node_address

from shrimpmx.cluster.engine.trace_text import words
from shrimpmx.errors import InputError
from shrimpmx.link.rings import ring_links
from shrimpmx.native.segment import SEGMENT_TRACE, Segment
from shrimpmx.native.trace import Trace
from shrimpmx.nic.generator import OtherFlow, TrafficGenerator
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import put_frame, take_frames

RATE = 1_000_000  # a packet each 1000 ns
ETHERTYPES = {"MXoE": 0x86DF, "IPv4": 0x0800, "ARP": 0x0806}


def make(rate: float = RATE, **options: object) -> tuple[Nodes, TrafficGenerator]:
    """A generator at node 1 that has just been asked to connect by node 0, at 1000 ns."""
    nodes = Nodes()
    options = {"count": 1, "resend_delay_ns": 10**9, "other_rate": rate, **options}
    generator = make_generator(
        nodes[1],
        *ring_links(nodes.nodes, 1, PLAIN),
        **options,  # type: ignore[arg-type]
    )
    request = ConnectPacket(
        source=node_address(0), destination=node_address(1), peer_index=0, src_session_id=1
    )
    put_frame(nodes[1], "link", 0, encode(request), 1000)
    return nodes, generator


def others(nodes: Nodes) -> list[tuple[int, bytes]]:
    """Time of arrival and bytes of the other protocol's frames that came to node 0."""
    return [
        (time_ns, data)
        for time_ns, data in take_frames(nodes[0], "link", 1)
        if data[12:14] == b"\x08\x00"
    ]


def test_the_frame_is_an_ipv4_packet() -> None:
    nodes, generator = make(other_bytes=600)
    generator.step_at(1000)
    ((time_ns, data),) = others(nodes)
    assert time_ns == 1000 + PLAIN.link_delay_ns
    assert len(data) == 600
    assert data[:14] == node_address(0) + node_address(1) + b"\x08\x00"
    fields = struct.unpack(">BBHHHBBH4s4s", data[14:34])
    checksum = fields[7]
    assert fields == (
        *(0x45, 0, 586, 0, 0x4000, 64, 253),
        checksum,
        *(bytes([10, 0, 0, 1]), bytes([10, 0, 0, 0])),
    )
    # The sum of all words of a right header, with end-around carry, has no bit 0 (RFC 1071).
    total = sum(struct.unpack(">10H", data[14:34]))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert data[34:] == bytes(4 + 562)


def test_packets_are_evenly_spaced_and_numbered() -> None:
    nodes, generator = make()
    now_ns = 1000
    for _ in range(5):
        generator.step_at(now_ns)
        assert generator.due_ns == now_ns + 1000
        now_ns += 1000
    arrived = others(nodes)
    delay_ns = PLAIN.link_delay_ns
    assert [time_ns - delay_ns for time_ns, _ in arrived] == [1000, 2000, 3000, 4000, 5000]
    assert [data[34:38] for _, data in arrived] == [bytes([0, 0, 0, i]) for i in range(5)]
    assert nodes.counters(1)["generated_other"] == 5
    assert nodes.counters(1)["generated_packets"] == 1


def test_the_spacing_does_not_drift() -> None:
    """A third of a nanosecond in each interval is one in three of them."""
    _, generator = make(3_000_000)
    times = []
    now_ns = 1000
    for _ in range(7):
        generator.step_at(now_ns)
        times.append(now_ns)
        assert generator.due_ns is not None
        now_ns = generator.due_ns
    assert times == [1000, 1333, 1666, 2000, 2333, 2666, 3000]


def test_what_was_not_sent_in_time_is_made_up_for() -> None:
    nodes, generator = make()
    generator.step_at(1000)
    generator.step_at(1999)
    assert len(others(nodes)) == 1
    generator.step_at(6000)
    assert len(others(nodes)) == 5
    generator.step_at(1000 + 1000 * 200)
    assert len(others(nodes)) == 64  # of a step; the NIC's other agents have their turn
    assert generator.due_ns == 7000 + 64 * 1000


def test_it_waits_for_room_on_the_link() -> None:
    nodes = Nodes(link_ring_entries=16)
    generator = make_generator(
        nodes[1], *ring_links(nodes.nodes, 1, PLAIN), count=1, other_rate=RATE
    )
    put_frame(nodes[1], "link", 0, encode(ConnectPacket(source=node_address(0), peer_index=0)), 0)
    generator.step_at(0)
    generator.step_at(100_000)
    frames = take_frames(nodes[0], "link", 1)
    assert len(frames) == 16
    generator.step_at(100_000)
    numbers = [data[34:38] for _, data in frames + others(nodes) if data[12:14] == b"\x08\x00"]
    assert numbers == [bytes([0, 0, 0, i]) for i in range(len(numbers))]
    assert nodes.counters(1)["generated_other"] == len(numbers) > 16


def test_a_new_session_begins_the_flow_again() -> None:
    nodes, generator = make()
    generator.step_at(1000)
    generator.step_at(3000)
    assert len(others(nodes)) == 3
    again = ConnectPacket(source=node_address(0), peer_index=0, src_session_id=2)
    put_frame(nodes[1], "link", 0, encode(again), 3500)
    generator.step_at(3500)
    ((time_ns, data),) = others(nodes)
    assert (time_ns, data[34:38]) == (3500 + PLAIN.link_delay_ns, bytes(4))
    assert generator.due_ns == 4500


def test_a_trace_tells_them_from_ours() -> None:
    _, generator = make()
    size_bytes = Trace.size_bytes(1, 16)
    trace = Trace.create(Segment.anonymous(size_bytes, SEGMENT_TRACE), 1, 16)
    generator.use_trace(trace, 0)
    generator.step_at(1000)
    told = [words(record) for record in trace.records()]
    assert "frame sent: another protocol's 1>0, 1000 bytes" in told


def closed_loop(window: int, patience_ns: int = 10**9) -> tuple[Nodes, TrafficGenerator]:
    return make(0, other_window=window, resend_delay_ns=patience_ns)


def numbers(nodes: Nodes) -> list[int]:
    return [int.from_bytes(data[34:38], "big") for _, data in others(nodes)]


def answer(nodes: Nodes, number: int, time_ns: int) -> None:
    """Node 0 answers a packet, as its handler does."""
    body = struct.pack(">BBHHHBBH8sI", 0x45, 0, 24, 0, 0x4000, 64, 253, 0, bytes(8), number)
    head = node_address(1) + node_address(0) + b"\x08\x00"
    put_frame(nodes[1], "link", 0, (head + body).ljust(60, b"\0"), time_ns)


def test_a_closed_loop_sends_as_many_as_its_window_until_they_are_answered() -> None:
    nodes, generator = closed_loop(4)
    generator.step_at(1000)
    ((_, data), *_rest) = arrived = others(nodes)
    assert data[23] == 254
    assert [each[34:38] for _, each in arrived] == [bytes([0, 0, 0, i]) for i in range(4)]
    generator.step_at(5000)
    assert numbers(nodes) == []
    answer(nodes, 1, 6000)  # the answers to 0 and 1, of which one was lost
    generator.step_at(6000)
    assert numbers(nodes) == [4, 5]


def test_answers_of_what_was_not_sent_or_is_answered_open_no_window() -> None:
    nodes, generator = closed_loop(2)
    generator.step_at(1000)
    assert numbers(nodes) == [0, 1]
    for number in (2, 1000, 2**32 - 1):
        answer(nodes, number, 2000)
    generator.step_at(2000)
    assert numbers(nodes) == []
    answer(nodes, 1, 3000)
    answer(nodes, 0, 3000)  # overtaken
    generator.step_at(3000)
    assert numbers(nodes) == [2, 3]


def test_a_closed_loop_goes_on_where_no_answer_comes() -> None:
    nodes, generator = closed_loop(2, patience_ns=50_000)
    generator.step_at(1000)
    assert numbers(nodes) == [0, 1]
    generator.step_at(50_000)
    assert numbers(nodes) == []
    generator.step_at(51_000)
    assert numbers(nodes) == [2]
    answer(nodes, 2, 60_000)
    generator.step_at(60_000)
    assert numbers(nodes) == [3, 4]


@pytest.mark.parametrize("rate", [-1.0, float("nan"), 2e9])
def test_a_rate_that_cannot_be(rate: float) -> None:
    with pytest.raises(InputError, match="packets per second"):
        OtherFlow(rate, 1000)


@pytest.mark.parametrize("frame_bytes", [59, 1501])
def test_a_size_that_cannot_be(frame_bytes: int) -> None:
    with pytest.raises(InputError, match=f"60 to 1500 bytes, not {frame_bytes}"):
        OtherFlow(RATE, frame_bytes)


@pytest.mark.parametrize("name", ETHERTYPES)
def test_only_a_frame_of_our_ethertype_has_a_mark(name: str) -> None:
    """The bit of the mark is part of the length in an IPv4 packet."""
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="open-mx", rx_usecs=75)
    data = bytearray(frame(marked=True))
    data[12:14] = ETHERTYPES[name].to_bytes(2, "big")
    assert data[16] & 0x80
    put_frame(nodes[0], "link", 1, bytes(data), 1000)
    nic.step_at(1000)
    nic.step_at(1000 + PLAIN.dma_latency_ns)
    marked = name == "MXoE"
    assert nodes.counters(0).get("rx_marked", 0) == marked
    assert nodes.counters(0)["rx_packets"] == 1
    assert bool(nodes.take_interrupts()) == marked


@pytest.mark.parametrize("coalescing", ["open-mx", "stream"])
def test_unmarked_packets_wait_as_they_do_under_the_timeout(coalescing: str) -> None:
    """Marks decide nothing about packets that carry none (coalescing, VI)."""

    def interrupts(name: str) -> int:
        nodes, generator = make(100_000)
        parameters = NicParameters(**{**PLAIN.model_dump(), "coalescing": name, "rx_usecs": 75})
        nic, handler = make_firmware(nodes, parameters=parameters), Handler(nodes)
        run([generator, nic], 1000, 10_000_000, [handler])
        assert sum(data[12:14] == b"\x08\x00" for _, data in handler.frames) >= 990
        return handler.interrupts

    timeout = interrupts("timeout")
    assert timeout > 100
    # The stream's one message may have raised one of its own.
    assert timeout <= interrupts(coalescing) <= timeout + 1
