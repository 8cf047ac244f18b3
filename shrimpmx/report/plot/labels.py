"""Labels beside spots, each where it covers no spot and no other label, as far as there is room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shrimpmx.report.plot.chart import Spot
from shrimpmx.report.plot.look import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Where a label may stand, in points from its spot's edge; the first that covers least is taken.
_OFFSETS = (
    *((4, 0), (-4, 0), (0, 8), (0, -8), (3, 8), (3, -8), (-3, 8), (-3, -8)),
    *((10, 18), (10, -18), (-10, 18), (-10, -18), (0, 22), (0, -22)),
    *((18, 32), (18, -32), (-18, 32), (-18, -32), (30, 0), (-30, 0)),
)
# A letter and a line of the labels' font, points.
_LETTER, _LINE = 4.6, 9.5
_SIZE = 7.5
# Half of an error bar's cap, points.
_CAP = 2.0
# What covering a label, and standing outside, costs beside covering an error bar (ours).
_LABEL_WEIGHT, _OUTSIDE_WEIGHT = 10.0, 100.0

Box = tuple[float, float, float, float]


def place_labels(axes: Axes, spots: Sequence[Spot], radii: Sequence[float]) -> None:
    """Write the label of each spot beside it; the spots' radii are in points."""
    at = [_points(axes, spot.x.y, spot.y.y) for spot in spots]
    taken = [
        (x - radius, y - radius, x + radius, y + radius)
        for (x, y), radius in zip(at, radii, strict=True)
    ]
    taken += [bar for spot in spots for bar in _error_bars(axes, spot)]
    labels: list[Box] = []
    inside = _inside(axes)
    for spot, (x, y), radius in zip(spots, at, radii, strict=True):
        text = plain(spot.label)
        offsets = [(_further(dx, radius), _further(dy, radius / 2)) for dx, dy in _OFFSETS]
        boxes = [_box(text, x + dx, y + dy, dx) for dx, dy in offsets]
        costs = [_cost(box, taken, labels, inside) for box in boxes]
        best = costs.index(min(costs))
        labels.append(boxes[best])
        _write(axes, text, (spot.x.y, spot.y.y), offsets[best], radius)


def _write(
    axes: Axes, text: str, spot: tuple[float, float], offset: tuple[float, float], radius: float
) -> None:
    dx, dy = offset
    line = {"arrowstyle": "-", "linewidth": 0.5, "color": "#777777"}
    label = axes.annotate(
        text,
        spot,
        xytext=offset,
        textcoords="offset points",
        ha="left" if dx > 0 else "right" if dx < 0 else "center",
        va="center",
        fontsize=_SIZE,
        # A thin line to a spot that is not right beside it.
        arrowprops=line if math.hypot(dx, dy) > radius + 12 else None,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.6, "pad": 0.4},
        zorder=5,
    )
    # The layout is done, and stays as it is.
    label.set_in_layout(False)


def _points(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Where a place of the data lies, in points from the figure's corner."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    across, up = axes.transData.transform((x, y)) * 72.0 / figure.dpi
    return float(across), float(up)


def _inside(axes: Axes) -> Box:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return (*_points(axes, left, bottom), *_points(axes, right, top))


def _error_bars(axes: Axes, spot: Spot) -> list[Box]:
    """The boxes of a spot's intervals, each as thick as its caps are long."""
    left, right = (_points(axes, x, spot.y.y) for x in (spot.x.low, spot.x.high))
    ends = [max(y, spot.y.y * 1e-3) for y in (spot.y.low, spot.y.high)]
    bottom, top = (_points(axes, spot.x.y, y) for y in ends)
    return [
        (left[0], left[1] - _CAP, right[0], right[1] + _CAP),
        (bottom[0] - _CAP, bottom[1], top[0] + _CAP, top[1]),
    ]


def _cost(box: Box, taken: Sequence[Box], labels: Sequence[Box], inside: Box) -> float:
    """How much a label there would cover, and how much of it would stand outside the axes.

    Another label counts more: two of them cannot be read. What stands outside is cut off.
    """
    outside = (box[2] - box[0]) * (box[3] - box[1]) - _shared(box, inside)
    covered = sum(_shared(box, other) for other in taken)
    unread = sum(_shared(box, other) for other in labels)
    return _OUTSIDE_WEIGHT * outside + covered + _LABEL_WEIGHT * unread


def _further(offset: float, radius: float) -> float:
    return offset + math.copysign(radius, offset) if offset else 0.0


def _box(text: str, x: float, y: float, dx: float) -> Box:
    """The box of a label whose anchor is at x, y: left of it, right of it or around it."""
    width = _LETTER * len(text)
    left = x if dx > 0 else x - width if dx < 0 else x - width / 2
    return (left, y - _LINE / 2, left + width, y + _LINE / 2)


def _shared(one: Box, other: Box) -> float:
    """The area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)
