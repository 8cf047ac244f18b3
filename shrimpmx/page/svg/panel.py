"""Lines and bars over places, ours with intervals and the paper's hollow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shrimpmx.page.svg.canvas import (
    HEIGHT,
    PAPER_RADIUS,
    RADIUS,
    RIGHT,
    SMALL,
    WIDTH,
    Canvas,
    figure_words,
    marker,
    number,
    room_below,
    text_width,
)
from shrimpmx.page.svg.scale import Scale, scale_of
from shrimpmx.report.plot.chart import ONLY, Axis, Panel, Series, Value
from shrimpmx.report.plot.draw_panel import STAR, stack_slots
from shrimpmx.report.plot.look import COLOURS, HATCHES, LINES, MARKERS, short_words

# Of the room of a place: what bars take of it, and a bar of its share of that.
GROUP_SHARE, BAR_SHARE = 0.82, 0.94
# Ends of the horizontal axis beyond the first and the last place: of bars, and a share of lines.
BARS_BEYOND, LINES_BEYOND = 0.6, 0.04
# An arrow says that a figure lies below a bound.
ARROW = 12.0


def draw_panel(panel: Panel, label: str) -> str:
    """The panel as SVG with this label."""
    y = scale_of(_heights(panel), HEIGHT, 16.0, panel.log)
    left = 10 + max(text_width(figure_words(tick)) for tick in y.ticks())
    x = _across(panel.axis, left)
    xs = [x.place(position) for position in panel.axis.positions]
    canvas = Canvas(label, left, room_below(panel.axis.words, xs))
    canvas.y_axis(y)
    if panel.axis.kind == "lines":
        for series in panel.series:
            _draw_line(canvas, panel, series, xs, y)
    else:
        _draw_bars(canvas, panel, x, y)
    if panel.baseline is not None:
        level = y.place(panel.baseline)
        canvas.line(left, level, canvas.right, level, "baseline")
    canvas.frame()
    canvas.places(panel.axis.words, xs)
    for words, middle in panel.axis.groups:
        canvas.words(words, x.place(middle), 11)
    return canvas.svg()


def look_words(style: int) -> str:
    """The class of a style, which gives it a colour."""
    return "only" if style == ONLY else f"s{style % len(COLOURS)}"


def marker_of(style: int) -> int:
    """The number of a style's marker."""
    return 0 if style == ONLY else style % len(MARKERS)


def dash_of(style: int) -> str:
    """The class of a style's line."""
    return "d0" if style == ONLY else f"d{style % len(LINES)}"


def hatch_of(style: int) -> int:
    """The number of a style's hatch, as in the plots; 0: none."""
    return 0 if style == ONLY else (style + style // len(COLOURS)) % len(HATCHES)


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


def _across(axis: Axis, left: float) -> Scale:
    low, high = min(axis.positions), max(axis.positions)
    beyond = BARS_BEYOND if axis.kind == "bars" else LINES_BEYOND * (high - low)
    return Scale(low - beyond, high + beyond, left, WIDTH - RIGHT)


def _draw_line(canvas: Canvas, panel: Panel, series: Series, xs: Sequence[float], y: Scale) -> None:
    look = look_words(series.style)
    order = sorted(series.values, key=lambda i: xs[i])
    spots = [(xs[i], y.place(series.values[i].y)) for i in order]
    if not series.paper and len(spots) > 1:
        way = "L".join(f"{number(a)} {number(b)}" for a, b in spots)
        canvas.path(f"M{way}", f"line {look} {dash_of(series.style)}")
    for i, (a, b) in zip(order, spots, strict=True):
        value, title = series.values[i], _title(series, panel.axis.words[i], series.values[i])
        if series.paper:
            way = marker(marker_of(series.style), a, b, PAPER_RADIUS)
            canvas.path(way, f"mark paper {look}", title)
            _bound(canvas, value, a, b, look)
            continue
        if value.low < value.high:
            canvas.interval(a, y.place(value.low), y.place(value.high))
        canvas.path(marker(marker_of(series.style), a, b, RADIUS), f"mark {look}", title)
        if value.starred:
            canvas.words(STAR, a, y.place(value.high) - 3)


def _draw_bars(canvas: Canvas, panel: Panel, x: Scale, y: Scale) -> None:
    slots = stack_slots(panel.series)
    tops = [slot not in slots[index + 1 :] for index, slot in enumerate(slots)]
    share = GROUP_SHARE / (max(slots, default=0) + 1)
    width = share * (x.end - x.start) / (x.high - x.low)
    bases = _bases(panel)
    heads = [
        {i: _head_words(value, bases[n][i]) for i, value in panel.series[n].values.items() if top}
        for n, top in enumerate(tops)
    ]
    longest = max(
        (text_width(words, SMALL) for each in heads for words in each.values()), default=0
    )
    for series, slot, base, head in zip(panel.series, slots, bases, heads, strict=True):
        offset = (slot - max(slots) / 2) * share
        for i, value in series.values.items():
            middle = x.place(panel.axis.positions[i] + offset)
            title = _title(series, panel.axis.words[i], value)
            _bar(canvas, series, value, base[i], (middle, BAR_SHARE * width), y, title)
            if i in head:
                words = head[i] if longest <= width else STAR * value.starred
                _head(canvas, series, value, base[i], middle, y, words)
        for i in series.missing:
            middle = x.place(panel.axis.positions[i] + offset)
            canvas.words("n/a", middle, canvas.bottom - 4, kind="small")


def _head_words(value: Value, base: float) -> str:
    """The figure of a bar; of a stack, whose last part stands on `base`, that of the whole."""
    return "<" * value.bound + short_words(base + value.y) + STAR * value.starred


def _bar(
    canvas: Canvas,
    series: Series,
    value: Value,
    base: float,
    across: tuple[float, float],
    y: Scale,
    title: str,
) -> None:
    middle, width = across
    low, high = y.place(max(base, y.low)), y.place(base + value.y)
    way = (
        f"M{number(middle - width / 2)} {number(low)}V{number(high)}h{number(width)}V{number(low)}z"
    )
    look = look_words(series.style)
    if series.paper:
        canvas.path(way, f"bar paper {look}", title)
        return
    canvas.path(way, f"bar {look}", title)
    if hatch_of(series.style):
        canvas.path(way, f"hatch h{hatch_of(series.style)}")


def _head(
    canvas: Canvas, series: Series, value: Value, base: float, middle: float, y: Scale, words: str
) -> None:
    """Interval and figure of a bar, or of the whole stack whose last part stands on `base`."""
    top = y.place(base + max(value.y, value.high) if value.y >= 0 else base)
    if not series.paper and value.low < value.high:
        canvas.interval(middle, y.place(base + value.low), y.place(base + value.high))
    _bound(canvas, value, middle, y.place(base + value.y), look_words(series.style))
    if words:
        canvas.words(words, middle, top - 3, kind="small")


def _bound(canvas: Canvas, value: Value, x: float, y: float, look: str) -> None:
    """An arrow downwards where all that is known is that the figure is less."""
    if value.bound:
        way = f"M{number(x)} {number(y)}v{ARROW}m-3 -4l3 4l3 -4"
        canvas.path(way, f"arrow {look}")


def _title(series: Series, place: str, value: Value) -> str:
    """What one mark says: whose it is, where, and its figure."""
    words = ("less than " if value.bound else "") + short_words(value.y)
    if value.low < value.high:
        words += f" [{short_words(value.low)}, {short_words(value.high)}]"
    return f"{', '.join(filter(None, (series.label, place)))}: {words}"
