"""The receive handler: demultiplexing, drops and their counters, nacks, hostile frames."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.host_node import CORE0, CORE1, NIC, PEER, RANK, SESSION, HostNode, frame
from support.hostile import SUMS
from support.memory import assert_counts
from support.packet_base import NO_PEER
from support.packets import (
    HostQuery,
    HostReply,
    NackMcpPacket,
    PullReplyPacket,
    RawPacket,
    decode,
    encode,
    node_address,
)

from shrimpmx.errors import InputError
from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.shared.node import take_frames
from shrimpmx.wire.check import check

BAD_ENDPOINT, CLOSED, BAD_SESSION = 1, 2, 3
PULL_MAGIC = 0x21071980
RINGS = ("lock-free", "reset")


def nacks(host: HostNode, core: int = 0) -> list[dict[str, Any]]:
    return [vars(decode(data)) for _, data in take_frames(host.node, "core_tx", core)]


def patched(data: bytes, offset: int, *values: int) -> bytes:
    return data[:offset] + bytes(values) + data[offset + len(values) :]


# -- each packet type ---------------------------------------------------


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    ("kind", "lengths"), [("tiny", (0, 1, 16, 17, 32)), ("small", (0, 33, 64, 65, 127, 128))]
)
def test_tiny_and_small(kind: str, lengths: tuple[int, ...], marked: bool) -> None:
    host = HostNode.make()
    fields = {"lib_seqnum": 7, "lib_piggyack": 8, "match_info": 2**63 + 5}
    messages = [random.Random(length).randbytes(length) for length in lengths]
    host.receive(*[frame(kind, data=data, marked=marked, **fields) for data in messages])
    events = host.events()
    assert [event["data"] for event in events] == messages
    for event in events:
        assert (event["type"], event["peer_index"], event["src_endpoint"]) == (kind, PEER, 3)
        assert (event["seqnum"], event["piggyack"], event["match_info"]) == (7, 8, 2**63 + 5)
    assert_counts(host.counters(), {"recv_packets": len(lengths), f"recv_{kind}": len(lengths)})


def test_medium_fragments() -> None:
    host = HostNode.make()
    message = random.Random(1).randbytes(4000)
    pieces = [message[i : i + 1452] for i in range(0, 4000, 1452)]
    for number, data in enumerate(pieces):
        fields = {"message_length": 4000, "frag_seqnum": number, "lib_seqnum": 2}
        host.receive(frame("medium_frag", data=data, marked=number == 2, **fields))
    events = host.events()
    assert [event["frag_seqnum"] for event in events] == [0, 1, 2]
    assert b"".join(event["data"] for event in events) == message
    assert {event["message_length"] for event in events} == {4000}
    assert_counts(host.counters(), {"recv_packets": 3, "recv_medium_frag": 3})


def test_medium_fragments_of_a_large_mtu() -> None:
    host = HostNode.make(mtu=9000)
    data = random.Random(1).randbytes(8192)
    host.receive(frame("medium_frag", data=data, message_length=8193))
    (event,) = host.events()
    assert event["data"] == data


def test_library_acknowledgement() -> None:
    host = HostNode.make()
    fields = {"session_id": 5, "acknum": 6, "lib_seqnum": 7, "send_seq": 8, "resent": 1}
    host.receive(frame("truc", **fields))
    (event,) = host.events()
    assert {"type": "liback", "peer_index": PEER, "src_endpoint": 3, **fields}.items() <= (
        event.items()
    )
    assert_counts(host.counters(), {"recv_packets": 1, "recv_liback": 1})


@pytest.mark.parametrize("is_reply", [0, 1])
@pytest.mark.parametrize("known", [True, False])
def test_connect_needs_no_session_and_no_peer_index(is_reply: int, known: bool) -> None:
    host = HostNode.make()
    fields = {
        "src_session_id": 5,
        "key_or_session": 6,
        "target_recv_seqnum_start": 7,
        "connect_seqnum": 8,
        "status": 11 * is_reply,
    }
    index = PEER if known else NO_PEER
    host.receive(frame("connect", is_reply=is_reply, lib_seqnum=9, peer_index=index, **fields))
    (event,) = host.events()
    name = "connect_reply" if is_reply else "connect_request"
    assert (event["type"], event["peer_index"], event["seqnum"]) == (name, PEER, 9)
    assert fields.items() <= event.items()
    assert_counts(host.counters(), {"recv_packets": 1, f"recv_{name}": 1})


def test_nack_reaches_the_library() -> None:
    host = HostNode.make()
    host.receive(frame("nack_lib", lib_seqnum=9, nack_type=BAD_SESSION))
    (event,) = host.events()
    assert (event["type"], event["peer_index"], event["src_endpoint"]) == ("nack_lib", PEER, 3)
    assert (event["lib_seqnum"], event["nack_type"]) == (9, BAD_SESSION)
    assert_counts(host.counters(), {"recv_packets": 1, "recv_nack_lib": 1})


def test_rendezvous() -> None:
    host = HostNode.make()
    fields = {"message_length": 2**31, "rdma_id": 255, "rdma_seqnum": 254, "rdma_offset": 65535}
    message = {"lib_seqnum": 9, "lib_piggyack": 8, "match_info": 2**63 + 5}
    host.receive(frame("rndv", **fields, **message))
    (event,) = host.events()
    expected = {"type": "rndv", "peer_index": PEER, "src_endpoint": 3, "seqnum": 9, "piggyack": 8}
    assert {**expected, "match_info": 2**63 + 5, **fields}.items() <= event.items()
    assert_counts(host.counters(), {"recv_packets": 1, "recv_rndv": 1})


def test_notification() -> None:
    host = HostNode.make()
    fields = {"total_length": 2**32 - 1, "rdma_id": 255, "rdma_seqnum": 254}
    host.receive(frame("notify", lib_seqnum=9, lib_piggyack=8, **fields))
    (event,) = host.events()
    expected = {"type": "notify", "peer_index": PEER, "src_endpoint": 3, "seqnum": 9, "piggyack": 8}
    expected |= {"transferred": 2**32 - 1, "rdma_id": 255, "rdma_seqnum": 254}
    assert expected.items() <= event.items()
    assert_counts(host.counters(), {"recv_packets": 1, "recv_notify": 1})


def test_packets_go_to_their_endpoint() -> None:
    host = HostNode.make()
    host.endpoints[1].open(77)
    for number in range(10):
        to = number % 2
        session = (SESSION, 77)[to]
        host.receive(frame("tiny", dst_endpoint=to, session=session, lib_seqnum=number))
    assert [event["seqnum"] for event in host.events(0)] == [0, 2, 4, 6, 8]
    assert [event["seqnum"] for event in host.events(1)] == [1, 3, 5, 7, 9]


# -- drops and nacks -----------------------------------------------------

TINY = frame("tiny")
HEAD: dict[str, Any] = {
    "source": node_address(PEER),
    "destination": node_address(0),
    "peer_index": PEER,
}
FAULTY: dict[str, list[bytes]] = {
    "bad_header_datalen": [b"", TINY[:59], TINY[:16]],
    "bad_datalen": [patched(TINY, 20, 0, 33), patched(frame("truc"), 20, 3)],
    "bad_skblen": [patched(frame("small"), 20, 0, 128), TINY.ljust(1501), TINY.ljust(20000)],
    "bad_ethertype": [patched(TINY, 12, 8, 0)],
    "bad_peer_index": [frame("tiny", peer_index=3), frame("tiny", peer_index=NO_PEER)],
    "bad_peer_addr": [
        frame("tiny", source=node_address(2)),
        frame("connect", source=node_address(2)),
        frame("connect", source=node_address(9), peer_index=NO_PEER),
        frame("connect", source=bytes(6), peer_index=NO_PEER),
        frame("nack_lib", source=bytes(6)),
    ],
    "invalid_type": [patched(TINY, 16, 0), patched(TINY, 16, 0x80), patched(TINY, 16, 33)],
    "unknown_type": [patched(TINY, 16, 46), patched(TINY, 16, 0xFF)],
    "nosys_type": [encode(RawPacket(**HEAD))],  # and no process takes it
    "host_query_bad_magic": [patched(encode(HostQuery(**HEAD)), 24, 1)],
    "host_reply_bad_magic": [patched(encode(HostReply(**HEAD)), 24, 1)],
    "pull_reply_bad_magic_endpoint": [
        encode(PullReplyPacket(**HEAD, data=b"x", dst_magic=magic))
        for magic in (0, PULL_MAGIC ^ 1, PULL_MAGIC ^ 2, PULL_MAGIC ^ 255, PULL_MAGIC ^ 2**31)
    ],
    "pull_reply_bad_wire_handle": [
        encode(PullReplyPacket(**HEAD, data=b"x", dst_magic=PULL_MAGIC, dst_pull_handle=handle))
        for handle in (0, 1023, 0x23 << 10, 2**32 - 1)
    ],
    "nack_mcp_bad_magic_endpoint": [
        encode(NackMcpPacket(**HEAD, src_magic=magic)) for magic in (0, PULL_MAGIC ^ 1)
    ],
    "nack_mcp_bad_wire_handle": [
        encode(NackMcpPacket(**HEAD, src_magic=PULL_MAGIC, src_pull_handle=handle))
        for handle in (0, 0x23 << 10)
    ],
    "bad_endpoint": [frame("truc", dst_endpoint=2), frame("nack_lib", dst_endpoint=1)],
    "bad_session": [frame("truc", session=1)],
}
# Counted in tests of their own, since these packets need a partner that is known, or are answered.
TESTED_ELSEWHERE = {
    "test_host_raw.py": ("raw_queue_full", "raw_too_large"),
    "test_host_pull_replies.py": (
        "pull_bad_region", "pull_bad_offset_length", "pull_bad_replies", "pull_reply_duplicate",
        "pull_reply_bad_seqnum", "pull_reply_bad_seqnum_wraparound",
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", FAULTY)
def test_each_drop_has_its_counter_and_no_answer(reason: str) -> None:
    host = HostNode.make()
    frames = FAULTY[reason]
    host.receive(*frames)
    assert_counts(host.counters(), {"recv_packets": len(frames), f"drop_{reason}": len(frames)})
    assert host.events() == []
    assert nacks(host) == []


def test_every_drop_counter_is_tested() -> None:
    names = [name for name in HostNode.make().control.agent_counters(CORE0) if "drop_" in name]
    elsewhere = [reason for reasons in TESTED_ELSEWHERE.values() for reason in reasons]
    assert sorted(names) == sorted(f"drop_{reason}" for reason in (*FAULTY, *elsewhere))
    for file, reasons in TESTED_ELSEWHERE.items():
        text = (Path(__file__).parent / file).read_text()
        assert all(f"drop_{reason}" in text for reason in reasons), file


@pytest.mark.parametrize("kind", ["tiny", "small", "medium_frag", "connect", "rndv", "notify"])
@pytest.mark.parametrize(
    ("endpoint", "session", "nack_type"),
    [(2, SESSION, BAD_ENDPOINT), (255, SESSION, BAD_ENDPOINT), (1, SESSION, CLOSED), (0, 1, 3)],
)
def test_refused_packets_are_nacked(kind: str, endpoint: int, session: int, nack_type: int) -> None:
    host = HostNode.make()
    fields: dict[str, Any] = {"dst_endpoint": endpoint, "lib_seqnum": 0x1234}
    if kind != "connect":
        fields["session"] = session
    if kind == "medium_frag":
        fields.update(message_length=200, data=bytes(200))
    host.receive(frame(kind, peer=2, **fields))
    if kind == "connect" and nack_type == BAD_SESSION:
        assert len(host.events()) == 1
        return
    (nack,) = nacks(host)
    assert (nack["destination"], nack["source"]) == (node_address(2), node_address(0))
    assert (nack["nack_type"], nack["lib_seqnum"]) == (nack_type, 0x1234)
    assert (nack["src_endpoint"], nack["dst_endpoint"]) == (endpoint, 3)
    assert (nack["peer_index"], nack["dst_src_peer_index"], nack["marked"]) == (0, 0, False)
    reason = "drop_bad_session" if nack_type == BAD_SESSION else "drop_bad_endpoint"
    assert_counts(host.counters(), {"recv_packets": 1, reason: 1, "send_nack_lib": 1})
    assert host.events() == []


def test_a_nack_without_room_is_counted() -> None:
    host = HostNode.make()
    host.receive(*[frame("tiny", dst_endpoint=9)] * 20)
    assert host.counters()["send_nack_lib"] == 16
    assert host.counters()["send_nomem_nack_lib"] == 4
    assert len(nacks(host)) == 16


def test_a_nack_rings_the_nics_doorbell() -> None:
    host = HostNode.make()
    nic = host.wait_slot(NIC)
    nic.arm()
    host.receive(TINY)
    assert nic.wakes == 0
    host.receive(frame("tiny", dst_endpoint=9))
    assert nic.wakes == 1


# -- full rings, wakes, ledger --------------------------------------------


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("start", [0, 2**32 - 9])
def test_a_full_ring_drops_counts_and_recovers(ring: str, start: int) -> None:
    host = HostNode.make(event_ring=ring, start_index=start)
    for lap in range(5):
        messages = [bytes([lap, number]) * 40 for number in range(20)]
        host.receive(*[frame("small", data=data) for data in messages])
        events = host.events()
        assert [event["data"] for event in events] == messages[:16]
        slots = [event["recvq_offset"] // host.layout.recvq_slot_bytes for event in events]
        assert slots == [(start + 16 * lap + number) % 16 for number in range(16)]
        assert host.counters()["unexp_eventq_full"] == 4 * (lap + 1)
    assert host.counters()["recv_small"] == 80


@pytest.mark.parametrize("ring", RINGS)
def test_a_recvq_that_reuses_slots_begins_again_when_all_was_read(ring: str) -> None:
    host = HostNode.make(event_ring=ring, reuses_slots=True)
    for lap in range(8):
        messages = [bytes([lap, number]) * 40 for number in range(3)]
        host.receive(*[frame("small", data=data) for data in messages])
        events = host.events()
        assert [event["data"] for event in events] == messages
        slots = [event["recvq_offset"] // host.layout.recvq_slot_bytes for event in events]
        assert slots == [0, 1, 2]


def test_the_rank_is_woken_once_per_batch() -> None:
    host = HostNode.make()
    rank = host.wait_slot(RANK)
    rank.arm()
    for _ in range(3):
        host.handlers[0].handle_frame(TINY, finish=False)
        assert rank.wakes == 0
    host.receive(TINY)
    assert rank.wakes == 1
    host.receive(TINY)
    assert rank.wakes == 1, "it was not armed again"
    assert host.counters()["rank_wakes"] == 1


def test_a_dropped_packet_wakes_nobody() -> None:
    host = HostNode.make()
    rank = host.wait_slot(RANK)
    rank.arm()
    host.receive(*[data for frames in FAULTY.values() for data in frames])
    assert rank.wakes == 0


def test_notifications_are_counted_apart() -> None:
    host = HostNode.make()
    received: list[int] = []
    old = signal.signal(signal.SIGUSR1, lambda number, _: received.append(number))
    try:
        host.control.register_process(RANK, signal.SIGUSR1)
        host.wait_slot(RANK).arm_notify()
        host.receive(TINY, TINY)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert received == [signal.SIGUSR1] * 2
    assert host.counters()["rank_notifications"] == 2
    assert "rank_wakes" not in host.counters()


def test_the_ledger_counts_changes_of_core() -> None:
    host = HostNode.make()
    for core in (0, 0, 1, 1, 0, 1):
        host.receive(TINY, TINY, core=core)
    assert host.node.endpoint_handovers(0) == 3
    assert host.counters(CORE0)["recv_tiny"] == host.counters(CORE1)["recv_tiny"] == 6
    assert len(host.events()) == 12


def test_a_handler_needs_a_core_that_exists() -> None:
    with pytest.raises(InputError, match="no core 2"):
        ReceiveHandler(HostNode.make().node, 2, CORE0)


# -- hostile frames -------------------------------------------------------


def hostile_frames(seed: int, count: int) -> list[bytes]:
    """Good frames, damaged ones, and noise behind a good head."""
    draw = random.Random(seed)
    good = [
        frame(kind, dst_endpoint=to) for kind in ("truc", "connect", "nack_lib") for to in (0, 2)
    ]
    good += [frame("tiny", data=bytes(32)), frame("small", data=bytes(128))]
    good += [frame("medium_frag", message_length=3000, data=bytes(1452))]
    good += [data for frames in FAULTY.values() for data in frames if 60 <= len(data) <= 1500]
    frames = []
    for _ in range(count):
        data = bytearray(draw.choice(good))
        form = draw.randrange(4)
        if form == 1:
            for _ in range(draw.randint(1, 4)):
                data[draw.randrange(len(data))] = draw.randrange(256)
        elif form == 2:
            start = draw.randrange(12, len(data))
            data[start:] = draw.randbytes(draw.randint(0, 1600 - start))
        elif form == 3:
            data[17:] = bytes([0]) + draw.randbytes(draw.choice((43, 60, 200, 1480)))
        frames.append(bytes(data))
    return frames


def writable(host: HostNode) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which bytes of the segment a handler may write while endpoint 0 alone is open."""
    allowed = np.zeros(host.layout.size_bytes, dtype=bool)
    start = host.layout.event_rings_offset
    events = 64 * host.layout.event_ring_entries
    stride = host.layout.recvq_slot_bytes
    allowed[start : start + events] = True  # unexpected events; then expected ones
    for slot in range(host.layout.event_ring_entries):
        place = start + 2 * events + slot * stride
        allowed[place : place + host.node.medium_frag_bytes] = True
    descriptor = host.layout.endpoints_offset
    allowed[descriptor + 64 : descriptor + 128] = True  # the handlers' part of it
    tx = host.layout.core_tx_rings_offset
    allowed[tx : tx + host.layout.core_tx_stride] = True
    return allowed


