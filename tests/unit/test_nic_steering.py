"""Steering: which rx queue a frame goes to, whatever it is."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nic import Nodes
from support.packets import (
    ConnectPacket,
    HostQuery,
    HostReply,
    MediumFragmentPacket,
    NackLibPacket,
    NackMcpPacket,
    NotifyPacket,
    Packet,
    PullReplyPacket,
    PullRequestPacket,
    RawPacket,
    RndvPacket,
    SmallPacket,
    TinyPacket,
    TrucPacket,
    encode,
)

from shrimpmx.errors import InputError
from shrimpmx.nic.steering import Steering, Toeplitz, endpoint_of

MAGIC = 0x21071980
PTYPE_AT, FRAME_SEQNUM_AT = 16, 17

# Microsoft, "Verifying the RSS hash calculation": source, destination, with ports, without.
VECTORS = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x51CCC178, 0x323E8FC2),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xC626B0EA, 0xD718262A),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0x5C2B394A, 0xD2D0A5DE),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0xAFC7327F, 0x82989176),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x10E828A2, 0x5D1809C5),
]


def steering(queues: int, kind: str = "endpoint") -> Steering:
    nodes = Nodes(1, rx_queues=queues, steering=kind)
    return Steering(nodes[0])


def packets(endpoint: int) -> list[Packet]:
    """Each type that is for an endpoint, with another endpoint wherever a sender's stands."""
    other = endpoint ^ 0x55
    ends: dict[str, Any] = {
        "dst_endpoint": endpoint,
        "src_endpoint": other,
        "src_generation": other,
    }
    return [
        TrucPacket(**ends),
        ConnectPacket(**ends),
        TinyPacket(**ends),
        SmallPacket(**ends, data=bytes(40)),
        MediumFragmentPacket(**ends, data=bytes(200), message_length=200),
        RndvPacket(**ends),
        PullRequestPacket(**ends, src_magic=other ^ MAGIC),
        NotifyPacket(**ends),
        PullReplyPacket(frame_seqnum=other, dst_magic=endpoint ^ MAGIC, data=bytes(100)),
        NackLibPacket(**ends),
        NackMcpPacket(src_endpoint=other, src_magic=endpoint ^ MAGIC),
    ]


def frames_for(endpoint: int) -> list[bytes]:
    """A frame of each type and format, marked and unmarked."""
    plain = [encode(packet) for packet in packets(endpoint)]
    plain.append(encode(packets(endpoint)[6], "compatible"))
    return plain + [one[:PTYPE_AT] + bytes([one[PTYPE_AT] | 0x80]) + one[17:] for one in plain]


def ipv4(
    source: bytes,
    destination: bytes,
    *,
    protocol: int = 6,
    ports: tuple[int, int] = (0, 0),
    fragment: int = 0,
    words: int = 5,
) -> bytes:
    header = struct.pack(
        ">BBHHHBBH4s4s", 0x40 | words, 0, 60, 0, fragment, 64, protocol, 0, source, destination
    )
    options = bytes(range(1, 4 * words - 19)) if words > 5 else b""
    return bytes(12) + b"\x08\x00" + header + options + struct.pack(">HH", *ports) + bytes(30)


def address(text: str) -> bytes:
    return bytes(int(part) for part in text.split("."))


# -- endpoints ------------------------------------------------------------------


def test_each_type_names_its_endpoint() -> None:
    for endpoint in range(256):
        assert [endpoint_of(one) for one in frames_for(endpoint)] == [endpoint] * 24


@pytest.mark.parametrize("queues", [*range(1, 9), 12, 32])
@pytest.mark.parametrize("kind", ["endpoint", "arfs"])
def test_all_packets_of_an_endpoint_go_to_one_queue(kind: str, queues: int) -> None:
    chosen = steering(queues, kind)
    for endpoint in range(256):
        assert {chosen.queue_of(one) for one in frames_for(endpoint)} == {endpoint % queues}


def test_a_marked_pull_reply_is_not_steered_by_its_frame_number() -> None:
    """Its type is 0xAA: a hash that looks for 0x2A takes byte 18 (1-based) in its place."""
    chosen = steering(4)
    reply = PullReplyPacket(marked=True, frame_seqnum=3, dst_magic=1 ^ MAGIC, data=b"x")
    assert encode(reply)[PTYPE_AT] == 0xAA
    assert encode(reply)[FRAME_SEQNUM_AT] == 3
    assert chosen.queue_of(encode(reply)) == 1


