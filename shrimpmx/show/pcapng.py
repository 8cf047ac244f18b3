"""A capture for Wireshark and tshark: pcapng (draft-ietf-opsawg-pcapng), times in nanoseconds.

Each end of a link is an interface. What becomes of a frame - a fault of its link, a drop - is its
comment. At the end stands how many frames each end had, and how many are not here.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from shrimpmx.cluster.engine.result import Captured
from shrimpmx.native.files import write_whole
from shrimpmx.native.trace import CapturedFrame
from shrimpmx.shared.control import counter_names

SUFFIX = ".pcapng"
SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6  # types of blocks
MAGIC, ANY_LENGTH = 0x1A2B3C4D, -1
ETHERNET = 1  # LINKTYPE_ETHERNET
# Options. 2, 4 and 5 have a meaning of each block's own.
END, COMMENT, FLAGS, NAME, APPLICATION, RESOLUTION, FCS_BYTES = 0, 1, 2, 2, 4, 9, 13
PASSED, REPLACED = 4, 5
NANOSECONDS = 9  # ten to the power of minus that
INBOUND, OUTBOUND, CRC_ERROR = 1, 2, 1 << 24

FAULTS = {
    "link_lost": "the link loses it",
    "link_corrupted": "the link changes a bit of it",
    "link_duplicated": "the link delivers it twice",
    "link_reordered": "the link holds it back until others have overtaken it",
}
# Kinds of agents that drop frames, by their number in shared/counters.h, and in words.
DROPPERS = {0: ("nic", "the NIC"), 1: ("irq", "the receive handler"), 5: ("switch", "the switch")}


def write_pcapng(captured: Captured, path: Path) -> None:
    """Write what was captured where Wireshark can open it. MachineError as write_whole's."""
    write_whole(path, pcapng(captured), "free some room, or run without --capture")


def pcapng(captured: Captured) -> bytes:
    """What was captured as a file of one section."""
    head = struct.pack("<IHHq", MAGIC, 1, 0, ANY_LENGTH)
    blocks = [_block(SECTION, head, [(APPLICATION, b"shrimpmx")])]
    for name in captured.ends:
        link = struct.pack("<HHI", ETHERNET, 0, captured.snap_bytes)
        own = [(NAME, name.encode()), (RESOLUTION, bytes([NANOSECONDS])), (FCS_BYTES, b"\0")]
        blocks.append(_block(INTERFACE, link, own))
    blocks += [_packet(frame, captured.epoch_ns) for frame in captured.frames]
    last_ns = captured.epoch_ns + max((frame.time_ns for frame in captured.frames), default=0)
    kept = Counter(frame.end for frame in captured.frames)
    for end, passed in enumerate(captured.passed):
        gone = struct.pack("<Q", passed - kept[end])
        counts = [(PASSED, struct.pack("<Q", passed)), (REPLACED, gone)]
        blocks.append(_block(STATISTICS, struct.pack("<III", end, *_time(last_ns)), counts))
    return b"".join(blocks)


def comments(frame: CapturedFrame) -> Iterator[str]:
    """What becomes of a frame, with the counter that counts it; nothing if it passes."""
    for name in frame.faults:
        yield f"{FAULTS[name]} ({name})"
    if frame.dropped is not None:
        kind, counter = frame.dropped
        counted, who = DROPPERS[kind]
        yield f"{who} drops it ({counter_names(counted)[counter]})"


def _packet(frame: CapturedFrame, epoch_ns: int) -> bytes:
    time = _time(epoch_ns + frame.time_ns)
    head = struct.pack("<IIIII", frame.end, *time, len(frame.data), frame.length)
    flags = INBOUND if frame.received else OUTBOUND
    flags |= CRC_ERROR if frame.bad_fcs else 0
    own = [(FLAGS, struct.pack("<I", flags))]
    own += [(COMMENT, words.encode()) for words in comments(frame)]
    return _block(PACKET, head + _padded(frame.data), own)


def _time(time_ns: int) -> tuple[int, int]:
    return time_ns >> 32, time_ns & 0xFFFFFFFF


def _block(kind: int, body: bytes, options: Iterable[tuple[int, bytes]]) -> bytes:
    for option, value in [*options, (END, b"")]:
        body += struct.pack("<HH", option, len(value)) + _padded(value)
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
