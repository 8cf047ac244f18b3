"""Times of a run, each with the part of the receive path that it belongs to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

COMPUTING, PREEMPTED, COPY, WIRE, DMA = "computing", "preempted", "copy", "wire", "DMA"
COALESCING, INTERRUPT, HANDLER, WAKE_UP = "coalescing", "interrupt", "handler", "wake-up"
LATE, RESEND, START, END = "late partner", "resend", "start", "end"
# In the order of tables, each with its meaning.
PARTS = {
    START: "until the rank's first message, or its wait for that",
    COMPUTING: "the program between its messages, and calls without a record",
    COPY: "the MX library: frames built and taken, data copied, buffers registered",
    WIRE: "frames on the line, and behind other frames of their message",
    DMA: "from the NIC to host memory",
    COALESCING: "in host memory, before the NIC's interrupt or a poll",
    INTERRUPT: "from the interrupt to the begin of the handler's poll",
    HANDLER: "polls of interrupt handlers",
    WAKE_UP: "from the handler, or a rank of the same node, to the end of the wait",
    PREEMPTED: "another process on the rank's CPU",
    LATE: "the partner had not sent yet; of messages: the receiver did not take them yet",
    RESEND: "a lost packet, until its message was sent again",
    END: "after the rank's last message",
}

Times = tuple[int, int]  # from, until


@dataclass(frozen=True)
class Span:
    """The time from `begin_ns` to `end_ns`, of the run's clock; `where`: its rank or message."""

    begin_ns: int
    end_ns: int
    part: str
    where: str = ""

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.begin_ns


class Backwards:
    """Spans of a time without gaps, from its end back to its begin."""

    def __init__(self, end_ns: int, stop_ns: int) -> None:
        self.at_ns = end_ns
        self._stop_ns = stop_ns
        self._spans: list[Span] = []

    @property
    def over(self) -> bool:
        """Whether the begin is reached."""
        return self.at_ns <= self._stop_ns

    def back_to(self, begin_ns: int | None, part: str, where: str = "") -> None:
        """What is before the spans so far belongs to `part`, from `begin_ns` on; None, or a later
        time: nothing does.
        """
        if begin_ns is None or begin_ns >= self.at_ns or self.over:
            return
        begin_ns = max(begin_ns, self._stop_ns)
        self._spans.append(Span(begin_ns, self.at_ns, part, where))
        self.at_ns = begin_ns

    def add(self, spans: Sequence[Span]) -> None:
        """The same for spans that end where those so far begin."""
        for span in reversed(spans):
            self.back_to(span.begin_ns, span.part, span.where)

    def spans(self) -> list[Span]:
        """All of them, in the order of time."""
        return self._spans[::-1]


def overlaid(
    spans: Iterable[Span], over: Sequence[Times], part: str, parts: frozenset[str]
) -> Iterator[Span]:
    """The spans, where those of `parts` give way to the times `over`, sorted and apart."""
    for span in spans:
        if span.part not in parts:
            yield span
            continue
        at_ns = span.begin_ns
        for begin_ns, end_ns in near(over, span.begin_ns, span.end_ns):
            begin, end = max(begin_ns, at_ns), min(end_ns, span.end_ns)
            if begin >= end:
                continue
            if begin > at_ns:
                yield replace(span, begin_ns=at_ns, end_ns=begin)
            yield replace(span, begin_ns=begin, end_ns=end, part=part)
            at_ns = end
        if at_ns < span.end_ns:
            yield replace(span, begin_ns=at_ns)


def near(times: Sequence[Times], begin_ns: int, end_ns: int) -> Sequence[Times]:
    """Of times that are sorted and apart, those that touch the one from begin to end."""
    first = bisect_left(times, begin_ns, key=lambda each: each[1])
    return times[first : bisect_right(times, end_ns, key=lambda each: each[0])]


def totals(spans: Iterable[Span]) -> dict[str, int]:
    """ns by part, in the order of PARTS; only parts that took some."""
    found = dict.fromkeys(PARTS, 0)
    for span in spans:
        found[span.part] += span.length_ns
    return {part: total for part, total in found.items() if total}


def percentages(parts: Mapping[str, int]) -> dict[str, float]:
    """Each part's share in per cent with one digit; together they are 100, if there is any time.

    Rounded down, but for those with the largest rests.
    """
    whole = sum(parts.values())
    if not whole:
        return {}
    tenths = {part: divmod(1000 * value, whole) for part, value in parts.items()}
    missing = 1000 - sum(least for least, _ in tenths.values())
    raised = sorted(tenths, key=lambda part: -tenths[part][1])[:missing]
    return {part: (least + (part in raised)) / 10 for part, (least, _) in tenths.items()}
