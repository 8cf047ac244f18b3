"""The slowest messages of a trace, stage by stage."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from shrimpmx.cluster.engine.mpi_calls import MpiCall
from shrimpmx.cluster.engine.switches import NOT_RECORDED
from shrimpmx.cluster.engine.trace_text import BACKLOG, MARK, queue_of, words
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.cpu_use import CpuUse
from shrimpmx.show.flights import Flight
from shrimpmx.show.timeline import Seat, Timeline
from shrimpmx.wire.tables import MARK_TYPES

SEQNUM_MASK = 0x3FFF
# The packets that carry the number of their message.
NUMBERED = frozenset(MARK_TYPES[name] for name in ("tiny", "small", "medium", "rndv"))
# What tells of a handler's way to a packet, and of a rank's.
WAY_KINDS = ("irq_raised", "interrupt", "poll_begin", "wait_end")
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
    begun: dict[tuple[int, ...], deque[TraceRecord]] = defaultdict(deque)
    seats = {(seat.node, seat.endpoint): seat for seat in timeline.seats.values()}
    for record in timeline.records:
        if record.kind not in ("isend", "received"):
            continue
        seat = timeline.seats.get(timeline.name_of(record.agent))
        partner = seats.get((record.a >> 32, record.a >> 16 & 0xFFFF))
        if seat is None or partner is None:
            continue
        source, destination = (seat, partner) if record.kind == "isend" else (partner, seat)
        key = (
            *(source.node, source.endpoint, destination.node, destination.endpoint),
            record.a & SEQNUM_MASK,
        )
        if record.kind == "isend":
            begun[key].append(record)
        elif begun[key]:
            found.append(Message(begun[key].popleft(), record, source, destination))
    return found


class Stages:
    """What happened to the messages of a timeline, stage by stage. `flights`: all its packets."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._times = [record.time_ns for record in timeline.records]
        self._of_message: dict[tuple[int, ...], list[Flight]] = defaultdict(list)
        self._steps: dict[tuple[tuple[int, int, int], str], list[TraceRecord]] = {}
        self.flights = timeline.flights()
        for flight in self.flights:
            word = flight.word
            if word & 0x7F in NUMBERED:
                nodes, number = (word >> 32 & 0xFFFF, word >> 48), word >> 16 & SEQNUM_MASK
                self._of_message[*nodes, flight.ends, number].append(flight)
        self._pulls: dict[int, list[TraceRecord]] = defaultdict(list)
        self._told: dict[str, list[TraceRecord]] = {kind: [] for kind in WAY_KINDS}
        for record in timeline.records:
            if record.kind in ("pull_start", "pull_done"):
                self._pulls[timeline.node_of(record.agent)].append(record)
            elif record.kind in self._told:
                self._told[record.kind].append(record)

    @cached_property
    def _of_way(self) -> dict[tuple[int, int, int], list[Flight]]:
        found: dict[tuple[int, int, int], list[Flight]] = defaultdict(list)
        for flight in self.flights:
            found[flight.word & 0x7F, flight.source, flight.destination].append(flight)
        return found

    def packets_of(self, message: Message) -> list[Flight]:
        """The packets that carried a message, or told of it, while that was under way."""
        source, destination = message.source, message.destination
        ends = destination.endpoint | source.endpoint << 8
        number = message.sent.a & SEQNUM_MASK
        return [
            flight
            for flight in self._of_message[source.node, destination.node, ends, number]
            if message.sent.time_ns <= flight.first.time_ns <= message.received.time_ns
        ]

    def in_memory(self, message: Message) -> TraceRecord | None:
        """When the packet of a message that was handled last was in host memory."""
        last = _last_handled(self.packets_of(message), message.received.time_ns)
        return last.in_memory if last else None

    def of(self, message: Message) -> list[tuple[str, TraceRecord]]:
        """What happened to a message, in order of time: only stages that the trace has."""
        since_ns, end_ns = message.sent.time_ns, message.received.time_ns
        own = self.packets_of(message)
        found = [("sent", message.sent)]
        found += _first("on the line", [flight.sent for flight in own if flight.sent])
        last = _last_handled(own, end_ns)
        if last:
            found += _named("arrived", last.arrived)
            found += _named("DMA complete", last.in_memory)
            found += self._interrupt(last, since_ns)
            found += _named("handled", last.handled)
            since_ns = found[-1][1].time_ns
        rank = message.received.agent
        awake = self._latest("wait_end", since_ns, end_ns, lambda record: record.agent == rank)
        found += _named("rank awake", awake)
        if any(flight.word & 0x7F == MARK_TYPES["rndv"] for flight in own):
            within = self._between(since_ns, end_ns)
            own_records = [record for record in within if record.agent == rank]
            matched = [record for record in own_records if record.kind == "rndv_matched"]
            found += _first(
                "rendezvous matched", [each for each in matched if each.a == message.received.a]
            )
            found += self._pulled(message, found[-1][1].time_ns)
        found.append(("received", message.received))
        return sorted(found, key=lambda stage: stage[1].time_ns)

    def _interrupt(self, flight: Flight, since_ns: int) -> list[tuple[str, TraceRecord]]:
        """The interrupt after which a handler took a packet: of its queue, or of the backlog where
        another core handed it on. `since_ns`: no record is looked for before.
        """
        assert flight.handled is not None
        handler, end_ns = flight.handled.agent, handled_ns(flight)
        queue = queue_of(flight.in_memory.b) if flight.in_memory else 0
        rings = (queue, BACKLOG)
        delivered = self._latest(
            *("interrupt", since_ns, end_ns),
            lambda record: record.agent == handler and any(record.a >> ring & 1 for ring in rings),
        )
        begun = self._latest(
            *("poll_begin", since_ns, end_ns),
            lambda record: record.agent == handler and record.a in rings,
        )
        begin_ns, found = flight.first.time_ns, []
        if delivered:
            begin_ns = delivered.time_ns
            raised = self._latest(
                *("irq_raised", since_ns, begin_ns),
                lambda record: (
                    record.a == queue and self._timeline.node_of(record.agent) == flight.destination
                ),
            )
            found = [*_named("interrupt raised", raised), ("interrupt delivered", delivered)]
        # Its own stage where the handler could not begin at once.
        if begun and begun.time_ns > begin_ns:
            found.append(("poll begins", begun))
        return found

    def _latest(
        self, kind: str, begin_ns: int, end_ns: int, is_meant: Callable[[TraceRecord], bool]
    ) -> TraceRecord | None:
        """The last record of one of those kinds within a time that is meant."""
        told = self._told[kind]
        for at in range(bisect_right(told, end_ns, key=_time_ns) - 1, -1, -1):
            if told[at].time_ns < begin_ns:
                break
            if is_meant(told[at]):
                return told[at]
        return None

    def _pulled(self, message: Message, since_ns: int) -> list[tuple[str, TraceRecord]]:
        """The way of a large message's data, from its pull's start on; that alone if its node
        pulled others at the same time, since a reply does not tell which message it is of.
        """
        here, there = message.source.node, message.destination.node
        pulls = self._pulls[there]
        pulls = pulls[: bisect_right(pulls, message.received.time_ns, key=_time_ns)]
        own = pulls[bisect_left(pulls, since_ns, key=_time_ns) :]
        started = [each for each in own if each.kind == "pull_start"]
        found = _first(
            "pull starts", [each for each in started if each.agent == message.received.agent]
        )
        if [each.kind for each in own] != ["pull_start", "pull_done"] or len(pulls) % 2:
            return found
        begin_ns, end_ns = own[0].time_ns, own[1].time_ns
        asked = MARK_TYPES["pull-request"], there, here
        data = MARK_TYPES["pull-reply"], here, there
        for name, way, step, choose in (
            ("request handled", asked, "handled", _first),
            ("data on the line", data, "sent", _first),
            ("data arrived", data, "arrived", _last),
        ):
            records = self._records_of_way(way, step)
            begin = bisect_left(records, begin_ns, key=_time_ns)
            end = bisect_right(records, end_ns, key=_time_ns)
            found += choose(name, records[begin:end])
        return [*found, ("pull done", own[1])]

    def _records_of_way(self, way: tuple[int, int, int], step: str) -> list[TraceRecord]:
        """The records of a step of all packets of one type between two nodes, in order of time."""
        if (way, step) not in self._steps:
            records = (getattr(flight, step) for flight in self._of_way[way])
            self._steps[way, step] = sorted(filter(None, records))
        return self._steps[way, step]

    def _between(self, begin_ns: int, end_ns: int) -> Sequence[TraceRecord]:
        begin, end = bisect_left(self._times, begin_ns), bisect_right(self._times, end_ns)
        return self._timeline.records[begin:end]


