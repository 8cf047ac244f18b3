"""Packets on their way, put together from what NICs and handlers recorded of them.

No record names one packet: equal ones, such as a resent one, have equal records. But a link, a DMA
engine and a ring keep the order of their packets, so a later packet shows the loss of another.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shrimpmx.cluster.engine.trace_text import MARK, SHORT_NAMES, bytes_of, ends_of
from shrimpmx.native.trace import TraceRecord
from shrimpmx.shared.control import counter_names
from shrimpmx.wire.tables import PACKET_NAMES, PULL_REPLY_OVERHEAD_BYTES, WireGeometry

# Records of a packet, in the order of its way.
SENT, ARRIVED, IN_MEMORY, HANDLED = PACKET_WAY = ("tx_frame", "rx_frame", "dma_complete", "event")
# A drop that the sender's NIC records of the packet that it has sent last.
LOST = counter_names("nic").index("link_lost")
# What becomes of packets, in the order of what several agents record at one instant.
_ORDER = {"drop": 0} | {kind: place for place, kind in enumerate(PACKET_WAY)}


_Key = tuple[int, int]  # of equal packets, equal


@dataclass
class Flight:
    """A packet on its way. `first` is the first record of it; a missing one is None."""

    first: TraceRecord
    sent: TraceRecord | None = None
    arrived: TraceRecord | None = None
    in_memory: TraceRecord | None = None
    handled: TraceRecord | None = None

    @property
    def word(self) -> int:
        """The packet in 64 bits, as wire/packet_word.pxd has it."""
        return self.first.a

    @property
    def ends(self) -> int:
        """Its endpoints, as ends_of()."""
        return ends_of(self.first.b)

    @property
    def source(self) -> int:
        """The node that sent it."""
        return self.word >> 32 & 0xFFFF

    @property
    def destination(self) -> int:
        """The node that it is for."""
        return self.word >> 48

    @property
    def name(self) -> str:
        """What kind of packet it is."""
        name = PACKET_NAMES.get(self.word & 0x7F, f"type {self.word & 0x7F}")
        return SHORT_NAMES.get(name, name)

    def words(self, geometry: WireGeometry) -> str:
        """Its type, its part of the message, and whether it is marked."""
        fragment, seqnum = self.word >> 8 & 0xFF, self.word >> 16 & 0xFFFF
        text = self.name
        if text == "pull request":
            block = -(-seqnum // geometry.pull_block_frames)
            text += f", block {block} (from frame {seqnum} on)"
        elif text == "pull reply":
            first = fragment * geometry.pull_frame_bytes
            last = first + bytes_of(self.first.b) - PULL_REPLY_OVERHEAD_BYTES - 1
            block = fragment // geometry.pull_block_frames
            text += f" {fragment} (block {block}, bytes {first}..{last})"
        elif text == "medium":
            text += f" {seqnum}.{fragment}"
        elif text == "ack":
            text += f", awaiting {seqnum}"
        elif text not in ("connect", "nack_mcp"):
            text += f" {seqnum}"
        return text + (", marked" if self.word & MARK else "")


class _Passage:
    """What keeps the order of the packets that pass it. One that others have overtaken is lost, or
    held back on the way, where it is found only if none in its turn is equal.
    """

    def __init__(self) -> None:
        self._inside: deque[tuple[_Key, Flight]] = deque()
        self._overtaken: dict[_Key, deque[Flight]] = defaultdict(deque)

    def enter(self, key: _Key, flight: Flight) -> None:
        self._inside.append((key, flight))

    def lose_last(self) -> None:
        self._inside.pop()

    def leave(self, key: _Key) -> Flight | None:
        """The one of that key that leaves it; None if the trace does not say that it came."""
        inside = self._inside
        if inside and inside[0][0] == key:
            return inside.popleft()[1]
        if any(other == key for other, _ in inside):
            while (first := inside.popleft())[0] != key:
                self._overtaken[first[0]].append(first[1])
            return first[1]
        overtaken = self._overtaken.get(key)
        return overtaken.popleft() if overtaken else None


def flights_of(records: Sequence[TraceRecord], node_of: Callable[[int], int]) -> list[Flight]:
    """Every packet of a trace, with what became of it, in order; `node_of` an agent's number."""
    flights: list[Flight] = []
    links: dict[tuple[int, int], _Passage] = defaultdict(_Passage)
    engines: dict[int, _Passage] = defaultdict(_Passage)
    rings: dict[int, _Passage] = defaultdict(_Passage)
    last_of: dict[int, _Passage] = {}  # of an agent: the link of the packet that it sent last

    def leaving(passage: _Passage, key: _Key, record: TraceRecord) -> Flight:
        flight = passage.leave(key)
        if flight is None:
            flight = Flight(record)
            flights.append(flight)
        return flight

    way = [
        (record.time_ns, _ORDER[record.kind], number)
        for number, record in enumerate(records)
        if record.kind in _ORDER
    ]
    for _, _, number in sorted(way):
        record = records[number]
        kind, agent = record.kind, record.agent
        key = record.a, ends_of(record.b)
        if kind == SENT:
            flights.append(Flight(record, sent=record))
            link = last_of[agent] = links[record.a >> 32 & 0xFFFF, record.a >> 48]
            link.enter(key, flights[-1])
        elif kind == ARRIVED:
            flight = leaving(links[record.a >> 32 & 0xFFFF, record.a >> 48], key, record)
            flight.arrived = record
            engines[node_of(agent)].enter(key, flight)
        elif kind == IN_MEMORY:
            flight = leaving(engines[node_of(agent)], key, record)
            flight.in_memory = record
            rings[node_of(agent)].enter(key, flight)
        elif kind == HANDLED:
            leaving(rings[node_of(agent)], key, record).handled = record
        elif record.a == LOST and agent in last_of:
            last_of.pop(agent).lose_last()
    return flights
