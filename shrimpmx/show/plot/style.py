"""How things look in every drawing: series, texts, and the colours of a page."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from shrimpmx.show.plot.chart import ONLY

# Okabe and Ito's palette without its yellow, which is too light for lines, and a grey.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7"),
    *("#e69f00", "#56b4e9", "#000000", "#777777"),
)
ONLY_COLOUR, INK, SOFT, LINE, PAPER = "#444444", "#1a1a1a", "#595959", "#d9d9d9", "#ffffff"
# What a page in the dark has instead.
DARK = {
    **dict(zip(COLOURS, ("#4aa8e0", "#f08a3c", "#2fc79a", "#e0a0c4"), strict=False)),
    "#000000": "#ffffff",
    "#777777": "#9a9a9a",
    ONLY_COLOUR: "#c4c4c4",
    INK: "#e8e8e8",
    SOFT: "#a8adb3",
    LINE: "#474c52",
    PAPER: "#16181b",
}
# Shapes of Vega, and paths within a square from -1 to 1.
MARKERS = (
    *("circle", "square", "triangle-up", "diamond", "triangle-down", "cross"),
    "M-1-.5L-.5-1L0-.5L.5-1L1-.5L.5 0L1 .5L.5 1L0 .5L-.5 1L-1 .5L-.5 0Z",
    *("triangle-left", "triangle-right"),
    "M0-1L.95-.31L.59.81L-.59.81L-.95-.31Z",
    "M0-1L.87-.5V.5L0 1L-.87.5V-.5Z",
)
# Dashes of lines, pixels drawn and left out.
LINES: tuple[list[float], ...] = ([1, 0], [6, 3], [7, 3, 1.5, 3], [1.5, 3])
# Strokes of a square of six pixels, which is repeated.
HATCHES = (
    *("", "M0 6L6 0M-1 1L1-1M5 7L7 5", "M1.5 1.5h1M4.5 4.5h1", "M0 0L6 6M-1 5L1 7M5-1L7 1"),
    *("M0 6L6 0M0 0L6 6", "M0 3H6", "M0 3H6M3 0V6", "M1.5 3a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0"),
)
# Letters of one text.
LETTERS_MAX = 800


@dataclass(frozen=True)
class SeriesStyle:
    """How a series is told from others: by colour, and by shape as well. `fill` is that of bars."""

    colour: str
    marker: str
    dash: list[float]
    fill: str


def style_of(style: int) -> SeriesStyle:
    """The look of a style; ONLY is dark grey and plain."""
    if style == ONLY:
        return SeriesStyle(ONLY_COLOUR, MARKERS[0], LINES[0], ONLY_COLOUR)
    colour, hatch = COLOURS[style % len(COLOURS)], _hatch(style)
    return SeriesStyle(
        colour,
        MARKERS[style % len(MARKERS)],
        LINES[style % len(LINES)],
        f"url(#s{style})" if hatch else colour,
    )


def _hatch(style: int) -> str:
    # Another one when colours begin anew: bars have neither marker nor line.
    return HATCHES[(style + style // len(COLOURS)) % len(HATCHES)]


def patterns(drawings: str) -> str:
    """The SVG that defines the hatches which SVG uses."""
    found = sorted({int(style) for style in re.findall(r"url\(#s(\d+)\)", drawings)})
    return "".join(
        f'<pattern id="s{style}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<rect width="6" height="6" fill="{COLOURS[style % len(COLOURS)]}"/>'
        f'<path d="{_hatch(style)}" stroke="{PAPER}" stroke-width="0.9" fill="none"/></pattern>'
        for style in found
    )


def plain(text: str) -> str:
    """A text of a result as it stands in a drawing: printable, and not endless."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text[:LETTERS_MAX])


def wrapped(text: str, letters: int) -> list[str]:
    """The lines of a text, each of about so many letters."""
    lines = (textwrap.wrap(line, letters) or [""] for line in plain(text).split("\n"))
    return [part for line in lines for part in line]


def short_words(value: float) -> str:
    """A figure with three digits, for places where there is little room."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.2g}' if abs(value) < 0.1 else f'{value:.3g}'):.6g}"
