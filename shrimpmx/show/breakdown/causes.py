"""Back from what a rank got to what it had waited for: packets, handlers, other ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shrimpmx.cluster.engine.switches import NOT_RECORDED, idle_words
from shrimpmx.cluster.engine.trace_text import BACKLOG
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.breakdown.run_index import (
    PULL_REPLY,
    PULL_REQUEST,
    Delivery,
    RunIndex,
    queue_of_flight,
    source_of,
)
from shrimpmx.show.breakdown.spans import (
    COALESCING,
    COMPUTING,
    COPY,
    DMA,
    HANDLER,
    INTERRUPT,
    PREEMPTED,
    RESEND,
    WAKE_UP,
    WIRE,
    Backwards,
    Span,
    near,
    overlaid,
)
from shrimpmx.show.cpu_use import CpuUse
from shrimpmx.show.flights import Flight
from shrimpmx.show.slow_messages import NUMBERED, SEQNUM_MASK

# What the library records when it takes something that came, before it returns or goes on.
TAKING = frozenset({"acked", "notified", "received", "unexpected", "rndv_matched", "pull_start"})
# The parts that give way to handlers and other processes on a rank's CPU, or to other polls.
RUNNING, WAKING, HELD = frozenset({COMPUTING, COPY}), frozenset({WAKE_UP}), frozenset({COALESCING})


@dataclass(frozen=True)
class Origin:
    """Where a packet or a wake-up came from: a rank at some time."""

    rank: str
    at_ns: int


class Causes:
    """Of one run."""

    def __init__(self, index: RunIndex) -> None:
        self.index = index
        self._use = CpuUse(index.timeline.switches)
        timeline = index.timeline
        self._handlers = {
            (timeline.node_of(agent), timeline.core_of(agent)): agent
            for agent in list(index.polls)
            if timeline.name_of(agent) not in timeline.seats
        }

    # -- packets ------------------------------------------------------------

    def flight_back(self, back: Backwards, flight: Flight, where: str) -> None:
        """From the event of a packet, where `back` is, to its begin on the line."""
        handled, memory = flight.handled, flight.in_memory
        if handled is not None and memory is not None:
            self._noticed_back(back, flight, handled, memory, where)
        elif handled is not None and flight.arrived is not None:
            back.back_to(flight.arrived.time_ns, HANDLER, where)
        if memory is not None and flight.arrived is not None:
            back.back_to(flight.arrived.time_ns, DMA, where)
        if flight.sent is not None:
            back.back_to(flight.sent.time_ns, WIRE, where)

    def _noticed_back(
        self,
        back: Backwards,
        flight: Flight,
        handled: TraceRecord,
        memory: TraceRecord,
        where: str,
    ) -> None:
        """From the event to when the packet was in host memory."""
        index, begin_ns, queue = self.index, memory.time_ns, queue_of_flight(flight)
        polled_ns = index.poll_begin(handled.agent, handled.time_ns)
        if polled_ns is None or polled_ns <= begin_ns:
            back.back_to(begin_ns, HANDLER, where)
            return
        back.back_to(polled_ns, HANDLER, where)
        taken_ns = index.interrupt(handled.agent, 1 << queue | 1 << BACKLOG, polled_ns)
        if taken_ns is not None and taken_ns >= begin_ns:
            raised_ns = index.raised(flight.destination, queue, taken_ns)
            back.back_to(max(raised_ns or taken_ns, begin_ns), INTERRUPT, where)
        held = Backwards(back.at_ns, begin_ns)
        held.back_to(begin_ns, COALESCING, where)
        # The handler was not free for it, or already on its way.
        spans: Iterable[Span] = held.spans()
        for part, times in ((HANDLER, index.polls), (INTERRUPT, index.entries)):
            spans = overlaid(spans, near(times[handled.agent], begin_ns, back.at_ns), part, HELD)
        back.add(list(spans))

    def sent_back(self, back: Backwards, flight: Flight, where: str) -> Origin | None:
        """From a packet's begin on the line to the rank because of which it was sent."""
        kind = flight.word & 0x7F
        while flight.sent is not None and not back.over and kind in (PULL_REPLY, PULL_REQUEST):
            if kind == PULL_REPLY:
                before = self.index.answered_by(flight)
                if before is None or before.handled is None:
                    return None
                back.back_to(before.handled.time_ns, WIRE, where)
            else:
                made = self.index.request_of(flight)
                if made is None:
                    return None
                back.back_to(made.time_ns, COPY, where)
                name = self.index.timeline.name_of(made.agent)
                if name in self.index.ranks:
                    return Origin(name, made.time_ns)
                before = self.index.last_reply(made.agent, made.time_ns)
                if before is None or before.handled is None:
                    return None
                back.back_to(before.handled.time_ns, HANDLER, where)
            flight, kind = before, before.word & 0x7F
            self.flight_back(back, flight, where)
        rank = self.index.name_at.get(source_of(flight))
        if flight.sent is None or rank is None:
            return None
        if kind not in NUMBERED:
            return Origin(rank, flight.sent.time_ns)
        isend = self.index.isend_of(flight)
        if isend is None:
            return Origin(rank, flight.sent.time_ns)
        self.copied_back(back, isend, where)
        return Origin(rank, isend.time_ns)

    def copied_back(self, back: Backwards, isend: TraceRecord, where: str) -> None:
        """From a message's packet on the line to its isend."""
        resent_ns = self.index.resent(isend, back.at_ns)
        if resent_ns is not None:
            back.back_to(resent_ns, COPY, where)
            back.back_to(isend.time_ns, RESEND, where)
        back.back_to(isend.time_ns, COPY, where)

    # -- ranks ------------------------------------------------------------

    def cause_back(self, back: Backwards, rank: str, cause: Delivery) -> Origin | None:
        """From the end of a rank's wait to what a rank did to end it."""
        where = self.where(rank, cause)
        told_ns = cause.late_ns
        if cause.flight is not None and cause.flight.handled is not None:
            told_ns = self.index.poll_over(cause.flight.handled.agent, cause.early_ns)
        self.awake_back(back, rank, min(told_ns, back.at_ns), where)
        if cause.flight is None:
            back.back_to(cause.early_ns, COPY, where)
            return Origin(cause.sender, cause.early_ns)
        back.back_to(cause.early_ns, HANDLER, where)
        self.flight_back(back, cause.flight, where)
        return self.sent_back(back, cause.flight, where)

    def awake_back(self, back: Backwards, rank: str, begin_ns: int, where: str) -> None:
        """The wake-up of a rank, with those that had its CPU meanwhile."""
        spans = Backwards(back.at_ns, begin_ns)
        spans.back_to(begin_ns, WAKE_UP, where)
        back.add(self._shared(spans.spans(), rank, WAKING))

    def where(self, rank: str, cause: Delivery) -> str:
        """The way of a delivery, in words."""
        if cause.flight is None:
            return f"{cause.sender} to {rank}"
        source = self.index.name_at.get(source_of(cause.flight), f"node{cause.flight.source}")
        number = cause.flight.word >> 16 & SEQNUM_MASK
        numbered = cause.flight.word & 0x7F in NUMBERED
        return f"{source} to {rank}: {f'message {number}' if numbered else cause.flight.name}"

    def running_back(self, back: Backwards, rank: str, begin_ns: int) -> None:
        """A rank's time outside waits, from where `back` is to the end of its last wait."""
        records = self.index.ranks[rank]
        own = Backwards(back.at_ns, begin_ns)
        number = records.after(back.at_ns)
        while not own.over:
            number -= 1
            record = records.records[number] if number >= 0 else None
            since_ns = record.time_ns if record is not None else begin_ns
            following = records.records[number + 1] if number + 1 < len(records.records) else None
            self._step_back(own, rank, record, following)
            own.back_to(max(since_ns, begin_ns), COMPUTING, rank)
        back.add(self._shared(own.spans(), rank, RUNNING))

    def _step_back(
        self,
        own: Backwards,
        rank: str,
        record: TraceRecord | None,
        following: TraceRecord | None,
    ) -> None:
        """What of the time between two records of a rank is the library's."""
        if record is None:
            return
        takes = following is not None and following.kind in TAKING
        if record.kind in ("wait_end", "rndv_matched", "pull_start") and takes:
            own.back_to(record.time_ns, COPY, rank)
        elif record.kind == "isend":
            sent_ns = self._sent_ns(rank, record)
            own.back_to(min(sent_ns, own.at_ns), COMPUTING, rank)
            own.back_to(record.time_ns, COPY, rank)

    def _sent_ns(self, rank: str, isend: TraceRecord) -> int:
        """When the first packet of a message was on the line."""
        seat = self.index.ranks[rank].seat
        key = (
            (seat.node, seat.endpoint),
            (isend.a >> 32, isend.a >> 16 & 0xFFFF),
            isend.a & SEQNUM_MASK,
        )
        for flight in self.index.carriers.get(key, ()):
            if flight.sent is not None and flight.sent.time_ns >= isend.time_ns:
                return flight.sent.time_ns
        return isend.time_ns

    def _shared(self, spans: list[Span], rank: str, parts: frozenset[str]) -> list[Span]:
        """The spans, where `parts` give way to handlers and other processes on the rank's CPU."""
        if not spans:
            return spans
        begin_ns, end_ns = spans[0].begin_ns, spans[-1].end_ns
        seat = self.index.ranks[rank].seat
        handler = self._handlers.get((seat.node, seat.core))
        shared = spans
        if handler is not None:
            for part, times in (
                (HANDLER, self.index.polls[handler]),
                (INTERRUPT, self.index.entries[handler]),
            ):
                shared = list(overlaid(shared, near(times, begin_ns, end_ns), part, parts))
        cpu = self._use.cpu_of(rank, end_ns)
        if cpu is None:
            return shared
        processes = self.index.timeline.switches.process_of
        own = {processes[rank], idle_words(), NOT_RECORDED}
        if handler is not None:
            own.add(processes.get(self.index.timeline.name_of(handler), ""))
        slices = self._use.slices(cpu, begin_ns, end_ns)
        others = [(begin, until) for begin, until, name in slices if name not in own]
        return list(overlaid(shared, others, PREEMPTED, parts))