@pytest.mark.parametrize(
    "packet",
    [
        RawPacket(data=b"\x03" * 44),
        HostQuery(src_dst_peer_index=0x0303, magic=0x03030303),
        HostReply(data=b"\x03" * 30, src_dst_peer_index=0x0303),
        PullReplyPacket(frame_seqnum=3, dst_magic=0x12345603, data=b"x"),
        NackMcpPacket(src_endpoint=3, src_magic=0x100 ^ MAGIC),
    ],
)
def test_what_is_for_no_endpoint_goes_to_queue_0(packet: Packet) -> None:
    assert endpoint_of(encode(packet)) is None
    assert steering(4).queue_of(encode(packet)) == 0


def test_types_that_do_not_exist_go_to_queue_0() -> None:
    known = {one[PTYPE_AT] for one in frames_for(0)}
    for ptype in set(range(256)) - known:
        garbage = encode(TinyPacket(dst_endpoint=3))
        garbage = garbage[:PTYPE_AT] + bytes([ptype]) + garbage[17:]
        assert endpoint_of(garbage) is None, ptype
        assert steering(4).queue_of(garbage) == 0


def test_a_frame_shorter_than_ethernets_shortest_is_for_no_endpoint() -> None:
    for one in frames_for(3):
        for length in range(60):
            assert endpoint_of(one[:length]) is None
    for length in range(34):
        assert steering(4).queue_of(ipv4(b"abcd", b"efgh")[:length]) == 0


@given(frame=st.binary(max_size=80), queues=st.integers(1, 32))
def test_garbage_goes_to_a_queue_that_there_is(frame: bytes, queues: int) -> None:
    for kind in ("endpoint", "rss", "arfs"):
        for ethertype in (b"", b"\x86\xdf", b"\x08\x00"):
            made = frame[:12] + ethertype + frame[12:]
            assert 0 <= steering(queues, kind).queue_of(made) < queues


# -- the hash -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "sport", "destination", "dport", "with_ports", "without"), VECTORS
)
def test_the_hash_is_microsofts(
    source: str, sport: int, destination: str, dport: int, with_ports: int, without: int
) -> None:
    ends = address(source) + address(destination)
    assert Toeplitz().hash_of(ends + struct.pack(">HH", sport, dport)) == with_ports
    assert Toeplitz().hash_of(ends) == without
    for kind in ("rss", "endpoint", "arfs"):
        for queues in (2, 3, 8, 32):
            chosen = steering(queues, kind)
            for protocol, ports in ((6, True), (17, True), (1, False), (253, False)):
                one = ipv4(
                    address(source),
                    address(destination),
                    protocol=protocol,
                    ports=(sport, dport),
                )
                hashed = with_ports if ports else without
                assert chosen.queue_of(one) == hashed % 128 % queues


def test_a_flow_longer_than_addresses_and_ports_is_refused() -> None:
    with pytest.raises(InputError, match="12 bytes, IPv4 addresses and ports, not 13"):
        Toeplitz().hash_of(bytes(13))


@pytest.mark.parametrize("fragment", [0x2000, 0x0001, 0x1FFF, 0x3FFF])
def test_all_fragments_of_a_datagram_go_to_one_queue(fragment: int) -> None:
    """Only the first has the ports, so none is hashed by them; "do not fragment" is no fragment."""
    source, _, destination, _, with_ports, without = VECTORS[0]
    chosen = steering(32, "rss")
    ends = (address(source), address(destination))
    assert chosen.queue_of(ipv4(*ends, ports=(2794, 1766), fragment=fragment)) == without % 32
    assert chosen.queue_of(ipv4(*ends, ports=(2794, 1766), fragment=0x4000)) == with_ports % 32


def test_ports_are_found_behind_options_and_not_behind_the_end() -> None:
    source, _, destination, _, with_ports, without = VECTORS[0]
    chosen = steering(32, "rss")
    ends = (address(source), address(destination))
    long = ipv4(*ends, ports=(2794, 1766), words=8)
    assert chosen.queue_of(long) == with_ports % 32
    assert chosen.queue_of(long[: 14 + 32 + 3]) == without % 32
    assert chosen.queue_of(ipv4(*ends, words=4)) == 0, "an impossible header length"
    assert chosen.queue_of(long[:14] + b"\x65" + long[15:]) == 0, "version 6"


# -- the other kinds ------------------------------------------------------------


def test_rss_knows_ip_only() -> None:
    chosen = steering(8, "rss")
    assert {chosen.queue_of(one) for endpoint in range(256) for one in frames_for(endpoint)} == {0}
    assert {chosen.queue_of(ipv4(b"abcd", bytes([1, 2, 3, last]))) for last in range(64)} == set(
        range(8)
    )


def test_rps_has_one_queue() -> None:
    for queues in (1, 4):
        chosen = steering(queues, "rps")
        assert chosen.queues == 1
        frames = [one for endpoint in range(9) for one in frames_for(endpoint)]
        assert {chosen.queue_of(one) for one in frames} == {0}
        assert chosen.queue_of(ipv4(b"abcd", b"efgh")) == 0
