"""Panels of lines and bars over places, ours with intervals and the paper's hollow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shrimpmx.show.plot.chart import Panel, Series, Value
from shrimpmx.show.plot.layers import (
    HEIGHT,
    SYMBOL,
    WIDTH,
    Row,
    Sample,
    Spec,
    figures_at,
    intervals,
    layer,
    places_at,
    raw,
    scale_of,
    share_of,
    words_at,
)
from shrimpmx.show.plot.style import SOFT, plain, short_words, style_of

# Follows a figure of another distance of the CPUs than most have; says that it is less.
STAR, LESS = "*", "↓"
# Of the room of a place: what bars take of it, and a bar of its share of that.
GROUP_SHARE, BAR_SHARE = 0.82, 0.94
# Ends of the horizontal axis beyond the first and the last place: of bars, and a share of lines.
BARS_BEYOND, LINES_BEYOND = 0.6, 0.04
# Areas of symbols that are larger, pixels.
LARGE = 110
# Points this near cover each other; by how much a symbol's width grows to be seen around one that
# covers it, and around each further one, pixels.
NEAR, RING, FURTHER = 4.0, 3.4, 2.0
# Between the horizontal axis and its words, pixels: its ticks, and room.
TICKS, ROOM = 5.0, 2.0
# A letter of the figures above bars, pixels.
SMALL_LETTER = 5.0


def panel_spec(panel: Panel) -> Spec:
    """The panel as a view without a title or a legend."""
    axis, bars = panel.axis, panel.axis.kind == "bars"
    scale = scale_of(_heights(panel), panel.log)
    low, high = min(axis.positions), max(axis.positions)
    beyond = BARS_BEYOND if bars or low == high else LINES_BEYOND * (high - low)
    domain = (low - beyond, high + beyond)
    if bars:
        rows, missing = _bars(panel, scale["domain"][0])
        layers = _bar_layers(rows, missing, WIDTH / (domain[1] - domain[0]))
    else:
        layers = _line_layers(rows := _ringed(list(_points(panel)), scale))
    # Symbols at its very bottom touch no words.
    radius = 0.0 if bars else max((row["size"] ** 0.5 / 2 for row in rows), default=0.0)
    places = places_at("x", axis.label, axis.words, axis.positions, domain)
    places["x"]["axis"]["labelPadding"] = max(0.0, radius - TICKS) + ROOM
    level = [] if panel.baseline is None else [{"y": panel.baseline}]
    groups = [{"x": middle, "text": plain(words)} for words, middle in axis.groups]
    dashed = {"type": "rule", "strokeDash": [2, 2], "stroke": SOFT, "aria": False}
    layers += [
        words_at([{**row, "text": LESS} for row in rows if row["bound"]], dy=9, fontSize=13),
        layer(level, dashed, x={"value": 0}, x2={"value": WIDTH}),
        words_at(groups, dy=-6) | {"encoding": {"y": {"value": 0}, "text": raw("text")}},
    ]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [each for each in layers if each["data"]["values"]],
        "encoding": figures_at("y", panel.y_label, scale) | places,
    }


def samples_of(panel: Panel) -> Iterator[Sample]:
    """The rows of its legend, ours first."""
    bars = panel.axis.kind == "bars"
    for series in sorted(panel.series, key=lambda each: each.paper):
        look = style_of(series.style)
        symbol = {
            "shape": "M-1.4-.7H1.4V.7H-1.4Z" if bars else look.marker,
            **_filling(series, bars),
        }
        if not bars and not series.paper:
            symbol |= {"dash": look.dash}
        yield Sample(series.label, symbol)


def stack_slots(series: Sequence[Series]) -> list[int]:
    """The number of each series' bar within a group; those of one stack share theirs."""
    found: dict[str, int] = {}
    names = [one.stack or f"{index} alone" for index, one in enumerate(series)]
    return [found.setdefault(name, len(found)) for name in names]


def _heights(panel: Panel) -> Iterator[float]:
    """All figures that the upright axis has to reach."""
    yield from [] if panel.baseline is None else [panel.baseline]
    for series, bases in zip(panel.series, _bases(panel), strict=True):
        for index, value in series.values.items():
            yield from (bases[index] + each for each in (value.y, value.low, value.high))


def _bases(panel: Panel) -> list[dict[int, float]]:
    """What each bar stands on, by series and place: 0, or those of its stack below it."""
    heights: dict[tuple[str, int], float] = {}
    found = []
    for series in panel.series:
        bases = {
            i: heights.get((series.stack, i), 0.0) if series.stack else 0.0 for i in series.values
        }
        heights |= {(series.stack, i): base + series.values[i].y for i, base in bases.items()}
        found.append(bases)
    return found


def _filling(series: Series, bars: bool) -> Spec:
    """Fill and stroke of a series' marks and of its sample."""
    look = style_of(series.style)
    size = LARGE if bars or series.paper else SYMBOL
    if series.paper:
        return {"fill": "transparent", "stroke": look.colour, "size": size}
    if bars:
        return {"fill": look.fill, "stroke": "transparent", "size": size}
    return {"fill": look.colour, "stroke": look.colour, "size": size}


