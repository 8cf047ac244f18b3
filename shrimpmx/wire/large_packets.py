"""Packets of large messages: rendezvous, pull and notify."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shrimpmx.wire.packet_base import (
    MESSAGE,
    NACK,
    TO_ENDPOINT,
    FrameError,
    Layout,
    Packet,
    ToEndpoint,
    fits,
)
from shrimpmx.wire.tables import PULL_BLOCK_FRAMES_MAX, pull_frame_bytes


@dataclass(frozen=True, kw_only=True)
class RndvPacket(ToEndpoint):
    """Announces a large message, which the receiver then pulls."""

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
    LAYOUT = Layout(
        TO_ENDPOINT + "length:H checksum:H " + MESSAGE + "message_length:I rdma_id:B "
        "rdma_seqnum:B rdma_offset:H"
    )


@dataclass(frozen=True, kw_only=True)
class PullRequestPacket(ToEndpoint):
    """Asks for one block of a large message."""

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
    LAYOUT = Layout(
        TO_ENDPOINT + "session:I total_length:I rdma_id:I rdma_seqnum:B 3x rdma_offset:I "
        "src_pull_handle:I src_magic:I first_frame_offset:I block_length:I frame_index:I"
    )

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, mtu: int) -> int:
        full = pull_frame_bytes(mtu)
        block, first = values["block_length"], values["first_frame_offset"]
        if block > full * PULL_BLOCK_FRAMES_MAX or first >= full:
            raise FrameError(
                "bad_datalen",
                f"pull request for {block} bytes from frame offset {first}; at most "
                f"{PULL_BLOCK_FRAMES_MAX} frames of {full} bytes make a block",
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
    LAYOUT = Layout(
        "ptype:B frame_seqnum:B frame_length:H message_offset:I dst_pull_handle:I dst_magic:I"
    )

    def _derived(self) -> dict[str, Any]:
        return {"frame_length": len(self.data)}

    def _payload(self) -> bytes:
        return self.data

    @classmethod
    def _check(cls, values: dict[str, Any], room: int, mtu: int) -> int:
        if values["frame_length"] == 0:
            raise FrameError("bad_datalen", "pull reply without data")
        return fits(cls.NAME, values["frame_length"], pull_frame_bytes(mtu), room)


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
    LAYOUT = Layout(
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
    LAYOUT = Layout(NACK + "src_pull_handle:I src_magic:I")
