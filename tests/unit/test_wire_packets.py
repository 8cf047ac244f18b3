"""Frame formats: sizes, round trips, and frames that must be refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import packets
from support.packets import (
    PACKET_TYPES,
    ConnectPacket,
    FrameError,
    HostReply,
    MediumFragmentPacket,
    NackLibPacket,
    Packet,
    PullReplyPacket,
    PullRequestPacket,
    RawPacket,
    RndvPacket,
    SmallPacket,
    TinyPacket,
    TrucPacket,
    decode,
    encode,
    node_address,
    one_line,
)
from support.tree import PACKAGE

from shrimpmx.wire.check import check
from shrimpmx.wire.tables import PACKET_NAMES, wire_geometry

# Open-MX's header sizes, head and data excluded.
HEADER_BYTES = {
    "host_query": 16,
    "host_reply": 16,
    "truc": 28,
    "connect": 32,
    "tiny": 24,
    "small": 24,
    "medium_frag": 32,
    "rndv": 32,
    "pull_request": 44,
    "pull_reply": 16,
    "notify": 24,
    "nack_lib": 16,
    "nack_mcp": 16,
    "raw": 4,
}
COMPATIBLE_BYTES = HEADER_BYTES | {"pull_request": 32}
WIDTHS = {"B": 8, "H": 16, "I": 32, "Q": 64}
# What frames are cut by: MTU and format.
Wire = tuple[int, str]
WIRES = st.sampled_from([(1500, "native"), (9000, "native"), (9000, "compatible")])
HUGE = 0xFFFFFFFF


def field_values(kind: type[Packet], compatible: bool) -> dict[str, st.SearchStrategy[int]]:
    layout = kind.layout(compatible)
    letters = [
        letter for _, letter in re.findall(r"(\d*)([BHIQx])", layout.packer.format) if letter != "x"
    ]
    return {
        name: st.integers(0, 2 ** WIDTHS[letter] - 1)
        for name, letter in zip(layout.names, letters, strict=True)
        if name in kind.__dataclass_fields__
    }


@st.composite
def packets_and_wires(draw: st.DrawFn) -> tuple[Packet, Wire]:
    """Any valid packet, and a wire that it is valid on."""
    wire = draw(WIRES)
    geometry = wire_geometry(*wire)
    kind = draw(st.sampled_from(sorted(PACKET_TYPES.values(), key=lambda kind: kind.PTYPE)))
    values: dict[str, Any] = {
        name: draw(value) for name, value in field_values(kind, geometry.compatible).items()
    }
    limits = {
        "tiny": 32,
        "small": 128,
        "host_reply": 80,
        "pull_reply": geometry.pull_frame_bytes,
        "raw": geometry.mtu_bytes - 20,
    }
    if kind.NAME in limits:
        least = 1 if kind is PullReplyPacket else 0
        length = draw(st.integers(least, limits[kind.NAME]))
        values["data"] = bytes(draw(st.integers(0, 255)) for _ in range(min(length, 4))).ljust(
            length, b"x"
        )
    if kind is MediumFragmentPacket:
        full = geometry.medium_frag_bytes
        length = draw(st.integers(1, geometry.medium_max_bytes))
        number = draw(st.integers(0, (length - 1) // full))
        values |= {"message_length": length, "frag_seqnum": number}
        values["data"] = bytes(min(full, length - number * full))
        if geometry.compatible:
            values["pipeline"] = 12
    if kind is PullRequestPacket:
        full = geometry.pull_frame_bytes
        values["first_frame_offset"] %= full
        total = min(max(1, values["total_length"]), HUGE - values["rdma_offset"])
        most = min(total, full * geometry.pull_block_frames - values["first_frame_offset"])
        assume(most > 0)
        values |= {"total_length": total, "block_length": draw(st.integers(1, most))}
    if kind is RndvPacket:
        values["message_length"] = min(values["message_length"], HUGE - values["rdma_offset"])
    if kind is PullReplyPacket:
        values["message_offset"] = min(values["message_offset"], HUGE - len(values["data"]))
    if kind is ConnectPacket:
        values["is_reply"] %= 2
    if "magic" in values:
        values["magic"] = packets.HOST_MAGIC
    head: dict[str, Any] = {
        "destination": draw(st.binary(min_size=6, max_size=6)),
        "source": node_address(draw(st.integers(0, 65535))),
        "peer_index": draw(st.integers(0, 65535)),
        "marked": draw(st.booleans()),
    }
    return kind(**head, **values), wire


def fault_of(frame: bytes, wire: Wire = (1500, "native")) -> str:
    try:
        decode(frame, *wire)
    except FrameError as error:
        return error.fault if str(error) else "without a sentence"
    return ""


def test_every_packet_type_has_its_name() -> None:
    assert {number: kind.NAME for number, kind in PACKET_TYPES.items()} == PACKET_NAMES


def test_every_header_has_open_mxs_size() -> None:
    assert {kind.NAME: kind.LAYOUT.packer.size for kind in PACKET_TYPES.values()} == HEADER_BYTES
    compatible = {kind.NAME: kind.layout(True).packer.size for kind in PACKET_TYPES.values()}
    assert compatible == COMPATIBLE_BYTES
    # The head and the largest header make the least frame of Ethernet.
    assert packets.HEAD_BYTES + max(HEADER_BYTES.values()) == packets.FRAME_MIN_BYTES == 60


def test_type_numbers_leave_room_for_the_mark() -> None:
    assert max(PACKET_TYPES) < packets.MARK


def test_a_tiny_frame_byte_by_byte() -> None:
    packet = TinyPacket(
        destination=node_address(1),
        source=node_address(0x0203),
        peer_index=0x0405,
        marked=True,
        dst_endpoint=6,
        src_endpoint=7,
        lib_seqnum=0x4001,
        lib_piggyack=0x0002,
        match_info=0x1112131415161718,
        session=0x21222324,
        data=b"ab",
    )
    assert (
        encode(packet).hex(" ")
        == (
            "02 5a 00 00 00 01 02 5a 00 00 02 03 86 df 04 05 "  # head
            "a5 06 07 00 00 02 00 00 40 01 00 02 "  # 37 and the mark, endpoints, length, seqnums
            "11 12 13 14 15 16 17 18 21 22 23 24 61 62 " + "00 " * 18
        ).strip()
    )


@given(packets_and_wires())
def test_what_is_encoded_is_decoded(case: tuple[Packet, Wire]) -> None:
    packet, wire = case
    frame = encode(packet, wire[1])
    assert 60 <= len(frame) <= wire[0]
    assert decode(frame, *wire) == packet
    assert check(frame, *wire) == ""
    assert one_line(frame, *wire) == one_line(packet)


@given(packets_and_wires(), st.data())
def test_every_truncated_frame_is_refused_or_whole(
    case: tuple[Packet, Wire], data: st.DataObject
) -> None:
    packet, wire = case
    frame = encode(packet, wire[1])
    cut = frame[: data.draw(st.integers(0, len(frame)))]
    fault = fault_of(cut, wire)
    assert fault == check(cut, *wire)
    if not fault:
        assert decode(cut, *wire) == packet  # only padding was lost


@given(packets_and_wires(), st.data())
def test_the_handlers_check_agrees_with_decode_on_mutated_frames(
    case: tuple[Packet, Wire], data: st.DataObject
) -> None:
    packet, wire = case
    frame = bytearray(encode(packet, wire[1]))
    for _ in range(data.draw(st.integers(1, 4))):
        # Mostly in the headers, where it matters.
        place = data.draw(st.integers(12, 59))
        frame[place] = data.draw(st.one_of(st.sampled_from([0, 1, 12, 255]), st.integers(0, 255)))
    mutated = bytes(frame) + bytes(data.draw(st.sampled_from([0, 0, 1, 1440, 9000])))
    assert fault_of(mutated, wire) == check(mutated, *wire)


@given(st.binary(max_size=120), st.booleans(), WIRES)
def test_the_handlers_check_agrees_with_decode_on_noise(
    noise: bytes, with_ethertype: bool, wire: Wire
) -> None:
    frame = noise
    if with_ethertype:
        frame = noise[:12].ljust(12, b"\0") + b"\x86\xdf" + noise[12:]
    assert fault_of(frame, wire) == check(frame, *wire)


def test_type_of_fault_for_every_type_number() -> None:
    faults: dict[str, list[int]] = {}
    for ptype in range(128):
        frame = bytearray(encode(TinyPacket()))
        frame[16] = ptype
        faults.setdefault(check(bytes(frame)), []).append(ptype)
        frame[16] |= packets.MARK
        assert check(bytes(frame)) == fault_of(bytes(frame))
    assert faults["invalid_type"] == [0, 2, 32, 33, 34]
    assert faults["unknown_type"] == [*range(5, 32), *range(46, 128)]


def with_byte(packet: Packet, offset: int, value: int, wire_format: str = "native") -> bytes:
    frame = bytearray(encode(packet, wire_format))
    frame[offset] = value
    return bytes(frame)


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (bytes(59), "bad_header_datalen"),
        (encode(TinyPacket()) + bytes(1441), "bad_skblen"),
        (with_byte(TinyPacket(), 12, 0x08), "bad_ethertype"),
        (with_byte(TinyPacket(), 21, 33), "bad_datalen"),
        (with_byte(SmallPacket(), 21, 129), "bad_datalen"),
        (with_byte(SmallPacket(data=bytes(30)), 21, 31), "bad_skblen"),
        (with_byte(TrucPacket(), 20, 15), "bad_datalen"),
        (with_byte(TrucPacket(), 28, 0x54), "bad_datalen"),
        (with_byte(ConnectPacket(), 20, 17), "bad_datalen"),
        (with_byte(ConnectPacket(), 42, 2), "bad_datalen"),
        (with_byte(HostReply(), 24, 0), "bad_magic"),
        (with_byte(HostReply(), 17, 81), "bad_datalen"),
        (with_byte(HostReply(), 17, 80), "bad_skblen"),
        (encode(PullReplyPacket()), "bad_datalen"),
        (encode(MediumFragmentPacket()), "bad_datalen"),
        (encode(MediumFragmentPacket(message_length=200, data=bytes(199))), "bad_datalen"),
        (
            encode(MediumFragmentPacket(message_length=1453, frag_seqnum=1, data=b"ab")),
            "bad_datalen",
        ),
        (
            encode(MediumFragmentPacket(message_length=46465, frag_seqnum=32, data=b"a")),
            "bad_datalen",
        ),
        (encode(MediumFragmentPacket(message_length=200, data=bytes(200)))[:247], "bad_skblen"),
    ],
)
def test_bad_frames(frame: bytes, fault: str) -> None:
    assert fault_of(frame) == check(frame) == fault


# One block of a message that goes on behind it.
BLOCK = {"total_length": 1 << 20, "first_frame_offset": 468, "block_length": 32 * 1468 - 468}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, ""),
        ({"block_length": 32 * 1468 - 467}, "bad_datalen"),
        ({"block_length": 0}, "bad_datalen"),
        ({"first_frame_offset": 1468, "block_length": 1}, "bad_datalen"),
        ({"total_length": 1000, "block_length": 1000}, ""),
        ({"total_length": 1000, "block_length": 1001}, "bad_datalen"),
        ({"rdma_offset": 0xFFFFFFFF - (1 << 20)}, ""),
        ({"rdma_offset": 0xFFFFFFFF - (1 << 20) + 1}, "bad_datalen"),
    ],
)
def test_a_pull_request_stays_within_its_block_and_its_message(
    changed: dict[str, int], fault: str
) -> None:
    frame = encode(PullRequestPacket(**cast(dict[str, Any], BLOCK | changed)))
    assert fault_of(frame) == check(frame) == fault


@pytest.mark.parametrize(
    ("packet", "fault"),
    [
        (RndvPacket(message_length=HUGE), ""),
        (RndvPacket(message_length=HUGE, rdma_offset=1), "bad_datalen"),
        (PullReplyPacket(message_offset=HUGE - 1, data=b"a"), ""),
        (PullReplyPacket(message_offset=HUGE, data=b"a"), "bad_datalen"),
        (RawPacket(data=bytes(1480)), ""),
    ],
)
def test_no_message_reaches_beyond_32_bits(packet: Packet, fault: str) -> None:
    frame = encode(packet)
    assert fault_of(frame) == check(frame) == fault


def test_a_raw_packets_length_is_within_the_frame() -> None:
    frame = with_byte(RawPacket(data=bytes(40)), 19, 41)
    assert fault_of(frame) == check(frame) == "bad_skblen"


def test_a_native_medium_message_can_be_longer_than_16_bits_tell() -> None:
    packet = MediumFragmentPacket(message_length=262144, frag_seqnum=31, data=bytes(8192))
    frame = encode(packet)
    assert frame[20:24] == bytes.fromhex("00040000")
    assert decode(frame, 9000) == packet
    assert check(frame, 9000) == ""


def test_the_compatible_format_byte_by_byte() -> None:
    wire = (9000, "compatible")
    medium = MediumFragmentPacket(
        message_length=0x1234, frag_seqnum=1, pipeline=12, data=bytes(0x234)
    )
    frame = encode(medium, "compatible")
    assert frame[20:24].hex() == "12340000"
    assert frame[40:48].hex() == "0234010c00000000"
    assert check(frame, *wire) == fault_of(frame, wire) == ""
    for pipeline in (0, 11):
        bad = with_byte(medium, 43, pipeline, "compatible")
        assert check(bad, *wire) == fault_of(bad, wire) == "bad_datalen"
    late = encode(replace(medium, message_length=8 * 4096 + 1, frag_seqnum=8, data=b"a"), wire[1])
    assert check(late, *wire) == fault_of(late, wire) == "bad_datalen"
    request = PullRequestPacket(
        session=0x01020304, total_length=0x00100000, rdma_id=5, rdma_seqnum=6, rdma_offset=0x0708,
        src_pull_handle=0x09101112, src_magic=0x13141516, first_frame_offset=0x0708,
        block_length=0x7000, frame_index=0x21222324,
    )  # fmt: skip
    frame = encode(request, "compatible")
    assert frame[20:48].hex() == "01020304001000000506070809101112131415160708700021222324"
    assert decode(frame, *wire) == request
    long = encode(replace(request, block_length=0x7900), "compatible")
    assert check(long, *wire) == fault_of(long, wire) == "bad_datalen"


HEADERS = re.compile(r'sizeof\(struct (\w+)\) == (\w+), "(?:[^"]*)"')


def test_the_headers_of_wire_h_have_these_sizes() -> None:
    text = (PACKAGE / "wire/wire.h").read_text()
    sizes = {name: int(size) for name, size in HEADERS.findall(text) if size.isdigit()}
    names = {"tiny": "wire_message", "small": "wire_message", "medium_frag": "wire_medium"}
    for name, size in HEADER_BYTES.items():
        assert sizes.pop(names.get(name, f"wire_{name}"), size) == size
    assert sizes == {"wire_pull_request_compatible": COMPATIBLE_BYTES["pull_request"]}


def test_a_field_that_does_not_fit_is_refused() -> None:
    with pytest.raises(FrameError, match="tiny packet does not fit"):
        encode(TinyPacket(dst_endpoint=256))


def test_one_line_names_what_is_set() -> None:
    packet = TinyPacket(
        source=node_address(1),
        destination=node_address(0),
        marked=True,
        lib_seqnum=7,
        match_info=0xAB,
        data=b"xyz",
    )
    assert one_line(packet) == "tiny* node1 > node0 lib_seqnum=7 match_info=0xab data=3B"
    nack = NackLibPacket(source=bytes(6), destination=node_address(3), nack_type=2)
    assert one_line(nack) == "nack_lib 00:00:00:00:00:00 > node3 nack_type=2"
    assert one_line(b"short") == (
        "bad frame (bad_header_datalen): frame of 5 bytes; the least is 60"
    )
