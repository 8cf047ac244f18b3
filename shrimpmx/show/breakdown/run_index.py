"""What a trace tells of ranks, handlers and interrupts, where it can be looked up by time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from shrimpmx.cluster.engine.trace_text import queue_of
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.flights import Flight
from shrimpmx.show.slow_messages import NUMBERED, SEQNUM_MASK, handled_ns
from shrimpmx.show.timeline import Seat, Timeline
from shrimpmx.wire.tables import MARK_TYPES

PULL_REQUEST, PULL_REPLY = MARK_TYPES["pull-request"], MARK_TYPES["pull-reply"]
READY = 2
# So many deliveries that are too early for a wait end the search for its cause: those of ranks of
# the same node overlap (ours).
MISSES = 8

Place = tuple[int, int]  # node and endpoint


@dataclass(frozen=True)
class Wait:
    """A rank's wait; `ready`: for something that came, not until a deadline only."""

    begin_ns: int
    end_ns: int
    ready: bool


@dataclass(frozen=True)
class Delivery:
    """What a rank finds in its event rings, from some time between two on: the event of a packet,
    or what a rank of its node has done.
    """

    early_ns: int
    late_ns: int
    flight: Flight | None = None
    sender: str = ""


@dataclass
class RankRecords:
    """All of one rank, by time; `waits` do not overlap, `pulls_done` are among `deliveries`."""

    seat: Seat
    records: list[TraceRecord] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    pulls_done: list[Delivery] = field(default_factory=list)
    _of_kind: dict[str, list[TraceRecord]] = field(default_factory=dict)

    def of_kind(self, kind: str) -> list[TraceRecord]:
        """Its records of one kind, by time."""
        if kind not in self._of_kind:
            self._of_kind[kind] = [record for record in self.records if record.kind == kind]
        return self._of_kind[kind]

    def after(self, time_ns: int) -> int:
        """The number of its first record later than that."""
        return bisect_right(self.records, time_ns, key=lambda record: record.time_ns)

    def last_wait(self, time_ns: int) -> int:
        """The number of its last wait that began by then; -1 if there is none."""
        return bisect_right(self.waits, time_ns, key=lambda wait: wait.begin_ns) - 1

    def ended_wait(self, time_ns: int) -> int:
        """The number of its last wait that was over by then; -1 if there is none."""
        return bisect_right(self.waits, time_ns, key=lambda wait: wait.end_ns) - 1

    def cause(self, number: int) -> Delivery | None:
        """What ended a wait: the first thing that came meanwhile, else the last one before it."""
        wait = self.waits[number]
        if not wait.ready:
            return None
        # What was there by then has ended the wait before.
        since_ns = self.waits[number - 1].end_ns if number else -1
        index = bisect_right(self.deliveries, wait.end_ns, key=lambda each: each.early_ns)
        found, misses = None, 0
        while index and misses < MISSES:
            index -= 1
            each = self.deliveries[index]
            if each.late_ns <= since_ns:
                misses += 1
            elif found is None or each.late_ns >= wait.begin_ns:
                found = each
        return found


