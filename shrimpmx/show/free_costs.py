"""The effect of each cost of a host, from points that had it free (`free_cost`).

A share is the figure with that cost free, divided by the figure with all costs charged. Costs that
overlap in time each show less than they take, so shares do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shrimpmx.costs.table import ALL_CHARGED, COSTS, FREE_COST
from shrimpmx.results.metrics import shown_figures
from shrimpmx.results.words import place_words

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
            lines += [f"{metric}, {words}" if words else metric, *_table(shares)]
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


def _table(shares: Mapping[str, float]) -> Iterator[str]:
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
