"""What every packet object has: head fields, the layout of its header, the checks on it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from shrimpmx.errors import ShrimpmxError
from shrimpmx.wire.tables import WireGeometry

NO_PEER = 0xFFFF
"""The head's peer index while the receiver is not known yet."""


class FrameError(ShrimpmxError):
    """A frame that cannot be believed, or a packet that cannot be put in one.

    `fault` is the name that the drop counters use, for instance "bad_datalen".
    """

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class PacketLayout:
    """Fields of a header in wire order: "name:B" and so on (struct's letters), "3x" is padding."""

    def __init__(self, text: str) -> None:
        parts = [part.split(":") for part in text.split()]
        self.names = tuple(part[0] for part in parts if len(part) == 2)
        self.packer = struct.Struct(">" + "".join(part[-1] for part in parts))

    def pack(self, ptype: int, values: dict[str, Any]) -> bytes:
        return self.packer.pack(ptype, *(values[name] for name in self.names[1:]))

    def unpack(self, header: bytes) -> dict[str, Any]:
        return dict(zip(self.names, self.packer.unpack_from(header), strict=True))


TO_ENDPOINT = "ptype:B dst_endpoint:B src_endpoint:B src_generation:B "
MESSAGE = "lib_seqnum:H lib_piggyack:H match_info:Q session:I "
NACK = "ptype:B src_endpoint:B src_generation:B nack_type:B 4x "
HOST = " src_dst_peer_index:H 4x magic:I 4x"


@dataclass(frozen=True, kw_only=True)
class Packet:
    """What every packet has: the Ethernet head, the peer index, the latency mark.

    `peer_index` is the index under which the receiver knows the sender.
    """

    destination: bytes = bytes(6)
    source: bytes = bytes(6)
    peer_index: int = NO_PEER
    marked: bool = False

    NAME: ClassVar[str] = ""
    PTYPE: ClassVar[int] = 0
    LAYOUT: ClassVar[PacketLayout]

    @classmethod
    def layout(cls, compatible: bool) -> PacketLayout:
        """The header's layout in the MX firmware's format, or in Open-MX's native one."""
        return cls.LAYOUT

    def _derived(self) -> dict[str, Any]:
        """Header fields that follow from others."""
        return {}

    def _payload(self) -> bytes:
        return b""

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        """Raise FrameError or return the number of payload bytes; `room` follow the header."""
        return 0


def check_end(name: str, offset: int, length: int) -> None:
    """FrameError if a message reaches beyond what 32 bits can count."""
    if offset + length > 0xFFFFFFFF:
        raise FrameError(
            "bad_datalen", f"{name} packet for {length} bytes at offset {offset}: past 4 GiB"
        )


def fits(name: str, length: int, limit: int, room: int) -> int:
    """`length` if it is within the type's limit and within the frame, else FrameError."""
    if length > limit:
        raise FrameError("bad_datalen", f"{name} packet says {length} bytes, at most {limit} fit")
    if length > room:
        raise FrameError("bad_skblen", f"{name} packet says {length} bytes, the frame has {room}")
    return length


@dataclass(frozen=True, kw_only=True)
class ToEndpoint(Packet):
    """A packet that names the endpoints it goes between."""

    dst_endpoint: int = 0
    src_endpoint: int = 0
    src_generation: int = 0