class RunIndex:
    """Answers about a whole run; times are ns of its clock."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.flights = timeline.flights()
        self.ranks = {name: RankRecords(seat) for name, seat in timeline.seats.items()}
        self.name_at = {(s.node, s.endpoint): name for name, s in timeline.seats.items()}
        self.polls: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.entries: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._begun: dict[int, list[int]] = defaultdict(list)
        self._taken: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._raised: dict[Place, list[int]] = defaultdict(list)
        self._wakes: dict[int, list[int]] = defaultdict(list)
        self._asked: dict[Place, list[TraceRecord]] = defaultdict(list)
        self._answered: dict[Place, list[Flight]] = defaultdict(list)
        self._replies: dict[int, list[Flight]] = defaultdict(list)
        self._isends: dict[tuple[Place, Place, int], list[TraceRecord]] = defaultdict(list)
        self._resends: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.carriers: dict[tuple[Place, Place, int], list[Flight]] = defaultdict(list)
        for record in timeline.records:
            self._note(record)
        for rank in self.ranks.values():
            rank.waits = _waits(rank.records)
        self._note_flights()
        self._note_pulls()
        self._note_neighbours()
        for rank in self.ranks.values():
            rank.deliveries.sort(key=lambda each: each.early_ns)

    # -- building ------------------------------------------------------------

    def _note(self, record: TraceRecord) -> None:
        agent, time_ns = record.agent, record.time_ns
        name = self.timeline.name_of(agent)
        if name in self.ranks:
            self.ranks[name].records.append(record)
        if record.kind == "isend" and name in self.ranks:
            seat = self.ranks[name].seat
            key = ((seat.node, seat.endpoint), place_of(record), record.a & SEQNUM_MASK)
            self._isends[key].append(record)
        elif record.kind == "resend":
            self._resends[agent, record.a].append(time_ns)
        elif record.kind == "poll_begin":
            self._begun[agent].append(time_ns)
            if self._taken[agent] and self._taken[agent][-1][0] > _end(self.entries[agent]):
                self.entries[agent].append((self._taken[agent][-1][0], time_ns))
        elif record.kind == "poll_end" and self._begun[agent]:
            begin_ns = self._begun[agent][-1]
            self.polls[agent].append((begin_ns, time_ns))
        elif record.kind == "interrupt":
            self._taken[agent].append((time_ns, record.a))
        elif record.kind == "irq_raised":
            self._raised[self.timeline.node_of(agent), record.a].append(time_ns)
        elif record.kind == "rank_wake":
            self._wakes[agent].append(time_ns)
        elif record.kind == "pull_request":
            self._asked[self.timeline.node_of(agent), record.a & 0xFFFF].append(record)

    def _note_flights(self) -> None:
        for flight in self.flights:
            kind = flight.word & 0x7F
            if kind in NUMBERED:
                key = (source_of(flight), sink_of(flight), flight.word >> 16 & SEQNUM_MASK)
                self.carriers[key].append(flight)
            if flight.handled is None:
                continue
            if kind == PULL_REQUEST:
                self._answered[flight.destination, flight.source].append(flight)
            elif kind == PULL_REPLY:
                self._replies[flight.handled.agent].append(flight)
            elif sink := self.name_at.get(sink_of(flight)):
                at_ns = flight.handled.time_ns
                self.ranks[sink].deliveries.append(Delivery(at_ns, at_ns, flight))
        for flights in (*self._answered.values(), *self._replies.values()):
            flights.sort(key=handled_ns)

    def _note_pulls(self) -> None:
        """The end of a pull tells its rank: that of the reply that it ends with."""
        for record in self.timeline.records:
            if record.kind != "pull_done":
                continue
            flight = self.last_reply(record.agent, record.time_ns)
            if flight is None:
                node = self.timeline.node_of(record.agent)
                near = [each for agent, each in self._replies.items() if self._is_at(agent, node)]
                last = [_before(some, record.time_ns) for some in near]
                flight = max(filter(None, last), key=handled_ns, default=None)
            if flight is not None and (sink := self.name_at.get(sink_of(flight))):
                done = Delivery(record.time_ns, record.time_ns, flight)
                self.ranks[sink].deliveries.append(done)
                self.ranks[sink].pulls_done.append(done)

    def _is_at(self, agent: int, node: int) -> bool:
        return self.timeline.node_of(agent) == node

    def _note_neighbours(self) -> None:
        """Between ranks of one node the sender acts as handler: by its next record it has."""
        for name, rank in self.ranks.items():
            matched: set[int] = set()
            for number, record in enumerate(rank.records):
                if record.kind == "rndv_matched":
                    matched.add(record.a)
                tells = record.kind in ("isend", "ack_sent") or (
                    record.kind == "received" and record.a in matched
                )
                node, endpoint = place_of(record)
                partner = self.name_at.get((node, endpoint)) if tells else None
                if partner is None or node != rank.seat.node:
                    continue
                behind = rank.records[number + 1 : number + 2]
                late_ns = behind[0].time_ns if behind else record.time_ns
                told = Delivery(record.time_ns, late_ns, None, name)
                self.ranks[partner].deliveries.append(told)

    # -- asking ------------------------------------------------------------

    def poll_begin(self, agent: int, time_ns: int) -> int | None:
        """When a handler's poll began that it was in, or had ended last."""
        return _last(self._begun[agent], time_ns)

    def poll_over(self, agent: int, time_ns: int) -> int:
        """When a handler had told its ranks what it found: their wake-up, or the poll's end."""
        wakes = self._wakes[agent]
        index = bisect_left(wakes, time_ns)
        polls = self.polls[agent]
        number = bisect_left(polls, time_ns, key=lambda poll: poll[1])
        ends = [polls[number][1]] if number < len(polls) and polls[number][0] <= time_ns else []
        return min([*wakes[index : index + 1], *ends], default=time_ns)

    def interrupt(self, agent: int, rings: int, time_ns: int) -> int | None:
        """When a handler took the last interrupt of one of those rings, a mask."""
        taken = self._taken[agent]
        index = bisect_right(taken, time_ns, key=lambda each: each[0])
        while index and not taken[index - 1][1] & rings:
            index -= 1
        return taken[index - 1][0] if index else None

    def raised(self, node: int, queue: int, time_ns: int) -> int | None:
        """When a NIC had raised the last interrupt of a queue."""
        return _last(self._raised[node, queue], time_ns)

    def isend_of(self, flight: Flight) -> TraceRecord | None:
        """The send of the message whose number a packet carries."""
        assert flight.sent is not None
        key = (source_of(flight), sink_of(flight), flight.word >> 16 & SEQNUM_MASK)
        return _before_record(self._isends[key], flight.sent.time_ns)

    def resent(self, isend: TraceRecord, time_ns: int) -> int | None:
        """When a message had been sent again last; None if it had not."""
        found = _last(self._resends[isend.agent, isend.a], time_ns)
        return found if found is not None and found > isend.time_ns else None

    def request_of(self, flight: Flight) -> TraceRecord | None:
        """The record by which a pull request was made."""
        assert flight.sent is not None
        first = flight.word >> 16 & 0xFFFF
        return _before_record(self._asked[flight.source, first], flight.sent.time_ns)

    def answered_by(self, reply: Flight) -> Flight | None:
        """The pull request that a node had handled last when it sent a reply."""
        assert reply.sent is not None
        return _before(self._answered[reply.source, reply.destination], reply.sent.time_ns)

    def last_reply(self, agent: int, time_ns: int) -> Flight | None:
        """The pull reply that a handler had handled last."""
        return _before(self._replies[agent], time_ns)