@pytest.mark.parametrize("ring", RINGS)
def test_20_000_hostile_frames_write_nowhere_else(ring: str) -> None:
    host = HostNode.make(event_ring=ring, endpoints=3)
    memory = np.frombuffer(host.node.segment.view(), dtype=np.uint8)
    host.receive(TINY)
    before = memory.copy()
    frozen = ~writable(host)
    count = 10_000
    for number, data in enumerate(hostile_frames(3, count)):
        host.receive(data)
        if number % 40 == 0:
            # The rank's and the NIC's own words are not the handler's to write: put them back.
            changed = np.flatnonzero((memory != before) & frozen)
            assert changed.size == 0, f"frame {number} changed bytes {changed[:8]}"
            host.events()
            take_frames(host.node, "core_tx")
            before[frozen] = memory[frozen]
    assert host.counters()["recv_packets"] == count + 1
    assert_all_accounted_for(host)


def assert_all_accounted_for(host: HostNode) -> None:
    counts = {name: count for name, count in host.counters().items() if name not in SUMS}
    total = counts.pop("recv_packets")
    kept = sum(n for name, n in counts.items() if name.startswith(("recv_", "drop_", "unexp_")))
    assert kept == total


@given(
    kind=st.sampled_from(
        ["tiny", "small", "truc", "connect", "nack_lib", "medium_frag", "rndv", "notify"]
    ),
    damage=st.lists(st.tuples(st.integers(12, 59), st.integers(0, 255)), max_size=4),
    length=st.none() | st.integers(0, 200),
)
def test_any_damage_is_an_event_or_one_counted_drop(
    kind: str, damage: list[tuple[int, int]], length: int | None
) -> None:
    host = HostNode.make()
    extra: dict[str, Any] = {"message_length": 90, "data": bytes(90)} if "med" in kind else {}
    data = bytearray(frame(kind, **extra))
    for offset, value in damage:
        data[offset] = value
    if length is not None:
        data = data[:length].ljust(length, b"\xaa")
    fault = check(bytes(data))
    host.receive(bytes(data))
    assert_all_accounted_for(host)
    if fault:
        assert host.counters()[f"drop_{fault}"] == 1
    drops = sum(n for name, n in host.counters().items() if name.startswith("drop_"))
    assert len(host.events()) == 1 - drops


@pytest.mark.parametrize("spoil", [lambda data: data, lambda data: patched(data, 16, 0xA5)])
def test_the_mark_does_not_change_what_arrives(spoil: Callable[[bytes], bytes]) -> None:
    host = HostNode.make()
    host.receive(spoil(frame("tiny", data=b"abc")))
    assert [event["data"] for event in host.events()] == [b"abc"]
