"""The receive handler and packets of another protocol: taken, counted, timed; others dropped."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.host_node import HostNode, frame
from support.memory import assert_counts

from shrimpmx.shared.node import put_frame, take_frames
from shrimpmx.wire.tables import node_address

HEADER = struct.Struct(">BBHHHBBH4s4s")


def other(length: int = 100, total: int | None = None, **fields: int) -> bytes:
    """A frame of `length` bytes whose IPv4 header says `total` behind the Ethernet head."""
    version, protocol = fields.get("version", 0x45), fields.get("protocol", 253)
    ethertype = fields.get("ethertype", 0x0800)
    total = length - 14 if total is None else total
    header = HEADER.pack(version, 0, total, 0, 0x4000, 64, protocol, 0, bytes(4), bytes(4))
    head = node_address(0) + node_address(1) + ethertype.to_bytes(2, "big")
    return (head + header).ljust(length, b"\0")[:length]


@pytest.mark.parametrize("length", [60, 100, 1500])
def test_a_packet_goes_to_its_own_handler(length: int) -> None:
    host = HostNode.make()
    host.receive(other(length))
    assert_counts(host.counters(), {"recv_packets": 1, "recv_other": 1, "recv_other_bytes": length})
    assert host.events() == []
    assert take_frames(host.node, "core_tx", 0) == []


def test_one_whose_sender_waits_for_it_is_answered_by_its_number() -> None:
    host = HostNode.make()
    data = bytearray(other(100, protocol=254))
    data[26:34], data[34:38] = bytes(range(1, 9)), (4711).to_bytes(4, "big")
    host.receive(bytes(data))
    assert host.counters()["recv_other"] == 1
    ((_, answer),) = take_frames(host.node, "core_tx", 0)
    assert len(answer) == 60
    assert answer[:14] == node_address(1) + node_address(0) + b"\x08\x00"
    fields = HEADER.unpack(answer[14:34])
    assert (fields[2], fields[6]) == (24, 253)
    assert fields[8:] == (bytes(range(5, 9)), bytes(range(1, 5)))
    assert answer[34:38] == (4711).to_bytes(4, "big")
    total = sum(struct.unpack(">10H", answer[14:34]))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF


def test_an_answer_is_not_answered() -> None:
    host = HostNode.make()
    host.receive(other(100, protocol=254))
    ((_, answer),) = take_frames(host.node, "core_tx", 0)
    host.receive(answer)
    assert host.counters()["recv_other"] == 2
    assert take_frames(host.node, "core_tx", 0) == []


def test_padding_belongs_to_the_frame_and_not_to_the_packet() -> None:
    host = HostNode.make()
    host.receive(other(60, total=24))
    assert host.counters()["recv_other_bytes"] == 60


@pytest.mark.parametrize(
    "data",
    [
        other(ethertype=0x0806),
        other(version=0x46),
        other(version=0x65),
        other(protocol=6),
        other(100, total=23),
        other(100, total=87),
        other(100, total=0xFFFF),
    ],
    ids=["arp", "options", "version-6", "tcp", "short", "longer-than-the-frame", "longest"],
)
def test_what_is_not_ours_is_dropped(data: bytes) -> None:
    host = HostNode.make()
    host.receive(data)
    assert_counts(host.counters(), {"recv_packets": 1, "drop_bad_ethertype": 1})
    assert take_frames(host.node, "core_tx", 0) == []


@pytest.mark.parametrize(
    ("length", "reason"), [(13, "header_datalen"), (59, "header_datalen"), (1501, "skblen")]
)
def test_no_frame_of_another_length_is_looked_into(length: int, reason: str) -> None:
    host = HostNode.make()
    host.receive(other(length, total=46))
    assert_counts(host.counters(), {"recv_packets": 1, f"drop_bad_{reason}": 1})


@given(data=st.binary(min_size=0, max_size=120), keep=st.integers(0, 40))
def test_any_bytes_behind_the_ethertype_are_safe(data: bytes, keep: int) -> None:
    host = HostNode.make()
    whole = other(100)
    host.receive(whole[: 14 + min(keep, 24)] + data)
    counters = host.counters()
    taken = counters.get("recv_other", 0)
    assert taken + sum(n for name, n in counters.items() if name.startswith("drop_")) == 1


def test_between_messages_it_changes_nothing() -> None:
    host = HostNode.make()
    message = random.Random(1).randbytes(20)
    for data in (frame("tiny", data=message), other(), frame("tiny", data=message)):
        host.handlers[0].handle_frame(data, False)
    host.handlers[0].handle_frame(other())
    assert [event["data"] for event in host.events()] == [message, message]
    assert host.counters().items() >= {"recv_tiny": 2, "recv_other": 2}.items()


def test_its_delay_is_the_time_in_host_memory() -> None:
    host = HostNode.make()
    irq = host.irq()
    irq.step_at(0)
    for time_ns in (1000, 2000, 4000):
        put_frame(host.node, "rx", 0, other(), time_ns)
    put_frame(host.node, "rx", 0, frame("tiny"), 4500)
    host.raise_interrupt()
    irq.step_at(5000)
    assert host.counters()["recv_other_delay_ns"] == 4000 + 3000 + 1000


def test_a_packet_that_came_after_the_step_began_has_not_waited() -> None:
    host = HostNode.make()
    irq = host.irq()
    irq.step_at(0)
    put_frame(host.node, "rx", 0, other(), 5500)
    put_frame(host.node, "rx", 0, other(), 4900)
    host.raise_interrupt()
    irq.step_at(5000)
    assert host.counters()["recv_other"] == 2
    assert host.counters()["recv_other_delay_ns"] == 100
