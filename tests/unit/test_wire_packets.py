"""Frame formats: sizes, round trips, and frames that nobody should believe."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrimpmx.wire import packets
from shrimpmx.wire.check import check
from shrimpmx.wire.packets import (
    PACKET_TYPES,
    ConnectPacket,
    FrameError,
    HostReply,
    MediumFragmentPacket,
    NackLibPacket,
    Packet,
    PullReplyPacket,
    SmallPacket,
    TinyPacket,
    TrucPacket,
    decode,
    encode,
    node_address,
    one_line,
)
from shrimpmx.wire.tables import medium_frag_bytes, pull_frame_bytes

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
}
WIDTHS = {"B": 8, "H": 16, "I": 32, "Q": 64}
MTUS = st.sampled_from([1500, 9000])


def field_values(kind: type[Packet]) -> dict[str, st.SearchStrategy[int]]:
    letters = [
        letter
        for _, letter in re.findall(r"(\d*)([BHIQx])", kind.LAYOUT.packer.format)
        if letter != "x"
    ]
    return {
        name: st.integers(0, 2 ** WIDTHS[letter] - 1)
        for name, letter in zip(kind.LAYOUT.names, letters, strict=True)
        if name in kind.__dataclass_fields__
    }


@st.composite
def packets_and_mtus(draw: st.DrawFn) -> tuple[Packet, int]:
    """Any valid packet, and an MTU that it is valid for."""
    mtu = draw(MTUS)
    kind = draw(st.sampled_from(sorted(PACKET_TYPES.values(), key=lambda kind: kind.PTYPE)))
    values: dict[str, Any] = {name: draw(value) for name, value in field_values(kind).items()}
    limits = {"tiny": 32, "small": 128, "host_reply": 80, "pull_reply": pull_frame_bytes(mtu)}
    if kind.NAME in limits:
        least = 1 if kind is PullReplyPacket else 0
        length = draw(st.integers(least, limits[kind.NAME]))
        values["data"] = bytes(draw(st.integers(0, 255)) for _ in range(min(length, 4))).ljust(
            length, b"x"
        )
    if kind is MediumFragmentPacket:
        full = medium_frag_bytes(mtu)
        length = draw(st.integers(1, min(65535, 32 * full)))
        number = draw(st.integers(0, (length - 1) // full))
        values |= {"message_length": length, "frag_seqnum": number}
        values["data"] = bytes(min(full, length - number * full))
    if kind.NAME == "pull_request":
        values["block_length"] %= 32 * pull_frame_bytes(mtu) + 1
        values["first_frame_offset"] %= pull_frame_bytes(mtu)
    if kind is ConnectPacket:
        values["is_reply"] %= 2
    if "magic" in values:
        values["magic"] = packets.HOST_MAGIC
    head = {
        "destination": draw(st.binary(min_size=6, max_size=6)),
        "source": node_address(draw(st.integers(0, 65535))),
        "peer_index": draw(st.integers(0, 65535)),
        "marked": draw(st.booleans()),
    }
    return kind(**head, **values), mtu


def fault_of(frame: bytes, mtu: int) -> str:
    try:
        decode(frame, mtu)
    except FrameError as error:
        return error.fault if str(error) else "without a sentence"
    return ""


def test_every_header_has_open_mxs_size() -> None:
    assert {kind.NAME: kind.LAYOUT.packer.size for kind in PACKET_TYPES.values()} == HEADER_BYTES
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


@given(packets_and_mtus())
def test_what_is_encoded_is_decoded(case: tuple[Packet, int]) -> None:
    packet, mtu = case
    frame = encode(packet)
    assert 60 <= len(frame) <= mtu
    assert decode(frame, mtu) == packet
    assert check(frame, mtu) == ""
    assert one_line(frame, mtu) == one_line(packet)


@given(packets_and_mtus(), st.data())
def test_every_truncated_frame_is_refused_or_whole(
    case: tuple[Packet, int], data: st.DataObject
) -> None:
    packet, mtu = case
    frame = encode(packet)
    cut = frame[: data.draw(st.integers(0, len(frame)))]
    fault = fault_of(cut, mtu)
    assert fault == check(cut, mtu)
    if not fault:
        assert decode(cut, mtu) == packet  # only padding was lost


@given(packets_and_mtus(), st.data())
def test_the_handlers_check_agrees_with_decode_on_mutated_frames(
    case: tuple[Packet, int], data: st.DataObject
) -> None:
    packet, mtu = case
    frame = bytearray(encode(packet))
    for _ in range(data.draw(st.integers(1, 4))):
        # Mostly in the headers, where it matters.
        place = data.draw(st.integers(12, 59))
        frame[place] = data.draw(st.integers(0, 255))
    mutated = bytes(frame) + bytes(data.draw(st.sampled_from([0, 0, 1, 1440, 9000])))
    assert fault_of(mutated, mtu) == check(mutated, mtu)


@given(st.binary(max_size=120), st.booleans(), MTUS)
def test_the_handlers_check_agrees_with_decode_on_noise(
    noise: bytes, with_ethertype: bool, mtu: int
) -> None:
    frame = noise
    if with_ethertype:
        frame = noise[:12].ljust(12, b"\0") + b"\x86\xdf" + noise[12:]
    assert fault_of(frame, mtu) == check(frame, mtu)


def test_type_of_fault_for_every_type_number() -> None:
    faults: dict[str, list[int]] = {}
    for ptype in range(128):
        frame = bytearray(encode(TinyPacket()))
        frame[16] = ptype
        faults.setdefault(check(bytes(frame)), []).append(ptype)
        frame[16] |= packets.MARK
        assert check(bytes(frame)) == fault_of(bytes(frame), 1500)
    assert faults["nosys_type"] == [1]
    assert faults["invalid_type"] == [0, 2, 32, 33, 34]
    assert faults["unknown_type"] == [*range(5, 32), *range(46, 128)]


def with_byte(packet: Packet, offset: int, value: int) -> bytes:
    frame = bytearray(encode(packet))
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
    assert fault_of(frame, 1500) == check(frame, 1500) == fault


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
