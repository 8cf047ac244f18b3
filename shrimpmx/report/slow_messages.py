"""The slowest messages of a trace, stage by stage."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from shrimpmx.cluster.engine.switches import NOT_RECORDED
from shrimpmx.cluster.engine.trace_text import words
from shrimpmx.native.trace import TraceRecord
from shrimpmx.report.cpu_use import CpuUse
from shrimpmx.report.timeline import Seat, Timeline
from shrimpmx.wire.tables import MARK_TYPES

SEQNUM_MASK = 0x3FFF
# The packets that carry the number of their message.
NUMBERED = frozenset(MARK_TYPES[name] for name in ("tiny", "small", "medium", "rndv"))
# The records of packets.
PACKET_KINDS = ("tx_frame", "rx_frame", "dma_complete", "event")
# So many processes are named that had the CPU in a stage (ours).
SHARES_MAX = 3


@dataclass(frozen=True)
class Message:
    """A message from its isend to the end of its receive."""

    sent: TraceRecord
    received: TraceRecord
    source: Seat
    destination: Seat

    @property
    def took_ns(self) -> int:
        """From isend to received."""
        return self.received.time_ns - self.sent.time_ns


def messages_of(timeline: Timeline) -> list[Message]:
    """The messages of which the trace has both ends, in the order of their ends."""
    found: list[Message] = []
    begun: dict[tuple[Seat, Seat, int], deque[TraceRecord]] = defaultdict(deque)
    seats = {(seat.node, seat.endpoint): seat for seat in timeline.seats.values()}
    for record in timeline.records:
        if record.kind not in ("isend", "received"):
            continue
        seat = timeline.seats.get(timeline.name_of(record.agent))
        partner = seats.get((record.a >> 32, record.a >> 16 & 0xFFFF))
        if seat is None or partner is None:
            continue
        ends = (seat, partner) if record.kind == "isend" else (partner, seat)
        key = (*ends, record.a & SEQNUM_MASK)
        if record.kind == "isend":
            begun[key].append(record)
        elif begun[key]:
            found.append(Message(begun[key].popleft(), record, *ends))
    return found


def stages(timeline: Timeline, message: Message) -> list[tuple[str, TraceRecord]]:
    """What happened to a message, in order of time: only stages that the trace has."""
    times = [record.time_ns for record in timeline.records]
    start = bisect_left(times, message.sent.time_ns)
    end = bisect_left(times, message.received.time_ns + 1)
    within = timeline.records[start:end]
    packets = [record for record in within if _is_of(message, record)]
    there = message.destination.node
    found = [("sent", message.sent)]
    found += _first("on the line", packets, "tx_frame")
    found += _last("arrived", packets, "rx_frame")
    found += _last("DMA complete", packets, "dma_complete")
    handled = _last("handled", packets, "event")
    if handled:
        of_node = [
            record
            for record in within
            if timeline.node_of(record.agent) == there and record.time_ns <= handled[0][1].time_ns
        ]
        found += _last("interrupt raised", of_node, "irq_raised")
        by = [record for record in of_node if record.agent == handled[0][1].agent]
        found += _last("interrupt delivered", by, "interrupt")
        # Its own stage where the handler could not begin at once.
        found += [
            poll
            for poll in _last("poll begins", by, "poll_begin")
            if poll[1].time_ns > found[-1][1].time_ns
        ]
    found += handled
    rank = [record for record in within if record.agent == message.received.agent]
    found += _last("rank awake", rank, "wait_end")
    found += _last("rendezvous matched", rank, "rndv_matched")
    found += _last("pull starts", rank, "pull_start")
    found += _pulled(timeline, message, within)
    found.append(("received", message.received))
    return sorted(found, key=lambda stage: stage[1].time_ns)


def _pulled(
    timeline: Timeline, message: Message, within: Sequence[TraceRecord]
) -> list[tuple[str, TraceRecord]]:
    """The way of a large message's data; nothing if its node pulled others at the same time, since
    a reply does not tell which message it is of.
    """
    here, there = message.source.node, message.destination.node
    pulls = [
        record
        for record in within
        if record.kind in ("pull_start", "pull_done") and timeline.node_of(record.agent) == there
    ]
    if [record.kind for record in pulls] != ["pull_start", "pull_done"]:
        return []
    asked = [record for record in within if _is_between(record, "pull-request", there, here)]
    sent = [record for record in within if _is_between(record, "pull-reply", here, there)]
    return [
        *_first("request handled", asked, "event"),
        *_first("data on the line", sent, "tx_frame"),
        *_last("data arrived", sent, "rx_frame"),
        *_last("pull done", pulls, "pull_done"),
    ]


def _is_between(record: TraceRecord, packet: str, source: int, destination: int) -> bool:
    return (
        record.kind in PACKET_KINDS
        and record.a & 0x7F == MARK_TYPES[packet]
        and record.a >> 32 & 0xFFFF == source
        and record.a >> 48 == destination
    )


def _is_of(message: Message, record: TraceRecord) -> bool:
    return (
        record.kind in PACKET_KINDS
        and record.a & 0x7F in NUMBERED
        and record.a >> 16 & SEQNUM_MASK == message.sent.a & SEQNUM_MASK
        and record.a >> 32 & 0xFFFF == message.source.node
        and record.a >> 48 == message.destination.node
    )


def _last(name: str, records: Sequence[TraceRecord], kind: str) -> list[tuple[str, TraceRecord]]:
    return [(name, record) for record in records if record.kind == kind][-1:]


def _first(name: str, records: Sequence[TraceRecord], kind: str) -> list[tuple[str, TraceRecord]]:
    return [(name, record) for record in records if record.kind == kind][:1]


def slowest_text(timeline: Timeline, count: int) -> str:
    """The slowest messages, the slowest one first, each with its stages; "" if there are none."""
    found = sorted(messages_of(timeline), key=lambda message: message.sent.time_ns)
    of_pair: dict[tuple[Seat, Seat], list[Message]] = defaultdict(list)
    for message in found:
        of_pair[message.source, message.destination].append(message)
    use = CpuUse(timeline.switches)
    return "\n\n".join(
        _text(timeline, use, message, of_pair[message.source, message.destination])
        for message in sorted(found, key=lambda message: -message.took_ns)[:count]
    )


def untold_by(timeline: Timeline) -> list[str]:
    """What a trace lacks, a sentence each; none if it is whole."""
    told, switches = [], timeline.switches
    lacking = sorted(agent for agent, count in timeline.overwritten.items() if count)
    if lacking:
        names = ", ".join(timeline.name_of(agent) for agent in lacking)
        most = max(timeline.overwritten.values())
        told.append(
            f"the trace has the end of its run: newer records have overwritten the first ones of "
            f"{names}, {most} at most; fewer iterations leave all"
        )
    if switches.absent:
        told.append(f"the trace does not tell which process had a CPU meanwhile: {switches.absent}")
    if switches.lost:
        told.append(
            f"the kernel lost {switches.lost} records of context switches, for want of room: which "
            f"process had the CPU then is {NOT_RECORDED}"
        )
    return told


def _text(timeline: Timeline, use: CpuUse, message: Message, of_pair: Sequence[Message]) -> str:
    """Its stages; `of_pair` are all messages from its rank to the other, as they were sent: which
    one it is, a whole trace tells.
    """
    sent, received = message.sent, message.received
    is_whole = not any(timeline.overwritten.values())
    place = f"number {of_pair.index(message) + 1} of {len(of_pair)}, " if is_whole else ""
    lines = [
        f"{timeline.name_of(sent.agent)} to {timeline.name_of(received.agent)}, "
        f"{place}{received.b} bytes: {message.took_ns / 1000:.3f} us",
        f"{'us':>9} {'since':>9}  {'stage':19} {'agent':10} record",
    ]
    before = sent.time_ns
    for name, record in stages(timeline, message):
        at, since = record.time_ns - sent.time_ns, record.time_ns - before
        agent, said = timeline.agent_name(record), words(record)
        lines.append(f"{at / 1000:9.3f} {since / 1000:9.3f}  {name:19} {agent:10} {said}")
        lines += _meanwhile(timeline, use, agent, before, record.time_ns)
        before = record.time_ns
    return "\n".join(lines)


def _meanwhile(
    timeline: Timeline, use: CpuUse, agent: str, start_ns: int, end_ns: int
) -> list[str]:
    """A line if another process than that of the agent had its CPU for some of the time."""
    cpu = use.cpu_of(agent, end_ns)
    if cpu is None:
        return []
    shares = use.shares(cpu, start_ns, end_ns)
    if shares.keys() <= {timeline.switches.process_of[agent]}:
        return []
    told = [f"{name} {share_ns / 1000:.3f}" for name, share_ns in shares.items()]
    if len(told) > SHARES_MAX:
        rest_ns = sum(list(shares.values())[SHARES_MAX:])
        told[SHARES_MAX:] = [f"{len(told) - SHARES_MAX} more {rest_ns / 1000:.3f}"]
    return [f"{'':11}CPU {cpu}: {', '.join(told)}"]
