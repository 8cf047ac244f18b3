"""Maps and grids: figures by two others, and figures over two axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from shrimpmx.show.plot.chart import AnyPanel, GridPanel, MapPanel, Spot, Value
from shrimpmx.show.plot.layers import (
    HEIGHT,
    LETTER,
    SMALL,
    TICK,
    WIDTH,
    Row,
    Sample,
    Spec,
    figures_at,
    intervals,
    layer,
    places_at,
    scale_of,
    share_of,
    words_at,
)
from shrimpmx.show.plot.style import COLOURS, LINE, PAPER, plain, short_words, style_of

# Areas of the smallest and the largest spot, pixels.
SPOT_AREA = (40.0, 520.0)
# Spots that lie further apart than this have a logarithmic axis.
LOG_SPOTS = 4.0
# Room around spots, as a share of an axis; spots this near, in pixels, are named together.
ROOM, NEAR = 0.12, 6.0
# Between words and the ends of an interval's bar, pixels.
CLEAR = 2.0
# Colours run at least as far as to this ratio, so that noise is not shown in full colour (ours);
# the strongest one lets the words on it be read.
LEAST_SPREAD, STRONGEST = 1.25, 0.7
BELOW, ABOVE = COLOURS[0], COLOURS[4]
ROW_HEIGHT = 30

# A middle and a radius, pixels from the plot's left upper corner.
Circle = tuple[float, float, float]
# The left end, the height of the middle, and the width of words.
Box = tuple[float, float, float]
# Left, upper, right and lower end.
Area = tuple[float, float, float, float]


def numbers_of(panels: Iterable[AnyPanel]) -> dict[str, str]:
    """The numbers by which spots with a name are named on the maps of a chart."""
    maps = [panel for panel in panels if isinstance(panel, MapPanel)]
    names = dict.fromkeys(spot.label for panel in maps for spot in panel.spots if spot.label)
    return {name: str(number) for number, name in enumerate(names, 1)}


def map_spec(panel: MapPanel, numbers: Mapping[str, str]) -> Spec:
    """The map as a view; spots with a name have its number beside them."""
    x = _scale([spot.x for spot in panel.spots])
    log_y = panel.log_y and min(spot.y.low for spot in panel.spots) > 0
    y = scale_of(_ends(spot.y for spot in panel.spots), log_y, ROOM, zero=False)
    rows = [
        {
            "x": spot.x.y,
            "y": spot.y.y,
            "size": area_of(spot.size, panel.largest),
            "fill": style_of(spot.style).colour,
            "title": spot_words(spot, panel),
        }
        for spot in panel.spots
    ]
    beside = {"dx": {"expr": "datum.dx"}, "dy": {"expr": "datum.dy"}}
    mark = {"type": "circle", "opacity": 0.75, "stroke": PAPER}
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            layer(rows, mark, "fill", "size"),
            *(intervals(_bars(panel, channel), channel) for channel in "xy"),
            words_at(list(_named(panel, numbers, x, y)), baseline="middle", **beside),
        ],
        "encoding": figures_at("x", panel.x_label, x) | figures_at("y", panel.y_label, y),
    }


def map_samples(panel: MapPanel, numbers: Mapping[str, str]) -> Iterator[Sample]:
    """The names of spots by their numbers, and what sizes mean."""
    for spot in sorted(panel.spots, key=lambda spot: int(numbers.get(spot.label, 0))):
        if spot.label:
            yield Sample(
                f"{numbers[spot.label]} {spot.label}", _circle(style_of(spot.style).colour)
            )
    if panel.size_label and panel.largest > 0:
        yield Sample(f"{panel.size_label.replace(chr(10), ' ')}:", {})
        for share in (1.0, 0.5, 0.1):
            size = panel.largest if share == 1 else float(f"{panel.largest * share:.1g}")
            grey = _circle(COLOURS[7]) | {"size": area_of(size, panel.largest)}
            yield Sample(short_words(size), grey)


def _circle(colour: str) -> Spec:
    return {"shape": "circle", "fill": colour, "stroke": PAPER, "fillOpacity": 0.75}


def _scale(values: Sequence[Value]) -> Spec:
    least, most = min(each.y for each in values), max(each.y for each in values)
    log = min(each.low for each in values) > 0 and most / least >= LOG_SPOTS
    return scale_of(_ends(values), log, ROOM, zero=False)


def _ends(values: Iterable[Value]) -> Iterator[float]:
    for each in values:
        yield from (each.y, each.low, each.high)


def _bars(panel: MapPanel, channel: str) -> list[Row]:
    found: list[Row] = []
    for spot in panel.spots:
        value = spot.x if channel == "x" else spot.y
        found.append({"x": spot.x.y, "y": spot.y.y, "low": value.low, "high": value.high})
    return found


def _named(panel: MapPanel, numbers: Mapping[str, str], x: Spec, y: Spec) -> Iterator[Row]:
    """The numbers of spots beside them; those of spots that nearly cover each other together."""
    circles = [
        (WIDTH * share_of(spot.x.y, x), HEIGHT * (1 - share_of(spot.y.y, y)), _radius(spot, panel))
        for spot in panel.spots
    ]
    bars = [bar for spot in panel.spots for bar in _bar_areas(spot, x, y)]
    groups: list[tuple[list[str], Spot, Circle]] = []
    for spot, circle in zip(panel.spots, circles, strict=True):
        near = (each for each in groups if math.dist(circle[:2], each[2][:2]) < NEAR)
        if spot.label and (group := next(near, None)):
            group[0].append(numbers[spot.label])
        elif spot.label:
            groups.append(([numbers[spot.label]], spot, circle))
    taken: list[Box] = []
    for found, spot, circle in groups:
        words = ", ".join(found)
        boxes = _beside(circle, LETTER * len(words))
        taken.append(min(boxes, key=lambda box: _covers(box, circles, [*bars, *map(_area, taken)])))
        left, middle, width = taken[-1]
        dx, dy = left + width / 2 - circle[0], middle - circle[1]
        yield {"x": spot.x.y, "y": spot.y.y, "text": words, "dx": dx, "dy": dy}


def _beside(circle: Circle, width: float) -> Iterator[Box]:
    """Where words of a width may stand, the best places first."""
    x, y, radius = circle
    for away in (0.0, SMALL, 2 * SMALL):
        for up in (0, -radius, radius, -radius - SMALL, radius + SMALL):
            yield x + radius + 3 + away, y + up, width
            yield x - radius - 3 - away - width, y + up, width
            if up:
                yield x - width / 2, y + up + math.copysign(SMALL + away, up), width


def _covers(box: Box, circles: Sequence[Circle], areas: Sequence[Area]) -> int:
    """How many spots and areas the words would touch, and ends of the plot."""
    left, top, right, bottom = _area(box)
    touched = [
        left - radius < x < right + radius and top - radius < y < bottom + radius
        for x, y, radius in circles
    ]
    touched += [x < right and left < x2 and y < bottom and top < y2 for x, y, x2, y2 in areas]
    return sum((*touched, left < 0, top < 0, right > WIDTH, bottom > HEIGHT))


def _area(box: Box) -> Area:
    left, middle, width = box
    return left, middle - SMALL / 2, left + width, middle + SMALL / 2


def _bar_areas(spot: Spot, x: Spec, y: Spec) -> Iterator[Area]:
    """What the bars of a spot's intervals cover, with their ends and what stays clear of them."""
    middle, height = WIDTH * share_of(spot.x.y, x), HEIGHT * (1 - share_of(spot.y.y, y))
    if spot.x.low < spot.x.high:
        left, right = (WIDTH * share_of(end, x) for end in (spot.x.low, spot.x.high))
        yield left - CLEAR, height - TICK / 2, right + CLEAR, height + TICK / 2
    if spot.y.low < spot.y.high:
        top, bottom = (HEIGHT * (1 - share_of(end, y)) for end in (spot.y.high, spot.y.low))
        yield middle - TICK / 2, top - CLEAR, middle + TICK / 2, bottom + CLEAR


