"""Where the time of a run went: of each rank, of each message, and on the critical path.

Each of these times is divided into spans without gaps, so that the parts of each make up its whole.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.breakdown.causes import Causes
from shrimpmx.show.breakdown.run_index import RankRecords, RunIndex
from shrimpmx.show.breakdown.spans import (
    COPY,
    END,
    HANDLER,
    LATE,
    START,
    WIRE,
    Backwards,
    Span,
    totals,
)
from shrimpmx.show.flights import Flight
from shrimpmx.show.slow_messages import SEQNUM_MASK, Message, first_copies, handled_ns, messages_of
from shrimpmx.show.timeline import Timeline

OF_MESSAGES = frozenset({"isend", "received", "notified"})
FIRST = frozenset({*OF_MESSAGES, "unexpected", "rndv_matched"})
SCHEMA = 1


@dataclass(frozen=True)
class MessageTime:
    """A message with its spans from isend to received."""

    message: Message
    source: str
    destination: str
    spans: Sequence[Span]


@dataclass(frozen=True)
class Breakdown:
    """A run's time from `begin_ns` to `end_ns`: `ranks` by name, messages by their ends, and the
    `path` that its end depends on. `dilation`: the times are so many times the emulated hosts'.
    """

    begin_ns: int
    end_ns: int
    ranks: dict[str, list[Span]]
    messages: list[MessageTime]
    path: list[Span]
    dilation: float

    def document(self) -> dict[str, Any]:
        """As data for JSON: times in ns."""
        return {
            "took_ns": self.end_ns - self.begin_ns,
            "time_dilation": self.dilation,
            "ranks": {name: totals(spans) for name, spans in self.ranks.items()},
            "critical_path": {
                "parts": totals(self.path),
                "spans": [
                    {
                        "begin_ns": span.begin_ns - self.begin_ns,
                        "end_ns": span.end_ns - self.begin_ns,
                        "part": span.part,
                        "where": span.where,
                    }
                    for span in self.path
                ],
            },
            "messages": [
                {
                    "source": each.source,
                    "destination": each.destination,
                    "bytes": each.message.received.b,
                    "begin_ns": each.message.sent.time_ns - self.begin_ns,
                    "took_ns": each.message.took_ns,
                    "parts": totals(each.spans),
                }
                for each in self.messages
            ],
        }


def breakdown_of(timeline: Timeline) -> Breakdown | None:
    """That of a traced run, as far back as all agents have their records; None if no rank has a
    message in it.
    """
    index = RunIndex(timeline)
    records = timeline.records
    kept = [_first_ns(timeline, agent) for agent, lost in timeline.overwritten.items() if lost]
    begin_ns = max([records[0].time_ns, *kept]) if records else 0
    ranks = {name: rank for name, rank in index.ranks.items() if _first(rank, begin_ns)}
    if not ranks:
        return None
    whole = _Whole(index, begin_ns, records[-1].time_ns, from_start=not kept)
    found = {name: whole.rank(name) for name in ranks}
    messages = [
        whole.message(each) for each in messages_of(timeline) if each.sent.time_ns >= begin_ns
    ]
    path = whole.critical_path(max(ranks, key=whole.work_end))
    return Breakdown(begin_ns, whole.end_ns, found, messages, path, timeline.dilation)


def _first_ns(timeline: Timeline, agent: int) -> int:
    """The time of an agent's first record."""
    return next((each.time_ns for each in timeline.records if each.agent == agent), 0)


def _first(rank: RankRecords, begin_ns: int) -> TraceRecord | None:
    return next(
        (each for each in rank.records if each.kind in FIRST and each.time_ns >= begin_ns), None
    )


