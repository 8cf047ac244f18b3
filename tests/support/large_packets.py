"""Packets of large messages: rendezvous, pull and notify."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from shrimpmx.wire.tables import WireGeometry
from support.packet_base import (
    MESSAGE,
    NACK,
    TO_ENDPOINT,
    FrameError,
    Packet,
    PacketLayout,
    ToEndpoint,
    check_end,
    fits,
)


@dataclass(frozen=True, kw_only=True)
class RndvPacket(ToEndpoint):
    """Announces a large message, which the receiver then pulls.

    `length` is that of what follows the header that it shares with small messages.
    """

    length: int = 8
    checksum: int = 0
    lib_seqnum: int = 0
    lib_piggyack: int = 0
    match_info: int = 0
    session: int = 0
    message_length: int = 0
    rdma_id: int = 0
    rdma_seqnum: int = 0
    rdma_offset: int = 0

    NAME = "rndv"
    PTYPE = 40
    LAYOUT = PacketLayout(
        TO_ENDPOINT + "length:H checksum:H " + MESSAGE + "message_length:I rdma_id:B "
        "rdma_seqnum:B rdma_offset:H"
    )

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        check_end(cls.NAME, values["rdma_offset"], values["message_length"])
        return 0


@dataclass(frozen=True, kw_only=True)
class PullRequestPacket(ToEndpoint):
    """Asks for one block of a large message.

    The block begins `first_frame_offset` bytes into frame `frame_index` of the message; its
    frames are counted from the sender's region, `rdma_offset` bytes into which the message lies.
    """

    session: int = 0
    total_length: int = 0
    rdma_id: int = 0
    rdma_seqnum: int = 0
    rdma_offset: int = 0
    src_pull_handle: int = 0
    src_magic: int = 0
    first_frame_offset: int = 0
    block_length: int = 0
    frame_index: int = 0

    NAME = "pull_request"
    PTYPE = 41
    LAYOUT = PacketLayout(
        TO_ENDPOINT + "session:I total_length:I rdma_id:I rdma_seqnum:B 3x rdma_offset:I "
        "src_pull_handle:I src_magic:I first_frame_offset:I block_length:I frame_index:I"
    )
    COMPATIBLE: ClassVar[PacketLayout] = PacketLayout(
        TO_ENDPOINT + "session:I total_length:I rdma_id:B rdma_seqnum:B rdma_offset:H "
        "src_pull_handle:I src_magic:I first_frame_offset:H block_length:H frame_index:I"
    )

    @classmethod
    def layout(cls, compatible: bool) -> PacketLayout:
        return cls.COMPATIBLE if compatible else cls.LAYOUT

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        full, frames = geometry.pull_frame_bytes, geometry.pull_block_frames
        block, first, total = (
            values[name] for name in ("block_length", "first_frame_offset", "total_length")
        )
        check_end(cls.NAME, values["rdma_offset"], total)
        if not 1 <= block <= min(total, full * frames - first) or first >= full:
            raise FrameError(
                "bad_datalen",
                f"pull request for {block} of {total} bytes from frame offset {first}; at most "
                f"{frames} frames of {full} bytes make a block",
            )
        return 0


@dataclass(frozen=True, kw_only=True)
class PullReplyPacket(Packet):
    """One frame of a pulled block; it names neither endpoint nor session."""

    frame_seqnum: int = 0
    message_offset: int = 0
    dst_pull_handle: int = 0
    dst_magic: int = 0
    data: bytes = b""

    NAME = "pull_reply"
    PTYPE = 42
    LAYOUT = PacketLayout(
        "ptype:B frame_seqnum:B frame_length:H message_offset:I dst_pull_handle:I dst_magic:I"
    )

    def _derived(self) -> dict[str, Any]:
        return {"frame_length": len(self.data)}

    def _payload(self) -> bytes:
        return self.data

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, geometry: WireGeometry) -> int:
        length = values["frame_length"]
        if length == 0:
            raise FrameError("bad_datalen", "pull reply without data")
        if length <= geometry.pull_frame_bytes:
            check_end(cls.NAME, values["message_offset"], length)
        return fits(cls.NAME, length, geometry.pull_frame_bytes, room)


@dataclass(frozen=True, kw_only=True)
class NotifyPacket(ToEndpoint):
    """Tells the sender of a large message that it was pulled."""

    session: int = 0
    total_length: int = 0
    rdma_id: int = 0
    rdma_seqnum: int = 0
    lib_seqnum: int = 0
    lib_piggyack: int = 0

    NAME = "notify"
    PTYPE = 43
    LAYOUT = PacketLayout(
        TO_ENDPOINT + "session:I total_length:I rdma_id:B rdma_seqnum:B 4x lib_seqnum:H "
        "lib_piggyack:H 2x"
    )


@dataclass(frozen=True, kw_only=True)
class NackMcpPacket(Packet):
    """Refuses a pull request."""

    src_endpoint: int = 0
    src_generation: int = 0
    nack_type: int = 0
    src_pull_handle: int = 0
    src_magic: int = 0

    NAME = "nack_mcp"
    PTYPE = 45
    LAYOUT = PacketLayout(NACK + "src_pull_handle:I src_magic:I")
