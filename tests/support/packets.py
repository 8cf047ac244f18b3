"""MXoE packets as Python objects: encode, decode and one-line print.

For tests and people; agents read and write the same bytes through wire.h.
`decode` believes nothing that it has not checked, by the rules of check.pxd. Formats:
Open-MX's native one and that of the MX firmware ("compatible").
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from typing import Any

from shrimpmx.wire.tables import NODE_PREFIX, WireGeometry, node_address, wire_geometry
from support.eager_packets import (
    ConnectPacket,
    MediumFragmentPacket,
    NackLibPacket,
    SmallPacket,
    TinyPacket,
    TrucPacket,
)
from support.large_packets import (
    NackMcpPacket,
    NotifyPacket,
    PullReplyPacket,
    PullRequestPacket,
    RndvPacket,
)
from support.packet_base import HOST, NO_PEER, FrameError, Packet, PacketLayout, fits

__all__ = [
    "NO_PEER",
    "PACKET_TYPES",
    "ConnectPacket",
    "FrameError",
    "HostQuery",
    "HostReply",
    "MediumFragmentPacket",
    "NackLibPacket",
    "NackMcpPacket",
    "NotifyPacket",
    "Packet",
    "PullReplyPacket",
    "PullRequestPacket",
    "RawPacket",
    "RndvPacket",
    "SmallPacket",
    "TinyPacket",
    "TrucPacket",
    "decode",
    "encode",
    "node_address",
    "one_line",
]

ETHERTYPE = 0x86DF
HEAD_BYTES = 16
FRAME_MIN_BYTES = 60
MARK = 0x80
HOST_MAGIC = 0x13052008
HOST_NAME_MAX_BYTES = 80

_HEAD = struct.Struct(">6s6sHH")
_NIC_ONLY_TYPES = (0, 2, 32, 33, 34)


@dataclass(frozen=True, kw_only=True)
class HostQuery(Packet):
    """Asks a peer for its name."""

    src_dst_peer_index: int = 0
    magic: int = HOST_MAGIC

    NAME = "host_query"
    PTYPE = 3
    LAYOUT = PacketLayout("ptype:B 1x" + HOST)

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        if values["magic"] != HOST_MAGIC:
            raise FrameError("bad_magic", f"{cls.NAME} packet with magic {values['magic']:#x}")
        return 0


@dataclass(frozen=True, kw_only=True)
class HostReply(Packet):
    """A peer's name, at most 80 bytes."""

    src_dst_peer_index: int = 0
    magic: int = HOST_MAGIC
    data: bytes = b""

    NAME = "host_reply"
    PTYPE = 4
    LAYOUT = PacketLayout("ptype:B length:B" + HOST)

    def _derived(self) -> dict[str, Any]:
        return {"length": len(self.data)}

    def _payload(self) -> bytes:
        return self.data

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        if values["magic"] != HOST_MAGIC:
            raise FrameError("bad_magic", f"{cls.NAME} packet with magic {values['magic']:#x}")
        return fits(cls.NAME, values["length"], HOST_NAME_MAX_BYTES, room)


@dataclass(frozen=True, kw_only=True)
class RawPacket(Packet):
    """What privileged programs such as the peer discovery send each other."""

    data: bytes = b""

    NAME = "raw"
    PTYPE = 1
    LAYOUT = PacketLayout("ptype:B 1x length:H")

    def _derived(self) -> dict[str, Any]:
        return {"length": len(self.data)}

    def _payload(self) -> bytes:
        return self.data

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        return fits(cls.NAME, values["length"], 0xFFFF, room)


PACKET_TYPES: dict[int, type[Packet]] = {
    kind.PTYPE: kind
    for kind in (
        RawPacket,
        HostQuery,
        HostReply,
        TrucPacket,
        ConnectPacket,
        TinyPacket,
        SmallPacket,
        MediumFragmentPacket,
        RndvPacket,
        PullRequestPacket,
        PullReplyPacket,
        NotifyPacket,
        NackLibPacket,
        NackMcpPacket,
    )
}
"""Every packet type by its number on the wire."""


