"""What the agents of each node have paid: how often for each cost, and how long that is in all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shrimpmx.costs.table import COSTS
from shrimpmx.results.words import number_words

# By node and payer, the counters of costs (costs/table.py).
Paid = Mapping[str, Mapping[str, int]]

HEAD = ("cost", "times", "ns each", "us in all")


def paid_lines(paid: Paid, dilation: float = 1.0) -> Iterator[str]:
    """A table for each payer of each node, the dearest cost first; times without `dilation`."""
    for payer, counters in paid.items():
        if rows := _rows(counters):
            yield payer
            yield from _table(rows, dilation)


def legend(tables: Iterable[Paid]) -> Iterator[str]:
    """What the costs in those tables are for."""
    told = {name for paid in tables for counters in paid.values() for _, name, _ in _rows(counters)}
    for cost in COSTS.values():
        if cost.name in told:
            per = "times: copies" if cost.unit == "B/s" else f"per {cost.per}"
            yield f"{cost.name}: {cost.sentence.partition(';')[0]} ({per})"


def _rows(counters: Mapping[str, int]) -> list[tuple[int, str, int]]:
    """ns in all, the cost, and how often it was paid."""
    found = [
        (counters.get(cost.total_counter, 0), name, counters.get(cost.times_counter, 0))
        for name, cost in COSTS.items()
    ]
    return sorted((row for row in found if row[2]), key=lambda row: -row[0])


def _table(rows: list[tuple[int, str, int]], dilation: float) -> Iterator[str]:
    cells = [HEAD]
    for total, name, times in rows:
        total_ns = total / dilation
        each = number_words(total_ns / times), number_words(total_ns / 1000)
        cells.append((name, str(times), *each))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        columns = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        yield f"  {first:<{widths[0]}}  {'  '.join(columns)}"