def _time_ns(record: TraceRecord) -> int:
    return record.time_ns


def _last_handled(packets: Sequence[Flight], end_ns: int) -> Flight | None:
    """Of packets that were handled by then the last one."""
    handled = [each for each in packets if each.handled and each.handled.time_ns <= end_ns]
    if len(handled) < 2:
        return handled[0] if handled else None
    return max(first_copies(handled), key=handled_ns)


def first_copies(handled: Sequence[Flight]) -> list[Flight]:
    """Of the copies of each packet that was sent again, the one handled first: the rank takes that
    one and drops the others.
    """
    found: dict[int, Flight] = {}
    for flight in sorted(handled, key=handled_ns):
        found.setdefault(flight.word & ~MARK, flight)
    return list(found.values())


def handled_ns(flight: Flight) -> int:
    """When a packet that was handled was."""
    assert flight.handled is not None
    return flight.handled.time_ns


def _named(name: str, record: TraceRecord | None) -> list[tuple[str, TraceRecord]]:
    return [] if record is None else [(name, record)]


def _last(name: str, records: Sequence[TraceRecord]) -> list[tuple[str, TraceRecord]]:
    return [(name, record) for record in records[-1:]]


def _first(name: str, records: Sequence[TraceRecord]) -> list[tuple[str, TraceRecord]]:
    return [(name, record) for record in records[:1]]


