"""Frames that no library would send: every type, with fields and damage drawn from a seed."""

from __future__ import annotations

import random
import struct

from support.host_node import PEER, SESSION
from support.packets import PACKET_TYPES, Packet, node_address

MARK = 0x80
PULL_MAGIC = 0x21071980
HOST_MAGIC = 0x13052008
_WIDTHS = {"B": 1, "H": 2, "I": 4, "Q": 8}
_LENGTHS = {"length", "frag_length", "frame_length"}
# Counters of a handler that are called as those of packets are, and are sums.
SUMS = ("recv_other_bytes", "recv_other_delay_ns")


def head(draw: random.Random) -> bytes:
    """Mostly that of a neighbour's frame for node 0."""
    source, index, kind = node_address(PEER), PEER, 0x86DF
    if draw.random() < 0.15:
        source = draw.choice((node_address(2), bytes(6), draw.randbytes(6)))
        index = draw.choice((0, 2, 3, 0xFFFF))
        kind = draw.choice((0x86DF, 0x86DF, 0x0800))
    return node_address(0) + source + struct.pack(">HH", kind, index)


def _value(draw: random.Random, name: str, width: int, data_bytes: int) -> int:
    if name in _LENGTHS and draw.random() < 0.8:
        return min(data_bytes, (1 << 8 * width) - 1)
    likely = {
        "session": SESSION,
        "magic": HOST_MAGIC,
        "src_magic": PULL_MAGIC ^ draw.randrange(3),
        "dst_magic": PULL_MAGIC ^ draw.randrange(3),
        "type": 0x55,
        "is_reply": draw.randrange(2),
        "message_length": draw.choice((data_bytes, 3000, 100_000)),
        "frag_seqnum": draw.randrange(3),
    }
    if name in likely and draw.random() < 0.8:
        return likely[name] & (1 << 8 * width) - 1
    if name.endswith("endpoint") and draw.random() < 0.8:
        return draw.randrange(3)
    top = (1 << 8 * width) - 1
    return draw.choice((0, 1, 2, draw.randrange(256), top, top - 1, draw.randrange(top + 1)))


def structured(draw: random.Random, mtu: int, compatible: bool) -> bytes:
    """A frame whose fields have their places, and values that may be anything."""
    kind: type[Packet] = draw.choice(list(PACKET_TYPES.values()))
    layout = kind.layout(compatible)
    room = mtu - 16 - layout.packer.size
    data = draw.randbytes(draw.choice((0, 0, 16, 32, 100, 128, 1024, room, draw.randrange(room))))
    if kind.NAME in ("connect", "truc") and draw.random() < 0.8:
        data = bytes(16)
    letters = [part for part in layout.packer.format.lstrip(">") if part in _WIDTHS]
    values = [
        _value(draw, name, _WIDTHS[letter], len(data))
        for name, letter in zip(layout.names[1:], letters[1:], strict=True)
    ]
    ptype = kind.PTYPE | (MARK if draw.random() < 0.3 else 0)
    return (head(draw) + layout.packer.pack(ptype, *values) + data).ljust(60, b"\0")


def other_protocol(draw: random.Random, mtu: int) -> bytes:
    """A packet of the other protocol, of any length, whose header may say another one."""
    length = draw.choice((60, 61, 100, 1000, mtu, draw.randrange(60, mtu)))
    total = draw.choice((length - 14, length - 14, 24, 23, length - 13, draw.randrange(1 << 16)))
    version, protocol = draw.choice((0x45, 0x45, 0x45, 0x46)), draw.choice((253, 253, 254, 6))
    fields = struct.pack(">BBHIBB", version, 0, total, draw.randrange(1 << 32), 64, protocol)
    head = node_address(0) + node_address(PEER) + b"\x08\x00"
    return head + fields + draw.randbytes(length - 24)


def damaged(draw: random.Random, frame: bytes) -> bytes:
    """The frame with some bytes changed, or its end cut, lengthened, or noise."""
    data = bytearray(frame.ljust(60, b"\0"))
    form = draw.randrange(4)
    if form == 0:
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(12, len(data))] = draw.choice((0, 0x7F, 0xFF, draw.randrange(256)))
    elif form == 1:
        del data[draw.randrange(len(data)) :]
    elif form == 2:
        data += draw.randbytes(draw.randrange(1, 200))
    else:
        start = draw.randrange(16, 60)
        data[start:] = draw.randbytes(len(data) - start)
    return bytes(data)


def hostile_frame(draw: random.Random, mtu: int = 1500, compatible: bool = False) -> bytes:
    """Half of them as structured() or other_protocol() makes them, half damaged besides."""
    other = draw.random() < 0.05
    frame = other_protocol(draw, mtu) if other else structured(draw, mtu, compatible)
    return frame if draw.random() < 0.5 else damaged(draw, frame)
