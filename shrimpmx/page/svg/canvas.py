"""The plot of a panel: its frame and marks, and the shapes that figures have."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from shrimpmx.page.svg.scale import Scale

# Of one panel, in units of which a phone shows one per pixel. Words of an axis lie within.
WIDTH, HEIGHT, RIGHT, TOP = 340, 220, 8, 16
FONT, SMALL = 11, 9
# Of a letter, as a share of its height.
LETTER = 0.58
RADIUS, PAPER_RADIUS, CAP = 3.6, 5.2, 3
# Letters of a place at the axis.
LETTERS_MOST = 26
# Words that stand aslant: by how many degrees, and how far apart at least.
ASLANT, ASLANT_APART = 50, 13.0


def number(value: float) -> str:
    """A place in the drawing: a tenth of a pixel is enough."""
    return f"{value:.1f}".removesuffix(".0")


def figure_words(value: float) -> str:
    """A figure at an axis."""
    return f"{float(f'{value:.10g}'):,.10g}"


def text_width(words: str, size: float = FONT) -> float:
    """About how wide words are."""
    return len(words) * size * LETTER


def shortened(words: str, most: int = LETTERS_MOST) -> str:
    """Words of at most so many letters."""
    return words if len(words) <= most else words[: most - 1] + "…"


class Canvas:
    """An SVG with the plot's frame in it; `left` and `bottom` are the room for words beside it."""

    def __init__(self, label: str, left: float, bottom: float, height: float = HEIGHT) -> None:
        self.left, self.top = left, float(TOP)
        self.right, self.bottom = float(WIDTH - RIGHT), height
        whole = number(height + bottom)
        self.root = Xml.Element(
            "svg", {"viewBox": f"0 0 {WIDTH} {whole}", "role": "img", "aria-label": label}
        )

    def svg(self) -> str:
        """The drawing as text."""
        return Xml.tostring(self.root, encoding="unicode")

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line of a class of the page's style."""
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        Xml.SubElement(self.root, "line", {n: number(v) for n, v in ends.items()} | {"class": kind})

    def path(self, way: str, kind: str, title: str = "") -> Xml.Element:
        """A path; `title` is what a reader sees who points at it."""
        found = Xml.SubElement(self.root, "path", {"d": way, "class": kind})
        if title:
            Xml.SubElement(found, "title").text = title
        return found

    def words(
        self, text: str, x: float, y: float, anchor: str = "middle", turn: int = 0, kind: str = ""
    ) -> None:
        """Words at a place, turned by so many degrees, of a class of the page's style."""
        place = {"x": number(x), "y": number(y), "text-anchor": anchor}
        if kind:
            place["class"] = kind
        if turn:
            place["transform"] = f"rotate({turn} {number(x)} {number(y)})"
        Xml.SubElement(self.root, "text", place).text = text

    def y_axis(self, scale: Scale) -> None:
        """Lines across the plot with their figures."""
        for tick in scale.ticks():
            y = scale.place(tick)
            self.line(self.left, y, self.right, y, "grid")
            self.words(figure_words(tick), self.left - 5, y + 4, "end")

    def x_axis(self, scale: Scale) -> None:
        """Lines up the plot with their figures, those that have room."""
        last = -math.inf
        for tick in scale.ticks():
            x, words = scale.place(tick), figure_words(tick)
            self.line(x, self.top, x, self.bottom, "grid")
            if x - text_width(words) / 2 > last:
                self.words(words, x, self.bottom + 15)
                last = x + text_width(words) / 2 + FONT

    def frame(self) -> None:
        """The axes themselves."""
        self.line(self.left, self.bottom, self.right, self.bottom, "axis")
        self.line(self.left, self.top, self.left, self.bottom, "axis")

    def places(self, words: Sequence[str], xs: Sequence[float]) -> None:
        """What places are called, below the plot; aslant where they would touch."""
        flat = not touch(words, xs)
        last = -math.inf
        for x, each in sorted(zip(xs, map(shortened, words), strict=True)):
            if flat:
                self.words(each, x, self.bottom + 15)
            elif x - last > ASLANT_APART:
                self.words(each, x + 4, self.bottom + 12, "end", -ASLANT)
                last = x

    def interval(self, x: float, low: float, high: float) -> None:
        """An upright interval with its ends."""
        way = f"M{number(x)} {number(low)}V{number(high)}"
        for y in (low, high):
            way += f"M{number(x - CAP)} {number(y)}h{2 * CAP}"
        self.path(way, "interval")


def touch(words: Sequence[str], xs: Sequence[float]) -> bool:
    """Whether words that lie flat at these places would touch each other, or the drawing's end."""
    order = sorted(zip(xs, (text_width(shortened(each)) for each in words), strict=True))
    ends = [(x - width / 2, x + width / 2) for x, width in order]
    close = any(right + 4 > left for (_, right), (left, _) in itertools.pairwise(ends))
    return close or any(left < 0 or right > WIDTH for left, right in ends)


def room_below(words: Sequence[str], xs: Sequence[float]) -> float:
    """How much of the drawing the words of places take."""
    if not touch(words, xs):
        return 22.0
    return 18 + math.sin(math.radians(ASLANT)) * max(text_width(shortened(each)) for each in words)


def marker(index: int, x: float, y: float, radius: float) -> str:
    """The path of a marker, which has its own shape for each index."""
    if index == 0:
        r = number(radius)
        return f"M{number(x - radius)} {number(y)}a{r} {r} 0 1 0 {number(2 * radius)} 0" + (
            f"a{r} {r} 0 1 0 {number(-2 * radius)} 0z"
        )
    corners = _SHAPES[(index - 1) % len(_SHAPES)]
    return (
        "M"
        + "L".join(f"{number(x + radius * a)} {number(y - radius * b)}" for a, b in corners)
        + "z"
    )


def _polygon(count: int, first: float) -> list[tuple[float, float]]:
    """Corners at equal distances, the first one at so many degrees."""
    angles = [math.radians(first + 360 * number / count) for number in range(count)]
    return [(1.15 * math.cos(angle), 1.15 * math.sin(angle)) for angle in angles]


def _cross(turn: float) -> list[tuple[float, float]]:
    arms = [(0.35, 1.1), (0.35, 0.35), (1.1, 0.35)]
    corners = [*arms, *((x, -y) for x, y in reversed(arms))]
    corners += [(-x, y) for x, y in reversed(corners)]
    angle = math.radians(turn)
    return [
        (x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle))
        for x, y in corners
    ]


# Those of the plots' markers behind the circle: square, triangle, diamond, and so on.
_SHAPES = [
    *(_polygon(4, 45), _polygon(3, 90), _polygon(4, 0), _polygon(3, 270), _cross(0), _cross(45)),
    *(_polygon(3, 180), _polygon(3, 0), _polygon(5, 90), _polygon(6, 90)),
]