def slowest_text(timeline: Timeline, count: int) -> str:
    """The slowest messages, the slowest one first, each with its stages; "" if there are none."""
    found = sorted(messages_of(timeline), key=lambda message: message.sent.time_ns)
    of_pair: dict[tuple[Seat, Seat], list[Message]] = defaultdict(list)
    for message in found:
        of_pair[message.source, message.destination].append(message)
    use, stages = CpuUse(timeline.switches), Stages(timeline)
    calls = _calls_of_records(timeline)
    return "\n\n".join(
        _text(timeline, use, message, of_pair[message.source, message.destination], stages, calls)
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
            "the trace has the end of its run only: newer records have overwritten the first "
            f"ones of {names}, {most} at most; fewer iterations keep all"
        )
    if switches.absent:
        told.append(f"the trace lacks the processes on the CPUs: {switches.absent}")
    if switches.lost:
        told.append(
            f"the kernel lost {switches.lost} records of context switches, for want of room: the "
            f"process on the CPU then is {NOT_RECORDED}"
        )
    return told


def _text(
    timeline: Timeline,
    use: CpuUse,
    message: Message,
    of_pair: Sequence[Message],
    stages: Stages,
    calls: Mapping[int, MpiCall],
) -> str:
    """Its stages, and the `calls` of its ends; `of_pair` are all messages from its rank to the
    other, as they were sent: which one it is, a whole trace tells.
    """
    sent, received = message.sent, message.received
    is_whole = not any(timeline.overwritten.values())
    place = f"number {of_pair.index(message) + 1} of {len(of_pair)}, " if is_whole else ""
    ends = (("sent", calls.get(id(sent))), ("received", calls.get(id(received))))
    lines = [
        f"{timeline.name_of(sent.agent)} to {timeline.name_of(received.agent)}, "
        f"{place}{received.b} bytes: {message.took_ns / 1000:.3f} us",
        *(f"{what} in {call.words}" for what, call in ends if call is not None),
        f"{'us':>9} {'since':>9}  {'stage':19} {'agent':10} record",
    ]
    before = sent.time_ns
    for name, record in stages.of(message):
        at, since = record.time_ns - sent.time_ns, record.time_ns - before
        agent, said = timeline.agent_name(record), words(record)
        lines.append(f"{at / 1000:9.3f} {since / 1000:9.3f}  {name:19} {agent:10} {said}")
        lines += _meanwhile(timeline, use, agent, before, record.time_ns)
        before = record.time_ns
    return "\n".join(lines)


def _calls_of_records(timeline: Timeline) -> dict[int, MpiCall]:
    """The call of MPI in which a rank made a record, by the record's identity; of calls within
    others the innermost.
    """
    own: dict[str, list[TraceRecord]] = defaultdict(list)
    for record in timeline.records:
        own[timeline.agent_name(record)].append(record)
    lost = {timeline.name_of(agent): count for agent, count in timeline.overwritten.items()}
    found = {}
    for call in sorted(timeline.calls, key=lambda call: (call.begin_record, -call.end_record)):
        first, end = (
            max(0, each - lost.get(call.rank, 0)) for each in (call.begin_record, call.end_record)
        )
        found.update({id(record): call for record in own[call.rank][first:end]})
    return found


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
