"""Maps and grids: figures by two others, and figures over two axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shrimpmx.page.svg.canvas import (
    FONT,
    HEIGHT,
    RIGHT,
    SMALL,
    WIDTH,
    Canvas,
    figure_words,
    marker,
    number,
    shortened,
    text_width,
)
from shrimpmx.page.svg.panel import look_words
from shrimpmx.page.svg.scale import scale_of
from shrimpmx.report.plot.chart import GridPanel, MapPanel, Spot
from shrimpmx.report.plot.draw_grid import LEAST_SPREAD, distance
from shrimpmx.report.plot.draw_map import LOG_SPOTS
from shrimpmx.report.plot.look import short_words

# Radii of the smallest and the largest spot.
SPOT_RADII = (3.5, 13.0)
ROOM = 0.12
# The strongest colour of a cell lets its words be read.
STRONGEST = 0.7
ROW_HEIGHT = 30.0
LETTERS_OF_ROW = 18


def draw_map(panel: MapPanel, label: str) -> str:
    """The map as SVG; spots with a name have its number beside them, from 1."""
    xs = [end for spot in panel.spots for end in (spot.x.low, spot.x.y, spot.x.high)]
    ys = [end for spot in panel.spots for end in (spot.y.low, spot.y.y, spot.y.high)]
    y = scale_of(ys, HEIGHT, 16.0, panel.log_y and min(ys) > 0, ROOM, zero=False)
    left = 10 + max(text_width(figure_words(tick)) for tick in y.ticks())
    log = min(xs) > 0 and max(xs) / min(xs) >= LOG_SPOTS
    x = scale_of(xs, left, WIDTH - RIGHT, log, ROOM, zero=False)
    canvas = Canvas(label, left, 22.0)
    canvas.y_axis(y)
    canvas.x_axis(x)
    canvas.frame()
    places = [(x.place(spot.x.y), y.place(spot.y.y)) for spot in panel.spots]
    for spot, (a, b) in zip(panel.spots, places, strict=True):
        shape = marker(0, a, b, radius_of(spot, panel.largest))
        canvas.path(shape, f"spot {look_words(spot.style)}", spot_words(spot, panel))
        canvas.interval(a, y.place(spot.y.low), y.place(spot.y.high))
        canvas.path(
            f"M{number(x.place(spot.x.low))} {number(b)}H{number(x.place(spot.x.high))}", "interval"
        )
    for words, a, b in _together(panel, places):
        canvas.words(words, a, b, "start", kind="small")
    return canvas.svg()


def _together(
    panel: MapPanel, places: Sequence[tuple[float, float]]
) -> list[tuple[str, float, float]]:
    """The numbers of spots with their places, where no others stand; those of spots that nearly
    cover each other stand together.
    """
    groups: list[tuple[list[str], float, float]] = []
    for words, (a, b), spot in zip(named(panel), places, panel.spots, strict=True):
        x = a + radius_of(spot, panel.largest) + 2
        near = (group for group in groups if abs(x - group[1]) < SMALL > abs(b - group[2]))
        if words and (group := next(near, None)):
            group[0].append(words)
        elif words:
            groups.append(([words], x, b))
    found: list[tuple[str, float, float]] = []
    for numbers, x, b in groups:
        words = ", ".join(numbers)
        free = (y for y in (b - 4, b + 12, b - 14, b + 22) if not _covered(words, x, y, found))
        found.append((words, x, next(free, b - 4)))
    return found


def _covered(words: str, x: float, y: float, others: Iterable[tuple[str, float, float]]) -> bool:
    right = x + text_width(words, SMALL)
    return any(
        abs(y - low) < SMALL and left < right and x < left + text_width(other, SMALL)
        for other, left, low in others
    )


def named(panel: MapPanel) -> list[str]:
    """The number of each spot that has a name, else ''."""
    count, found = 0, []
    for spot in panel.spots:
        count += bool(spot.label)
        found.append(str(count) if spot.label else "")
    return found


def radius_of(spot: Spot, largest: float) -> float:
    """Spots differ by their areas."""
    share = max(0.0, spot.size or 0.0) / largest if largest > 0 else 0.0
    least, most = (radius**2 for radius in SPOT_RADII)
    return math.sqrt(least + (most - least) * share)


def spot_words(spot: Spot, panel: MapPanel) -> str:
    """What a spot says."""
    words = [f"{short_words(spot.x.y)}, {short_words(spot.y.y)}"]
    if panel.size_label and spot.size is not None:
        words.append(f"{panel.size_label} {short_words(spot.size)}")
    return ": ".join(filter(None, (spot.label, "; ".join(words))))


def draw_grid(panel: GridPanel, label: str) -> str:
    """The grid as SVG: each cell has its words, and is the darker the further it is from even."""
    names = [shortened(row, LETTERS_OF_ROW) for row in panel.rows]
    left = 10 + max(map(text_width, names), default=0.0)
    bottom = 16 + ROW_HEIGHT * len(panel.rows)
    width = (WIDTH - RIGHT - left) / max(1, len(panel.columns))
    canvas = Canvas(label, left, 22.0, bottom)
    limit = math.log(max([LEAST_SPREAD, *(distance(c.value, panel.even) for c in panel.cells)]))
    for cell in panel.cells:
        x, y = left + cell.column * width, bottom - (cell.row + 1) * ROW_HEIGHT
        ratio = math.log(cell.value / panel.even)
        way = f"M{number(x)} {number(y)}h{number(width)}v{number(ROW_HEIGHT)}h{number(-width)}z"
        shape = canvas.path(way, "cell above" if ratio > 0 else "cell below")
        shape.set("fill-opacity", f"{STRONGEST * abs(ratio) / limit:.2f}")
        lines = cell.words.split("\n")
        for number_, line in enumerate(lines):
            middle = y + ROW_HEIGHT / 2 + 4 + (number_ - (len(lines) - 1) / 2) * FONT
            canvas.words(line, x + width / 2, middle)
    for row, words in enumerate(names):
        canvas.words(words, left - 5, bottom - (row + 0.5) * ROW_HEIGHT + 4, "end")
    most = int(width / text_width("x"))
    for column, words in enumerate(panel.columns):
        canvas.words(shortened(words, max(2, most)), left + (column + 0.5) * width, bottom + 15)
    return canvas.svg()