class _Whole:
    """A run from begin to end."""

    def __init__(self, index: RunIndex, begin_ns: int, end_ns: int, *, from_start: bool) -> None:
        self.index = index
        self.causes = Causes(index)
        self.begin_ns, self.end_ns = begin_ns, end_ns
        self._from_start = from_start
        self._begins = {name: self._work_begin(name) for name in index.ranks}

    def _work_begin(self, name: str) -> int:
        """When a rank's first message begins, or its wait for that."""
        rank = self.index.ranks[name]
        first = _first(rank, self.begin_ns)
        if first is None or not self._from_start:
            return self.begin_ns
        number = rank.ended_wait(first.time_ns)
        if first.kind == "isend" or number < 0:
            return first.time_ns
        return max(self.begin_ns, rank.waits[number].begin_ns)

    def work_end(self, name: str) -> int:
        """When a rank's last message is over."""
        records = self.index.ranks[name].records
        found = (each.time_ns for each in reversed(records) if each.kind in OF_MESSAGES)
        return max(next(found, self.begin_ns), self._begins[name])

    def rank(self, name: str) -> list[Span]:
        """All of a rank's time."""
        back, begin_ns = Backwards(self.end_ns, self.begin_ns), self._begins[name]
        back.back_to(self.work_end(name), END, name)
        number = len(self.index.ranks[name].waits)
        while number >= 0:
            number = self._run_back(back, name, begin_ns, number)
            if number >= 0:
                wait = self.index.ranks[name].waits[number]
                within = Backwards(back.at_ns, max(wait.begin_ns, begin_ns))
                self._wait_back(within, name, number)
                within.back_to(wait.begin_ns, LATE, name)
                back.add(within.spans())
        back.back_to(self.begin_ns, START, name)
        return back.spans()

    def _run_back(self, back: Backwards, name: str, begin_ns: int, before: int) -> int:
        """Back to the end of a rank's last wait but those from number `before` on; its number, -1
        if `begin_ns` comes first.
        """
        rank = self.index.ranks[name]
        number = rank.ended_wait(back.at_ns)
        if number >= before:
            # Ranks that woke each other at one instant: nothing else ended this wait.
            number = before - 1
            back.back_to(max(rank.waits[before].begin_ns, begin_ns), LATE, name)
        # Its NIC was not yet done with what it had sent before a wait.
        inside = rank.last_wait(back.at_ns)
        if inside > number and rank.waits[inside].end_ns > back.at_ns:
            back.back_to(max(rank.waits[inside].begin_ns, begin_ns), COPY, name)
        since_ns = max(begin_ns, rank.waits[number].end_ns if number >= 0 else begin_ns)
        if since_ns < back.at_ns:
            self.causes.running_back(back, name, since_ns)
        return number if since_ns > begin_ns else -1

    def _wait_back(self, back: Backwards, name: str, number: int) -> str:
        """Back from a wait's end to what a rank did to end it, as far as `back` goes; that rank."""
        rank = self.index.ranks[name]
        cause = rank.cause(number)
        origin = self.causes.cause_back(back, name, cause) if cause is not None else None
        if origin is None:
            back.back_to(rank.waits[number].begin_ns, LATE, name)
            return name
        return origin.rank

    def critical_path(self, name: str) -> list[Span]:
        """From the end of the rank whose work ends last, back to the begin."""
        back = Backwards(self.end_ns, self.begin_ns)
        back.back_to(self.work_end(name), END, name)
        before = {each: len(rank.waits) for each, rank in self.index.ranks.items()}
        while back.at_ns > self._begins[name]:
            before[name] = self._run_back(back, name, self._begins[name], before[name])
            if before[name] < 0:
                break
            name = self._wait_back(back, name, before[name])
        back.back_to(self.begin_ns, START, name)
        return back.spans()

    # -- messages ------------------------------------------------------------

    def message(self, message: Message) -> MessageTime:
        """A message from its isend to the end of its receive."""
        timeline = self.index.timeline
        source = timeline.name_of(message.sent.agent)
        name = timeline.name_of(message.received.agent)
        where = f"{source} to {name}"
        own = self._carriers(message)
        last = max(first_copies(own), key=handled_ns, default=None)
        there_ns = handled_ns(last) if last else self._told_ns(source, message)
        back = Backwards(message.received.time_ns, message.sent.time_ns)
        self._received_back(back, name, there_ns, last, message, where)
        if last is not None:
            self.causes.flight_back(back, last, where)
            if self.index.resent(message.sent, back.at_ns) is None:
                back.back_to(min(each.sent.time_ns for each in own if each.sent), WIRE, where)
        self.causes.copied_back(back, message.sent, where)
        return MessageTime(message, source, name, back.spans())

    def _carriers(self, message: Message) -> list[Flight]:
        """The packets with a message's number that were handled before it was received."""
        source, sink = message.source, message.destination
        ends = (source.node, source.endpoint), (sink.node, sink.endpoint)
        found = self.index.carriers.get((*ends, message.sent.a & SEQNUM_MASK), ())
        return [
            flight
            for flight in found
            if flight.sent is not None
            and message.sent.time_ns <= flight.sent.time_ns
            and flight.handled is not None
            and flight.handled.time_ns <= message.received.time_ns
        ]

    def _told_ns(self, source: str, message: Message) -> int:
        """When a rank has told another of its node of a message: by its next record."""
        rank = self.index.ranks[source]
        number = rank.after(message.sent.time_ns)
        following = rank.records[number : number + 1]
        until_ns = message.received.time_ns
        return min([until_ns, *(each.time_ns for each in following)])

    def _received_back(
        self,
        back: Backwards,
        name: str,
        there_ns: int,
        last: Flight | None,
        message: Message,
        where: str,
    ) -> None:
        """From the end of a receive to when the rank could have known of the message."""
        received = message.received
        matched = self._record(name, "rndv_matched", there_ns, received)
        started = matched and self._record(name, "pull_start", matched.time_ns)
        if matched is None or started is None or started.time_ns > received.time_ns:
            self._taken_back(back, name, there_ns, last, received, where)
            return
        rank = self.index.ranks[name]
        done = [
            each for each in rank.pulls_done if started.time_ns <= each.early_ns <= received.time_ns
        ]
        if done:
            reply = done[-1].flight
            self._taken_back(back, name, done[-1].early_ns, reply, received, where)
            pulled = Backwards(back.at_ns, started.time_ns)
            if reply is not None:
                self.causes.flight_back(pulled, reply, where)
                self.causes.sent_back(pulled, reply, where)
            back.add(pulled.spans())
        back.back_to(matched.time_ns, COPY, where)
        self._taken_back(back, name, there_ns, last, matched, where)

    def _record(
        self, name: str, kind: str, since_ns: int, like: TraceRecord | None = None
    ) -> TraceRecord | None:
        """A rank's first record of a kind since some time; of the message that another names."""
        found = self.index.ranks[name].of_kind(kind)
        first = bisect_left(found, since_ns, key=lambda record: record.time_ns)
        later = itertools.islice(found, first, None)
        return next((each for each in later if not like or each.a == like.a), None)

    def _taken_back(
        self,
        back: Backwards,
        name: str,
        there_ns: int,
        flight: Flight | None,
        until: TraceRecord,
        where: str,
    ) -> None:
        """From a record of the receiving rank to when the event was there: it waited for it, or
        came later.
        """
        rank = self.index.ranks[name]
        number = rank.last_wait(there_ns)
        wait = rank.waits[number] if number >= 0 else None
        if wait is None or not wait.begin_ns <= there_ns <= wait.end_ns <= until.time_ns:
            back.back_to(there_ns, LATE, where)
            return
        kept = self._record(name, "unexpected", wait.end_ns, until)
        if kept is not None and kept.time_ns <= until.time_ns:
            back.back_to(kept.time_ns, LATE, where)
        elif rank.ended_wait(until.time_ns) > number:
            back.back_to(wait.end_ns, LATE, where)
        back.back_to(wait.end_ns, COPY, where)
        told_ns = there_ns
        if flight is not None and flight.handled is not None:
            told_ns = self.index.poll_over(flight.handled.agent, there_ns)
        self.causes.awake_back(back, name, min(told_ns, back.at_ns), where)
        back.back_to(there_ns, HANDLER, where)
