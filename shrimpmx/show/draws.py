"""Figures under draws of a fitted platform's costs: their spread, and how often each setting of
an axis is the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from shrimpmx.results.metrics import METRICS, shown_figures
from shrimpmx.results.words import number_words, place_words, titled, unit_words, value_words
from shrimpmx.settings.platform import DRAW
from shrimpmx.show.axis_layout import axis_layout

Document = Mapping[str, Any]
# The ends of the interval that holds 95 % of the draws.
ENDS = (2.5, 97.5)
# By place, without the draw: the figures of a metric, by draw.
Figures = Mapping[tuple[tuple[str, Any], ...], Mapping[int, float]]


def most_probable(document: Document) -> Document:
    """The result without its points under draws; as it is, if it has no others."""
    points = [
        {**point, "params": _without_draw(point["params"])}
        for point in document["points"]
        if point["params"].get(DRAW) == 0
    ]
    if not points:
        return document
    layout = dict(document.get("layout", {}))
    layout["axes"] = [axis for axis in layout.get("axes", ()) if axis != DRAW]
    return {**document, "points": points, "layout": layout}


def draw_lines(document: Document) -> Iterator[str]:
    """For each metric and place the median under draws, with the interval that holds 95 % of them;
    and of each setting of the compared axis, under how many it is the best.
    """
    layout = axis_layout(most_probable(document))
    axes = [axis for axis in layout.axes if axis != DRAW]
    compared = layout.columns if layout.columns != DRAW else None
    for metric in dict.fromkeys(name for point in document["points"] for name in point["metrics"]):
        figures = _figures(document, metric, axes)
        if not figures:
            continue
        known = METRICS.get(metric)
        unit = unit_words(known.unit if known else "")
        title = titled(known.title if known else metric, unit)
        if all(len(set(by_draw.values())) == 1 for by_draw in figures.values()):
            yield f"{title}: the same under all draws"
            continue
        yield title
        for place, by_draw in figures.items():
            words = ", ".join(place_words(axis, value) for axis, value in place)
            yield f"  {words or 'the only point'}: {_spread_words(list(by_draw.values()))}"
        if compared and known and known.better:
            yield from _best_lines(figures, compared, higher=known.better == "higher")


def _figures(document: Document, metric: str, axes: Sequence[str]) -> Figures:
    found: dict[tuple[tuple[str, Any], ...], dict[int, float]] = {}
    for point in document["points"]:
        draw, params = point["params"].get(DRAW, 0), point["params"]
        shown = shown_figures(point["metrics"].get(metric, {}))
        if draw > 0 and "median" in shown:
            place = tuple((axis, _plain(params.get(axis))) for axis in axes)
            found.setdefault(place, {})[draw] = shown["median"]
    return found


def _spread_words(values: Sequence[float]) -> str:
    low, high = np.percentile(values, ENDS)
    middle = number_words(float(np.median(values)))
    return f"{middle} [{number_words(float(low))}, {number_words(float(high))}]"


def _best_lines(figures: Figures, compared: str, *, higher: bool) -> Iterator[str]:
    """Of places that differ in the compared axis only: which is the best, under how many draws."""
    rows: dict[tuple[tuple[str, Any], ...], dict[Any, Mapping[int, float]]] = {}
    for place, by_draw in figures.items():
        rest = tuple(each for each in place if each[0] != compared)
        rows.setdefault(rest, {})[dict(place)[compared]] = by_draw
    for rest, settings in rows.items():
        if len(settings) < 2:
            continue
        draws = set.intersection(*(set(by_draw) for by_draw in settings.values()))
        wins: Counter[str] = Counter()
        for draw in sorted(draws):
            best = (max if higher else min)(by_draw[draw] for by_draw in settings.values())
            alike = [setting for setting, by_draw in settings.items() if by_draw[draw] == best]
            wins[" = ".join(value_words(compared, setting) for setting in alike)] += 1
        counted = ", ".join(f"{words} under {count}" for words, count in wins.most_common())
        where = ", ".join(place_words(axis, value) for axis, value in rest)
        yield f"  the best{f' at {where}' if where else ''}, of {len(draws)} draws: {counted}"


def _without_draw(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != DRAW}


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
