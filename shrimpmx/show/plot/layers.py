"""Parts that drawings are made of, as Vega-Lite: scales, axes, marks and legends."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shrimpmx.show.plot.style import wrapped

# A part of a specification, and a mark's fields.
Spec = dict[str, Any]
Row = Mapping[str, Any]

# The plot of a panel, pixels; a letter's width, and those of a line at either axis.
WIDTH, HEIGHT = 300, 200
LETTER, LABEL_LETTERS = 5.5, 40
SYMBOL, SMALL = 60, 9
# Length of the ends of an interval's bar, pixels.
TICK = 6
# A row's fields by which a symbol looks, and channels of other names.
SYMBOL_FIELDS = ("fill", "stroke", "shape", "size", "fillOpacity")
CHANNELS = {"dash": "strokeDash"}
# A line of a legend.
ROW_HEIGHT, ROW_GAP = 13, 5
# Letters of a place at a horizontal axis, in all and in a line.
PLACE_LETTERS, PLACE_LINE = 60, 14
# Words that stand aslant, and how far apart they are at least.
ASLANT, ASLANT_APART = -40, 16.0


def scale_of(
    figures: Iterable[float], log: bool = False, room: float = 0.08, zero: bool = True
) -> Spec:
    """The scale of some figures, with `room` behind the last as a share of it, and before the first
    one, too, unless a linear one begins at `zero`.
    """
    known = [figure for figure in figures if figure > 0 or not log]
    low, high = min(known, default=1.0), max(known, default=10.0)
    if log:
        low = min(low, high / 5)  # has two ticks at least
        factor = (high / low) ** room
        return {"type": "log", "domain": [low / factor, high * factor], "clamp": True}
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    span = high - low or abs(high) or 1.0
    low = low - room * span if low < 0 or not zero else low
    return {"domain": [low, high + room * span], "nice": False, "zero": False}


def share_of(figure: float, scale: Spec) -> float:
    """Where a figure lies between the ends of a scale."""
    low, high = scale["domain"]
    if "type" in scale:
        return math.log(max(figure, low) / low) / math.log(high / low)
    return float((figure - low) / (high - low))


def figures_at(channel: str, label: str, scale: Spec) -> Spec:
    """An axis of figures; `channel` is x or y."""
    low, high = scale["domain"]
    axis: Spec = {"format": ",.10~g", "tickCount": 6, "title": wrapped(label, LABEL_LETTERS)}
    if scale.get("type") == "log":
        # Between powers of ten where there are few of them.
        digits = (1, 2, 5) if high / low < 1000 else (1,)
        ticks = [digit * 10.0**power for power in range(-12, 19) for digit in digits]
        axis |= {"values": [tick for tick in ticks if low <= tick <= high], "tickCount": 9}
    return {channel: {"field": channel, "type": "quantitative", "scale": scale, "axis": axis}}


def places_at(
    channel: str,
    label: str,
    words: Sequence[str],
    positions: Sequence[float],
    domain: tuple[float, float],
) -> Spec:
    """An axis of places with names; below the plot they stand aslant where they would touch."""
    axis: Spec = {"values": list(positions), "grid": False, "title": wrapped(label, LABEL_LETTERS)}
    xs = [WIDTH * each / (domain[1] - domain[0]) for each in positions]
    short = [_short(word) for word in words]
    lines = [wrapped(word, PLACE_LINE) for word in short]
    if channel == "x" and _touch(lines, xs):
        lines = _aslant(short, xs)
        axis |= {"labelAngle": ASLANT, "labelAlign": "right", "labelBaseline": "middle"}
    names, at = json.dumps(lines), json.dumps(list(positions))
    axis["labelExpr"] = f"{names}[indexof({at}, datum.value)]"
    ends = {"domain": list(domain), "nice": False, "zero": False}
    return {channel: {"field": channel, "type": "quantitative", "scale": ends, "axis": axis}}


def _short(word: str) -> str:
    word = " ".join(word.split()) or " "
    return word if len(word) <= PLACE_LETTERS else f"{word[: PLACE_LETTERS - 1]}…"


def _touch(words: Sequence[Sequence[str]], xs: Sequence[float]) -> bool:
    """Whether words that lie flat at these pixels would touch each other."""
    order = sorted((x, LETTER * max(map(len, lines))) for x, lines in zip(xs, words, strict=True))
    pairs = itertools.pairwise(order)
    return any(right - left < (one + other) / 2 + LETTER for (left, one), (right, other) in pairs)


def _aslant(words: Sequence[str], xs: Sequence[float]) -> list[list[str]]:
    """The words in as many lines as there is room for, without those that have room for none."""
    order = sorted(range(len(words)), key=lambda i: xs[i])
    room = min((xs[b] - xs[a] for a, b in itertools.pairwise(order)), default=math.inf)
    most = max(1.0, room // ASLANT_APART)
    shown, last = [[""] for _ in words], -math.inf
    for index in order:
        if xs[index] - last >= ASLANT_APART:
            tries = (wrapped(words[index], n) for n in range(PLACE_LINE, PLACE_LETTERS + 1))
            shown[index], last = next(each for each in tries if len(each) <= most), xs[index]
    return shown


def layer(rows: Sequence[Row], mark: str | Spec, *fields: str, **encoding: Any) -> Spec:
    """Marks at the rows' x and y. Of their other properties the `fields` of rows say what they
    are, as they stand; `encoding` has what is more.
    """
    literal = {CHANNELS.get(each, each): raw(each) for each in fields}
    if any("title" in row for row in rows):
        encoding["description"] = {"field": "title", "type": "nominal"}
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": literal | encoding}


def raw(field: str) -> Spec:
    """A property that is what a field says, as it stands."""
    scale = {} if field == "text" else {"scale": None}  # words have none
    return {"field": field, "type": "nominal", **scale}


def intervals(rows: Sequence[Row], channel: str = "y") -> Spec:
    """The intervals of rows, from their low to their high end."""
    ends = {
        channel: {"field": "low", "type": "quantitative"},
        f"{channel}2": {"field": "high"},
    }
    silent = {"aria": False, "opacity": 1}  # the mark itself says it
    mark = {"type": "errorbar", "ticks": {"size": TICK, "thickness": 1, **silent}, "rule": silent}
    return layer([row for row in rows if row["low"] < row["high"]], mark, **ends)


def words_at(rows: Sequence[Row], **mark: Any) -> Spec:
    """The text of rows at their places."""
    shape = {"type": "text", "fontSize": SMALL, "aria": False, **mark}
    return layer(rows, shape, "text")


@dataclass(frozen=True)
class Sample:
    """A row of a legend: a symbol with its properties, if there is one, and what it means."""

    label: str
    symbol: Spec


def legend(samples: Sequence[Sample], letters: int) -> list[Spec]:
    """A drawing of a legend, if there is any."""
    rows: list[Spec] = []
    y = 0.0
    for sample in samples:
        lines = wrapped(sample.label, letters)
        radius = sample.symbol.get("size", SYMBOL) ** 0.5 / 2
        y += max(0.0, radius - ROW_HEIGHT / 2)
        middle = y + ROW_HEIGHT / 2
        rows.append(
            {
                "x": 12,
                "y": middle,
                "size": SYMBOL,
                "text": lines,
                "title": " ".join(lines),
                **sample.symbol,
            }
        )
        y += max(ROW_HEIGHT * len(lines), ROW_HEIGHT / 2 + radius) + ROW_GAP
    if not rows:
        return []
    symbols = [row for row in rows if "shape" in row]
    ends = [
        {**row, "n": n, "x": x} for n, row in enumerate(symbols) if "dash" in row for x in (0, 24)
    ]
    layers = [
        layer(ends, {"type": "line", "aria": False}, "stroke", "dash", detail={"field": "n"}),
        layer(symbols, {"type": "point", "aria": False, "opacity": 1}, *SYMBOL_FIELDS),
        layer(rows, {"type": "text", "align": "left", "baseline": "middle", "dx": 20}, "text"),
    ]
    place = {each: {"field": each, "type": "quantitative", "scale": None} for each in "xy"}
    view = {"stroke": None}
    return [{"width": 26, "height": y, "view": view, "layer": layers, "encoding": place}]
