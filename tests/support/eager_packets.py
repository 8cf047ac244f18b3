"""Packets of eager messages: connect, tiny, small, medium fragments and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from shrimpmx.wire.tables import SMALL_MAX_BYTES, TINY_MAX_BYTES, WireGeometry
from support.packet_base import (
    MESSAGE,
    NACK,
    TO_ENDPOINT,
    FrameError,
    Packet,
    PacketLayout,
    ToEndpoint,
    fits,
)


@dataclass(frozen=True, kw_only=True)
class _Message(ToEndpoint):
    lib_seqnum: int = 0
    lib_piggyack: int = 0
    match_info: int = 0
    session: int = 0
    checksum: int = 0
    data: bytes = b""

    LIMIT: ClassVar[int] = 0
    LAYOUT = PacketLayout(TO_ENDPOINT + "length:H checksum:H " + MESSAGE)

    def _derived(self) -> dict[str, Any]:
        return {"length": len(self.data)}

    def _payload(self) -> bytes:
        return self.data

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        return fits(cls.NAME, values["length"], cls.LIMIT, room)


@dataclass(frozen=True, kw_only=True)
class TinyPacket(_Message):
    """A message of up to 32 bytes, which travels inside the event."""

    NAME = "tiny"
    PTYPE = 37
    LIMIT = TINY_MAX_BYTES


@dataclass(frozen=True, kw_only=True)
class SmallPacket(_Message):
    """A message of up to 128 bytes: one packet, one receive slot."""

    NAME = "small"
    PTYPE = 38
    LIMIT = SMALL_MAX_BYTES


@dataclass(frozen=True, kw_only=True)
class MediumFragmentPacket(ToEndpoint):
    """One of the eager fragments of a medium message; all but the last are full.

    `pipeline` is the logarithm of the fragment size, 12, in the MX firmware's format, and
    nothing in Open-MX's own.
    """

    lib_seqnum: int = 0
    lib_piggyack: int = 0
    match_info: int = 0
    session: int = 0
    message_length: int = 0
    frag_seqnum: int = 0
    pipeline: int = 0
    checksum: int = 0
    data: bytes = b""

    NAME = "medium_frag"
    PTYPE = 39
    _FRAGMENT: ClassVar[str] = "frag_length:H frag_seqnum:B pipeline:B checksum:H 2x"
    LAYOUT = PacketLayout(TO_ENDPOINT + "message_length:I " + MESSAGE + _FRAGMENT)
    COMPATIBLE: ClassVar[PacketLayout] = PacketLayout(
        TO_ENDPOINT + "message_length:H 2x " + MESSAGE + _FRAGMENT
    )
    PIPELINE: ClassVar[int] = 12

    @classmethod
    def layout(cls, compatible: bool) -> PacketLayout:
        return cls.COMPATIBLE if compatible else cls.LAYOUT

    def _derived(self) -> dict[str, Any]:
        return {"frag_length": len(self.data)}

    def _payload(self) -> bytes:
        return self.data

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        full, number = geometry.medium_frag_bytes, values["frag_seqnum"]
        length, whole = values["frag_length"], values["message_length"]
        if geometry.compatible and values["pipeline"] != cls.PIPELINE:
            raise FrameError(
                "bad_datalen",
                f"medium fragment with pipeline {values['pipeline']}, not {cls.PIPELINE}",
            )
        rest = whole - number * full
        if whole > geometry.medium_max_bytes or rest <= 0 or length != min(full, rest):
            raise FrameError(
                "bad_datalen",
                f"medium fragment {number} of {length} bytes does not belong to a message of "
                f"{whole} bytes in up to {geometry.medium_frags_max} fragments of {full}",
            )
        return fits(cls.NAME, length, full, room)


@dataclass(frozen=True, kw_only=True)
class ConnectPacket(ToEndpoint):
    """Opens a connection, or answers such a request (`is_reply`).

    `key_or_session` is the application's key in a request, the session of the endpoint
    that answers in a reply; `src_session_id` is that of the endpoint that asked, in both.
    """

    lib_seqnum: int = 0
    src_dst_peer_index: int = 0
    src_session_id: int = 0
    key_or_session: int = 0
    target_recv_seqnum_start: int = 1
    is_reply: int = 0
    connect_seqnum: int = 0
    status: int = 0

    NAME = "connect"
    PTYPE = 36
    DATA_BYTES: ClassVar[int] = 16
    LAYOUT = PacketLayout(
        TO_ENDPOINT + "length:B 3x lib_seqnum:H src_dst_peer_index:H 4x src_session_id:I "
        "key_or_session:I target_recv_seqnum_start:H is_reply:B connect_seqnum:B status:B 3x"
    )

    def _derived(self) -> dict[str, Any]:
        return {"length": self.DATA_BYTES}

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        if values["length"] != cls.DATA_BYTES or values["is_reply"] > 1:
            raise FrameError(
                "bad_datalen",
                f"connect packet with {values['length']} bytes of data (not {cls.DATA_BYTES}) "
                f"and is_reply {values['is_reply']}",
            )
        return 0


@dataclass(frozen=True, kw_only=True)
class TrucPacket(ToEndpoint):
    """A library acknowledgement: everything below `lib_seqnum` was received."""

    session: int = 0
    lib_seqnum: int = 0
    session_id: int = 0
    acknum: int = 0
    send_seq: int = 0
    resent: int = 0

    NAME = "truc"
    PTYPE = 35
    DATA_BYTES: ClassVar[int] = 16
    ACK: ClassVar[int] = 0x55
    LAYOUT = PacketLayout(
        TO_ENDPOINT + "length:B 3x session:I type:B 1x lib_seqnum:H session_id:I acknum:I "
        "send_seq:H resent:B 1x"
    )

    def _derived(self) -> dict[str, Any]:
        return {"length": self.DATA_BYTES, "type": self.ACK}

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        if values["length"] != cls.DATA_BYTES or values["type"] != cls.ACK:
            raise FrameError(
                "bad_datalen",
                f"truc packet of type {values['type']:#x} with {values['length']} bytes is no "
                "library acknowledgement",
            )
        return 0


@dataclass(frozen=True, kw_only=True)
class NackLibPacket(Packet):
    """Refuses a message or connect: the endpoint is bad or closed, or the session is."""

    src_endpoint: int = 0
    src_generation: int = 0
    nack_type: int = 0
    dst_endpoint: int = 0
    dst_src_peer_index: int = 0
    lib_seqnum: int = 0

    NAME = "nack_lib"
    PTYPE = 44
    LAYOUT = PacketLayout(NACK + "1x dst_endpoint:B dst_src_peer_index:H lib_seqnum:H 2x")