def _radius(spot: Spot, panel: MapPanel) -> float:
    return math.sqrt(area_of(spot.size, panel.largest)) / 2


def area_of(size: float | None, largest: float) -> float:
    """Spots differ by their areas."""
    share = max(0.0, size or 0.0) / largest if largest > 0 else 0.0
    return SPOT_AREA[0] + (SPOT_AREA[1] - SPOT_AREA[0]) * share


def spot_words(spot: Spot, panel: MapPanel) -> str:
    """What a spot says."""
    words = [f"{short_words(spot.x.y)}, {short_words(spot.y.y)}"]
    if panel.size_label and spot.size is not None:
        words.append(f"{panel.size_label} {short_words(spot.size)}".replace("\n", " "))
    return plain(": ".join(filter(None, (spot.label, "; ".join(words)))))


def grid_spec(panel: GridPanel) -> Spec:
    """The grid as a view: each cell has its words, and is darker the further it is from even."""
    limit = math.log(max([LEAST_SPREAD, *(_distance(c.value, panel.even) for c in panel.cells)]))
    rows = []
    for cell in panel.cells:
        ratio = math.log(cell.value / panel.even)
        rows.append(
            {
                "x": cell.column,
                "y": cell.row,
                "left": cell.column - 0.5,
                "right": cell.column + 0.5,
                "low": cell.row - 0.5,
                "high": cell.row + 0.5,
                "fill": ABOVE if ratio > 0 else BELOW,
                "fillOpacity": round(STRONGEST * abs(ratio) / limit, 3),
                "text": plain(cell.words).split("\n"),
            }
        )
    box = {
        "x": {"field": "left", "type": "quantitative"},
        "y": {"field": "low", "type": "quantitative"},
        "x2": {"field": "right"},
        "y2": {"field": "high"},
    }
    axes: Spec = {}
    for channel, label, names in (
        ("x", panel.x_label, panel.columns),
        ("y", panel.y_label, panel.rows),
    ):
        places = tuple(map(float, range(len(names))))
        axes |= places_at(channel, label, names, places, (-0.5, len(names) - 0.5))
    return {
        "width": WIDTH,
        "height": max(HEIGHT / 2, ROW_HEIGHT * len(panel.rows)),
        "layer": [
            layer(rows, {"type": "rect", "stroke": LINE}, "fill", "fillOpacity", **box),
            words_at(rows, baseline="middle", dy={"expr": "6 - 6 * length(datum.text)"}),
        ],
        "encoding": axes,
    }


def grid_samples(panel: GridPanel) -> Iterator[Sample]:
    """What the words and colours of cells mean."""
    yield Sample(f"In each cell: {panel.value_label}", {})
    for words, colour in (("more", ABOVE), ("less", BELOW)):
        box = {
            "shape": "square",
            "fill": colour,
            "stroke": LINE,
            "fillOpacity": STRONGEST,
            "size": 110,
        }
        yield Sample(f"{words} than {short_words(panel.even)}", box)


def _distance(value: float, even: float) -> float:
    """How many times the greater of the two is as large as the other."""
    return max(value / even, even / value)
