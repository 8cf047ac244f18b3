"""What the agents of each node have paid: in all, and how often and how long for each cost; and the
effect of each cost, from points that had it free (`free_cost`).

A share is the figure with that cost free, divided by the figure with all costs charged. Costs that
overlap in time each show less than they take, so shares do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shrimpmx.costs.table import ALL_CHARGED, COSTS, FREE_COST
from shrimpmx.results.metrics import shown_figures
from shrimpmx.results.words import number_words, place_words

# By node and payer, the counters of costs (costs/table.py).
Paid = Mapping[str, Mapping[str, int]]

HEAD = ("cost", "times", "ns each", "us in all", "% of payer")
Row = tuple[int, str, int]


def paid_lines(paid: Paid, dilation: float = 1.0) -> Iterator[str]:
    """A table for each payer of each node below its total, the dearest cost first; times without
    `dilation`.
    """
    tables = {payer: rows for payer, counters in paid.items() if (rows := _rows(counters))}
    all_ns = sum(map(_total_ns, tables.values()))
    for payer, rows in tables.items():
        payer_us = number_words(_total_ns(rows) / dilation / 1000)
        yield f"{payer}: {payer_us} us, {_percent(_total_ns(rows), all_ns)} % of all payments"
        yield from _table(rows, dilation)


def legend(tables: Iterable[Paid]) -> Iterator[str]:
    """What the costs in those tables are for."""
    told = {name for paid in tables for counters in paid.values() for _, name, _ in _rows(counters)}
    for cost in COSTS.values():
        if cost.name in told:
            per = "times: copies" if cost.unit == "B/s" else f"per {cost.per}"
            yield f"{cost.name}: {cost.sentence.partition(';')[0]} ({per})"


def _rows(counters: Mapping[str, int]) -> list[Row]:
    """ns in all, the cost, and how often it was paid."""
    found = [
        (counters.get(cost.total_counter, 0), name, counters.get(cost.times_counter, 0))
        for name, cost in COSTS.items()
    ]
    return sorted((row for row in found if row[2]), key=lambda row: -row[0])


def _total_ns(rows: Iterable[Row]) -> int:
    return sum(total for total, _, _ in rows)


def _percent(part_ns: int, whole_ns: int) -> str:
    return f"{100 * part_ns / max(1, whole_ns):.1f}"


def _table(rows: list[Row], dilation: float) -> Iterator[str]:
    cells = [HEAD]
    payer_ns = _total_ns(rows)
    for total, name, times in rows:
        total_ns = total / dilation
        each = number_words(total_ns / times), number_words(total_ns / 1000)
        cells.append((name, str(times), *each, _percent(total, payer_ns)))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        columns = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        yield f"  {first:<{widths[0]}}  {'  '.join(columns)}"


PointData = Mapping[str, Any]


# Shares nearer to 1 are told without a figure.
SMALL = 0.001


def free_cost_lines(document: Mapping[str, Any]) -> list[str]:
    """For each place in the other axes the costs in order of their effect on the first metric."""
    axes = [axis for axis in document.get("layout", {}).get("axes", ()) if axis != FREE_COST]
    places: dict[str, list[PointData]] = {}
    for point in document["points"]:
        if "impossible" not in point:
            words = ", ".join(place_words(axis, point["params"][axis]) for axis in axes)
            places.setdefault(words, []).append(point)
    lines: list[str] = []
    told: dict[str, None] = {}
    for words, points in places.items():
        metric = next(iter(points[0]["metrics"]))
        if shares := _shares(points, metric):
            lines += [f"{metric}, {words}" if words else metric, *_share_table(shares)]
            told |= dict.fromkeys(_ordered(shares))
    return [*lines, *_legend(told)] if told else lines


def _shares(points: list[PointData], metric: str) -> dict[str, float]:
    """By cost, the figure without it as a share of the figure with all."""
    figures = {
        point["params"].get(FREE_COST, ALL_CHARGED): float(
            shown_figures(point["metrics"][metric])["median"]
        )
        for point in points
        if "unavailable" not in point["metrics"][metric]
    }
    whole = figures.pop(ALL_CHARGED, 0.0)
    return {name: figure / whole for name, figure in figures.items()} if whole else {}


def _effect(share: float) -> float:
    """0: none. Half the figure and twice the figure are as much."""
    return abs(math.log(share)) if share > 0 else math.inf


def _ordered(shares: Mapping[str, float]) -> list[str]:
    """The costs with an effect to tell, the largest first."""
    told = [name for name, share in shares.items() if _effect(share) >= SMALL]
    return sorted(told, key=lambda name: -_effect(shares[name]))


def _share_table(shares: Mapping[str, float]) -> Iterator[str]:
    ordered = _ordered(shares)
    width = max(map(len, ordered), default=0)
    for name in ordered:
        yield f"  {name:<{width}}  {shares[name]:.3f}"
    if rest := [name for name in shares if name not in ordered]:
        yield f"  less than {SMALL:.1%}: {', '.join(rest)}"


def _legend(names: Iterable[str]) -> Iterator[str]:
    yield (
        "0.8: with that cost free the figure is 0.8 times that with all costs. Costs overlap, so "
        "shares do not add up."
    )
    for row in map(COSTS.__getitem__, names):
        yield f"{row.name}: {row.sentence} (per {row.per}, paid by the {row.payer})"