def encode(packet: Packet, wire_format: str = "native") -> bytes:
    """The frame that carries `packet`, padded to 60 bytes; FrameError if a field does not fit.

    `wire_format` is "native" or "compatible".
    """
    values = {field.name: getattr(packet, field.name) for field in fields(packet)}
    values.update(packet._derived())
    ptype = packet.PTYPE | (MARK if packet.marked else 0)
    try:
        head = _HEAD.pack(packet.destination, packet.source, ETHERTYPE, packet.peer_index)
        header = packet.layout(wire_format == "compatible").pack(ptype, values)
    except struct.error as error:
        raise FrameError("bad_datalen", f"{packet.NAME} packet does not fit: {error}") from error
    return (head + header + packet._payload()).ljust(FRAME_MIN_BYTES, b"\0")


def _packet_type(ptype: int) -> type[Packet]:
    kind = PACKET_TYPES.get(ptype)
    if kind is not None:
        return kind
    if ptype in _NIC_ONLY_TYPES:
        raise FrameError("invalid_type", f"packet type {ptype} never travels between hosts")
    raise FrameError("unknown_type", f"packet type {ptype} is not an MXoE type")


def decode(frame: bytes, mtu: int = 1500, wire_format: str = "native") -> Packet:
    """The packet in a received frame.

    Args:
        frame: the whole frame, from its Ethernet head; at least 60 bytes.
        mtu: largest frame, bytes; it also sets the size of fragments.
        wire_format: "native" or "compatible".

    Raises:
        InputError: there is no such MTU or format.
        FrameError: a length, offset or type in it cannot be believed.
    """
    geometry = wire_geometry(mtu, wire_format)
    if len(frame) < FRAME_MIN_BYTES:
        raise FrameError(
            "bad_header_datalen", f"frame of {len(frame)} bytes; the least is {FRAME_MIN_BYTES}"
        )
    if len(frame) > mtu:
        raise FrameError("bad_skblen", f"frame of {len(frame)} bytes; the mtu is {mtu}")
    destination, source, ethertype, peer_index = _HEAD.unpack_from(frame)
    if ethertype != ETHERTYPE:
        raise FrameError("bad_ethertype", f"ethertype {ethertype:#06x} is not MXoE")
    header = frame[HEAD_BYTES:]
    kind = _packet_type(header[0] & ~MARK)
    layout = kind.layout(geometry.compatible)
    size = layout.packer.size
    values = layout.unpack(header)
    data = header[size : size + kind._check(values, len(header) - size, geometry)]
    names = {field.name for field in fields(kind)}
    known = {name: value for name, value in values.items() if name in names}
    if "data" in names:
        known["data"] = bytes(data)
    return kind(
        destination=destination,
        source=source,
        peer_index=peer_index,
        marked=bool(header[0] & MARK),
        **known,
    )


def _short(name: str, value: Any) -> str:
    if isinstance(value, bytes):
        return f"{name}={len(value)}B"
    wide = name in ("match_info", "session", "session_id", "src_session_id", "key_or_session")
    return f"{name}={value:#x}" if wide else f"{name}={value}"


def _place(address: bytes) -> str:
    if address.startswith(NODE_PREFIX):
        return f"node{int.from_bytes(address[4:], 'big')}"
    return address.hex(":")


def one_line(packet: Packet | bytes, mtu: int = 1500, wire_format: str = "native") -> str:
    """A packet, or a frame, in one line: type, a star if marked, nodes, fields that are not 0."""
    if isinstance(packet, bytes):
        try:
            packet = decode(packet, mtu, wire_format)
        except FrameError as error:
            return f"bad frame ({error.fault}): {error}"
    head = ("destination", "source", "peer_index", "marked")
    shown = [
        _short(field.name, getattr(packet, field.name))
        for field in fields(packet)
        if field.name not in head and getattr(packet, field.name) not in (0, b"")
    ]
    arrow = f"{_place(packet.source)} > {_place(packet.destination)}"
    return " ".join([packet.NAME + ("*" if packet.marked else ""), arrow, *shown])
