"""Raw packets and host queries: the queue, the names, each reason to drop, the raw endpoint."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from support.host_node import NIC, PEER, RANK, HostNode
from support.memory import assert_counts
from support.packets import HostQuery, HostReply, decode, encode, node_address

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AbortedError, InputError, MxError
from shrimpmx.host.endpoint import close_dead
from shrimpmx.host.raw import RawEndpoint
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.native.segment import RunIdentity
from shrimpmx.shared.host import VirtualHost
from shrimpmx.shared.node import take_frames

SLOTS, DATA_MAX_BYTES, READER_AT = 32, 1024, 128  # of host/raw.h
HEAD: dict[str, Any] = {
    "source": node_address(PEER),
    "destination": node_address(0),
    "peer_index": PEER,
}
MAGIC_AT = 24


def raw_frame(data: bytes, peer: int = PEER) -> bytes:
    """Written by hand: type, a byte, the length, the data."""
    head = node_address(0) + node_address(peer) + struct.pack(">HH", 0x86DF, peer)
    return (head + struct.pack(">BxH", 1, len(data)) + data).ljust(60, b"\0")


def spoilt(frame: bytes, offset: int) -> bytes:
    return frame[:offset] + bytes([frame[offset] ^ 1]) + frame[offset + 1 :]


def raw_endpoint(host: HostNode) -> RawEndpoint:
    endpoint = RawEndpoint(host.node, 0, RANK)
    endpoint.open()
    return endpoint


def reader_slot(host: HostNode) -> WaitSlotView:
    return WaitSlotView(host.node.segment.view(), host.layout.raw_offset + READER_AT)


def sent(host: HostNode, ring: str = "endpoint_tx") -> list[bytes]:
    return [frame for _, frame in take_frames(host.node, ring)]


# -- raw packets ----------------------------------------------------------


def test_raw_packets_arrive_in_order_with_their_sender() -> None:
    host = HostNode.make()
    endpoint = raw_endpoint(host)
    for lap in range(3):
        messages = [bytes([lap, number]) * number for number in range(SLOTS)]
        host.receive(*[raw_frame(data, 1 + number % 2) for number, data in enumerate(messages)])
        got = [endpoint.receive() for _ in messages]
        assert got == [(1 + number % 2, data) for number, data in enumerate(messages)]
    assert endpoint.receive() is None
    assert_counts(host.counters(), {"recv_packets": 3 * SLOTS, "recv_raw": 3 * SLOTS})
    assert host.events() == []


def test_a_full_raw_queue_drops_and_counts() -> None:
    host = HostNode.make()
    endpoint = raw_endpoint(host)
    host.receive(*[raw_frame(bytes([number])) for number in range(SLOTS + 3)])
    assert host.counters()["drop_raw_queue_full"] == 3
    assert [endpoint.receive() for _ in range(SLOTS)] == [(PEER, bytes([n])) for n in range(SLOTS)]
    host.receive(raw_frame(b"after"))
    assert endpoint.receive() == (PEER, b"after")


def test_a_raw_packet_longer_than_a_slot_is_dropped() -> None:
    host = HostNode.make()
    endpoint = raw_endpoint(host)
    host.receive(raw_frame(bytes(DATA_MAX_BYTES + 1)), raw_frame(b"x" * DATA_MAX_BYTES))
    assert_counts(host.counters(), {"recv_packets": 2, "drop_raw_too_large": 1, "recv_raw": 1})
    assert endpoint.receive() == (PEER, b"x" * DATA_MAX_BYTES)


def test_a_raw_packet_is_dropped_where_nobody_takes_it() -> None:
    host = HostNode.make()
    host.receive(raw_frame(b"early"))
    with RawEndpoint(host.node, 0, RANK) as endpoint:
        assert endpoint.receive() is None
        host.receive(raw_frame(b"lost with the close"))
    host.receive(raw_frame(b"late"))
    assert_counts(host.counters(), {"recv_packets": 3, "recv_raw": 1, "drop_nosys_type": 2})
    assert raw_endpoint(host).receive() is None


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda frame: frame[:14] + b"\0\x09" + frame[16:], "bad_peer_index"),
        (lambda frame: spoilt(frame, 11), "bad_peer_addr"),
        (lambda frame: frame[:18] + b"\x05\xd0" + frame[20:], "bad_skblen"),
    ],
)
def test_a_raw_packet_that_cannot_be_believed_is_dropped(spoil: Any, reason: str) -> None:
    host = HostNode.make()
    endpoint = raw_endpoint(host)
    host.receive(spoil(raw_frame(b"data")))
    assert_counts(host.counters(), {"recv_packets": 1, f"drop_{reason}": 1})
    assert endpoint.receive() is None


def test_what_is_sent_is_what_arrives() -> None:
    host = HostNode.make()
    endpoint = raw_endpoint(host)
    for data in (b"", b"identity", b"y" * DATA_MAX_BYTES):
        assert endpoint.send(0, data)
        (frame,) = sent(host)
        assert frame == raw_frame(data, peer=0)
        host.receive(frame)
        assert endpoint.receive() == (0, data)
    assert_counts(host.counters(RANK), {"send_raw": 3})


def test_a_full_tx_ring_is_told_and_counted() -> None:
    host = HostNode.make()
    endpoint = raw_endpoint(host)
    assert [endpoint.send(1, b"") for _ in range(17)] == [True] * 16 + [False]
    assert endpoint.query(1) is False
    assert_counts(host.counters(RANK), {"send_raw": 16, "send_no_tx_slot": 2})


def test_an_arrival_wakes_the_reader_and_a_drop_does_not() -> None:
    host = HostNode.make()
    raw_endpoint(host)
    reader = reader_slot(host)
    reader.arm()
    host.receive(raw_frame(bytes(DATA_MAX_BYTES + 1)))
    assert reader.wakes == 0
    host.receive(raw_frame(b"1"), raw_frame(b"2"))
    assert reader.wakes == 1
    assert host.counters()["rank_wakes"] == 1


def test_receive_gives_up_at_its_time_limit_and_leaves_the_slot_unarmed() -> None:
    host = HostNode.make()

    def world(until_ns: int | None) -> None:
        assert until_ns is not None
        host.control.set_virtual_ns(until_ns)

    with RawEndpoint(host.node, 0, RANK, VirtualHost(host.control, world)) as endpoint:
        assert endpoint.receive(timeout_ns=1000) is None
    assert host.control.now_ns() == 1000
    assert reader_slot(host).armed == 0


def test_a_stop_of_the_run_wakes_the_reader(tmp_path: Path) -> None:
    virtual: Any = {"clock": "virtual"}
    spec = ClusterSpec(ranks=(RankSpec(0, "idle"), RankSpec(1, "idle")), **virtual)
    placement = place(spec, Topology.from_synthetic("core:4 pu:1"))
    memory = RunMemory(spec, placement, RunIdentity.of_this_process(), tmp_path)
    stops = ["abort"]

    def world(until_ns: int | None) -> None:
        memory.set_stop(stops.pop())  # a sleeper that this does not wake fails here

    try:
        reader = RawEndpoint(memory.nodes[1], 0, 0, VirtualHost(memory.control, world))
        with reader, pytest.raises(AbortedError):
            reader.receive(timeout_ns=-1)
    finally:
        memory.close()


def test_a_node_has_one_raw_endpoint() -> None:
    host = HostNode.make()
    first = raw_endpoint(host)
    second = RawEndpoint(host.node, 1, RANK)
    with pytest.raises(MxError, match=f"open already .by process {os.getpid()}."):
        second.open()
    assert not second.is_open
    with pytest.raises(MxError, match="comes first"):
        second.receive()
    second.close()
    assert first.is_open
    first.close()
    second.open()
    assert (first.is_open, second.is_open) == (False, True)


def test_the_raw_endpoint_of_a_dead_process_can_be_taken_over() -> None:
    host = HostNode.make()
    child = os.fork()
    if child == 0:
        raw_endpoint(host)
        os._exit(0)
    os.waitpid(child, 0)
    host.receive(raw_frame(b"for the dead"))
    endpoint = raw_endpoint(host)
    assert endpoint.receive() is None
    host.receive(raw_frame(b"alive"))
    assert endpoint.receive() == (PEER, b"alive")


def test_the_raw_endpoint_of_a_lost_rank_is_closed_with_its_endpoint() -> None:
    """Its pid stays taken until the run ends."""
    host = HostNode.make()
    host.set_pid(os.getpid())
    endpoint = raw_endpoint(host)
    close_dead(host.node, 1)
    assert endpoint.is_open
    close_dead(host.node, 0)
    assert not endpoint.is_open


def test_bad_arguments_are_refused() -> None:
    host = HostNode.make()
    with pytest.raises(InputError, match="no endpoint 9"):
        RawEndpoint(host.node, 9, RANK)
    endpoint = raw_endpoint(host)
    with pytest.raises(InputError, match="at most 1024 bytes, not 1025"):
        endpoint.send(1, bytes(1025))
    for call in (lambda: endpoint.send(3, b""), lambda: endpoint.query(3)):
        with pytest.raises(InputError, match="no node 3; the nodes are 0 to 2"):
            call()


# -- host queries -----------------------------------------------------------


def test_a_query_is_answered_by_the_handler_with_the_nodes_name() -> None:
    host = HostNode.make(index=2)
    nic = host.wait_slot(NIC)
    nic.arm()
    host.receive(encode(HostQuery(**HEAD, src_dst_peer_index=2)))
    (frame,) = sent(host, "core_tx")
    reply = decode(frame)
    assert isinstance(reply, HostReply)
    assert (reply.data, reply.src_dst_peer_index, reply.marked) == (b"node2", 2, False)
    assert (reply.destination, reply.source) == (node_address(PEER), node_address(2))
    assert_counts(host.counters(), {"recv_packets": 1, "recv_host_query": 1, "send_host_reply": 1})
    assert nic.wakes == 1
    assert host.events() == []


def test_an_answer_without_room_is_counted() -> None:
    host = HostNode.make()
    host.receive(*[encode(HostQuery(**HEAD))] * 20)
    counts = host.counters()
    assert (counts["recv_host_query"], counts["send_host_reply"]) == (20, 16)
    assert counts["send_nomem_host_reply"] == 4


def test_names_of_peers_are_learned() -> None:
    host = HostNode.make()
    endpoint = RawEndpoint(host.node, 0, RANK)
    assert endpoint.peer_name(PEER) is None
    assert endpoint.query(PEER)
    (frame,) = sent(host)
    assert frame == encode(
        HostQuery(
            source=node_address(0),
            destination=node_address(PEER),
            peer_index=0,
            src_dst_peer_index=PEER,
        )
    )
    for name in (b"a" * 80, b"node1"):
        host.receive(encode(HostReply(**HEAD, src_dst_peer_index=PEER, data=name)))
        assert endpoint.peer_name(PEER) == name.decode()
    assert [endpoint.peer_name(node) for node in (0, 2)] == [None, None]
    assert_counts(host.counters(), {"recv_packets": 2, "recv_host_reply": 2})
    assert_counts(host.counters(RANK), {"send_host_query": 1})


def test_a_wrong_magic_is_dropped_by_type() -> None:
    host = HostNode.make()
    host.receive(spoilt(encode(HostQuery(**HEAD)), MAGIC_AT))
    host.receive(spoilt(encode(HostReply(**HEAD, data=b"x")), MAGIC_AT))
    assert_counts(
        host.counters(),
        {
            "recv_packets": 2,
            "drop_host_query_bad_magic": 1,
            "drop_host_reply_bad_magic": 1,
        },
    )
    assert sent(host, "core_tx") == []
    assert RawEndpoint(host.node, 0, RANK).peer_name(PEER) is None