def place_of(record: TraceRecord) -> Place:
    """The partner that a record of a message names."""
    return record.a >> 32, record.a >> 16 & 0xFFFF


def source_of(flight: Flight) -> Place:
    """Whose packet it is."""
    return flight.source, flight.ends >> 8


def sink_of(flight: Flight) -> Place:
    """Who gets it."""
    return flight.destination, flight.ends & 0xFF


def queue_of_flight(flight: Flight) -> int:
    """The rx queue that it lay in."""
    return queue_of(flight.in_memory.b) if flight.in_memory else 0


def _waits(records: Sequence[TraceRecord]) -> list[Wait]:
    """The waits of a rank; one after another with nothing between them is one."""
    found: list[Wait] = []
    begin_ns: int | None = None
    goes_on = False
    for record in records:
        if record.kind == "wait_begin":
            begin_ns = found.pop().begin_ns if goes_on else record.time_ns
        elif record.kind == "wait_end" and begin_ns is not None:
            found.append(Wait(begin_ns, record.time_ns, record.a == READY))
            begin_ns = None
        goes_on = record.kind == "wait_end" and bool(found) and not found[-1].ready
    return found


def _end(times: Sequence[tuple[int, int]]) -> int:
    return times[-1][1] if times else -1


def _last(times: Sequence[int], time_ns: int) -> int | None:
    index = bisect_right(times, time_ns)
    return times[index - 1] if index else None


def _before(flights: Sequence[Flight], time_ns: int) -> Flight | None:
    index = bisect_right(flights, time_ns, key=handled_ns)
    return flights[index - 1] if index else None


def _before_record(records: Sequence[TraceRecord], time_ns: int) -> TraceRecord | None:
    index = bisect_right(records, time_ns, key=lambda record: record.time_ns)
    return records[index - 1] if index else None