def _points(panel: Panel) -> Iterator[Row]:
    for number, series in enumerate(panel.series):
        look = style_of(series.style)
        for i in sorted(series.values, key=lambda i: panel.axis.positions[i]):
            value = series.values[i]
            yield {
                "series": number,
                "x": panel.axis.positions[i],
                "y": value.y,
                "low": value.y if series.paper else value.low,
                "high": value.y if series.paper else value.high,
                "bound": value.bound,
                "text": STAR * value.starred,
                "title": _title(series, panel.axis.words[i], value),
                "paper": series.paper,
                "shape": look.marker,
                "dash": look.dash,
                **_filling(series, False),
            }


def _ringed(rows: Sequence[Row], scale: Spec) -> list[Row]:
    """The points, ours as large as those drawn later at their place leave them to be seen."""
    above: dict[float, list[float]] = {}
    found: list[Row] = []
    for row in reversed(rows):
        height = HEIGHT * share_of(row["y"], scale)
        others = above.setdefault(row["x"], [])
        if not row["paper"]:
            covered = sum(abs(height - other) < NEAR for other in others)
            ring = RING + FURTHER * (covered - 1) if covered else 0.0
            row = {**row, "size": (SYMBOL**0.5 + ring) ** 2}
            others.append(height)
        found.append(row)
    return found[::-1]


def _line_layers(rows: Sequence[Row]) -> list[Spec]:
    ours = [row for row in rows if not row["paper"]]
    line = {"type": "line", "strokeWidth": 1.6, "aria": False}
    starred = [{**row, "y": row["high"]} for row in ours if row["text"]]
    return [
        layer(ours, line, "stroke", "dash", detail={"field": "series"}),
        intervals(rows),
        layer(rows, {"type": "point", "opacity": 1}, "fill", "stroke", "shape", "size"),
        words_at(starred, dy=-5),
    ]


def _bars(panel: Panel, bottom: float) -> tuple[list[Row], list[Row]]:
    """A row for each bar, from left to right and from `y` down to the bottom, and one for each that
    is missing. The last of a stack has the figure and the interval of the whole, others have none.
    """
    slots = stack_slots(panel.series)
    share = GROUP_SHARE / (max(slots, default=0) + 1)
    rows: list[Row] = []
    missing: list[Row] = []
    for n, (series, bases) in enumerate(zip(panel.series, _bases(panel), strict=True)):
        middles = [place + (slots[n] - max(slots) / 2) * share for place in panel.axis.positions]
        is_top = slots[n] not in slots[n + 1 :]
        missing += [{"x": middles[i], "y": bottom, "text": "n/a"} for i in series.missing]
        for i, value in series.values.items():
            base, y = bases[i], bases[i] + value.y
            whole = is_top and not series.paper
            words = "<" * value.bound + short_words(y) if is_top else ""
            rows.append(
                {
                    "x": middles[i],
                    "left": middles[i] - share * BAR_SHARE / 2,
                    "right": middles[i] + share * BAR_SHARE / 2,
                    "y": y,
                    "bottom": max(base, bottom) if value.y >= 0 else base,
                    "low": base + value.low if whole else y,
                    "high": base + value.high if whole else y,
                    "bound": value.bound,
                    "text": words + STAR * (value.starred and is_top),
                    "title": _title(series, panel.axis.words[i], value),
                    "paper": series.paper,
                    **_filling(series, True),
                }
            )
    return rows, missing


def _bar_layers(rows: Sequence[Row], missing: Sequence[Row], pixels: float) -> list[Spec]:
    """`pixels`: the length of a unit of the horizontal axis."""
    sides = {
        "x": {"field": "left", "type": "quantitative"},
        "x2": {"field": "right"},
        "y2": {"field": "bottom"},
    }
    widest = max((len(row["text"]) for row in rows), default=0)
    fits = all(widest * SMALL_LETTER <= pixels * (row["right"] - row["left"]) for row in rows)
    dashed = {"type": "rect", "fill": None, "strokeDash": [4, 2], "strokeWidth": 1.4}
    heads = [
        {**row, "y": max(row["y"], row["high"], row["bottom"])}
        | ({} if fits else {"text": STAR * row["text"].endswith(STAR)})
        for row in rows
    ]
    return [
        layer([row for row in rows if not row["paper"]], "rect", "fill", **sides),
        layer([row for row in rows if row["paper"]], dashed, "stroke", **sides),
        intervals(rows),
        words_at([row for row in heads if row["text"]], dy=-6),
        words_at(missing, dy=-6),
    ]


def _title(series: Series, place: str, value: Value) -> str:
    """What one mark says: whose it is, where, and its figure."""
    words = ("less than " if value.bound else "") + short_words(value.y)
    if value.low < value.high:
        words += f" [{short_words(value.low)}, {short_words(value.high)}]"
    return plain(f"{', '.join(filter(None, (series.label, place)))}: {words}")
