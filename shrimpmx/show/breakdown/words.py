"""Where the time of a run went, as tables of words: the same in a terminal and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from shrimpmx.results.words import number_words
from shrimpmx.show.breakdown.breakdown import Breakdown
from shrimpmx.show.breakdown.spans import PARTS, Span, percentages, totals
from shrimpmx.show.tables import Cell, MetricTable

CRITICAL = "critical path"
# So many steps of the path are told: the longest ones (ours).
STEPS_MAX = 12


def parts_table(breakdown: Breakdown, slowest: int) -> MetricTable:
    """The shares of all parts, in %: of each rank, of the critical path, and of the `slowest`
    messages.
    """
    rows = [(name, totals(spans)) for name, spans in breakdown.ranks.items()]
    rows.append((CRITICAL, totals(breakdown.path)))
    ordered = sorted(breakdown.messages, key=lambda each: -each.message.took_ns)
    rows += [
        (f"{each.source} to {each.destination}, {each.message.received.b} B", totals(each.spans))
        for each in ordered[:slowest]
    ]
    shown = [part for part in PARTS if any(part in parts for _, parts in rows)]
    return MetricTable(
        "Where the time went, %",
        "time of",
        ("us", *shown),
        tuple((name, tuple(_cells(parts, shown))) for name, parts in rows),
    )


def _cells(parts: Mapping[str, int], shown: Sequence[str]) -> Iterator[Cell]:
    shares = percentages(parts)
    yield Cell(number_words(sum(parts.values()) / 1000))
    for part in shown:
        yield Cell(f"{shares[part]:.1f}" if part in shares else "")


def table_lines(table: MetricTable) -> Iterator[str]:
    """A table as lines of fixed letters."""
    rows = [[table.corner, *table.headings]]
    rows += [[name, *(cell.words for cell in cells)] for name, cells in table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        yield f"{first:<{widths[0]}}  {'  '.join(cells)}".rstrip()


def legend(table: MetricTable) -> str:
    """What the parts of a table are."""
    return "; ".join(f"{part}: {PARTS[part]}" for part in table.headings if part in PARTS)


def where_lines(breakdown: Breakdown, slowest: int) -> Iterator[str]:
    """The table, what its parts are, and the critical path."""
    table = parts_table(breakdown, slowest)
    yield from table_lines(table)
    yield legend(table)
    yield f"\n{CRITICAL}: us since the begin, us, step"
    yield from path_lines(breakdown)


def path_lines(breakdown: Breakdown) -> Iterator[str]:
    """The critical path: its longest steps in the order of time, each with its parts in us."""
    steps = [list(spans) for _, spans in groupby(breakdown.path, lambda span: span.where)]
    longest = sorted(range(len(steps)), key=lambda number: -_length_ns(steps[number]))[:STEPS_MAX]
    if len(steps) > STEPS_MAX:
        rest = sum(_length_ns(step) for number, step in enumerate(steps) if number not in longest)
        yield (
            f"the {STEPS_MAX} longest of {len(steps)} steps; the others take {rest / 1000:.3f} us"
        )
    for number in sorted(longest):
        step = steps[number]
        at_ns = step[0].begin_ns - breakdown.begin_ns
        told = ", ".join(f"{part} {ns / 1000:.3f}" for part, ns in totals(step).items())
        yield f"{at_ns / 1000:12.3f} {_length_ns(step) / 1000:10.3f}  {step[0].where}: {told}"


def _length_ns(spans: Sequence[Span]) -> int:
    return spans[-1].end_ns - spans[0].begin_ns
