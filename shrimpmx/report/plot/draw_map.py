"""Maps: spots by two figures, their sizes a third."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shrimpmx.report.plot.chart import MapPanel, Spot
from shrimpmx.report.plot.labels import place_labels
from shrimpmx.report.plot.look import begin, look_of, plain, plain_figures
from shrimpmx.results.words import number_words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Areas of spots, points squared.
SPOT_AREA = (25.0, 320.0)
# Spots that lie further apart than this have a logarithmic axis.
LOG_SPOTS = 4.0


def draw_map(axes: Axes, panel: MapPanel, handles: dict[str, Artist]) -> None:
    """Draw a map into `axes`; `handles` gets what its legend needs."""
    if not begin(axes, panel, panel.x_label):
        return
    if panel.log_y:
        axes.set_yscale("log")
    along = [spot.x.y for spot in panel.spots]
    if min(along) > 0 and max(along) / min(along) >= LOG_SPOTS:
        axes.set_xscale("log")
    for spot in panel.spots:
        _draw_spot(axes, spot, panel.largest)
    axes.margins(0.15)
    plain_figures(axes.yaxis)
    plain_figures(axes.xaxis)
    _add_sizes(axes, panel, handles)


def name_spots(axes: Axes, panel: MapPanel) -> None:
    """Write the name of each spot beside it, once the axes have got their place and size."""
    radii = [math.sqrt(_area(spot.size, panel.largest)) / 2 for spot in panel.spots]
    place_labels(axes, panel.spots, radii)


def _draw_spot(axes: Axes, spot: Spot, largest: float) -> None:
    colour = look_of(spot.style).colour
    across, up = (
        [[max(0.0, value.y - value.low)], [max(0.0, value.high - value.y)]]
        for value in (spot.x, spot.y)
    )
    # Circles only: areas of other shapes are hard to compare, and each has its name beside it.
    axes.scatter(
        [spot.x.y],
        [spot.y.y],
        s=_area(spot.size, largest),
        color=colour,
        edgecolor="white",
        alpha=0.7,
        label=plain(spot.label),
        zorder=3,
    )
    axes.errorbar(
        spot.x.y,
        spot.y.y,
        xerr=across,
        yerr=up,
        color="#555555",
        elinewidth=0.7,
        capsize=2,
        zorder=4,
    )


def _area(size: float | None, largest: float) -> float:
    if size is None or largest <= 0:
        return SPOT_AREA[0]
    return SPOT_AREA[0] + (SPOT_AREA[1] - SPOT_AREA[0]) * max(0.0, size) / largest


def _add_sizes(axes: Axes, panel: MapPanel, handles: dict[str, Artist]) -> None:
    """What sizes of spots mean, as rows of the legend."""
    largest = panel.largest
    if not panel.size_label or largest <= 0:
        return
    for share in (1.0, 0.5, 0.1):
        size = largest if share == 1 else float(f"{largest * share:.1g}")
        words = f"{size:,.0f}" if size == round(size) else number_words(size)
        if share == 1:  # what it is stands once
            words = f"{panel.size_label}: {words}"
        shown = axes.scatter([], [], s=_area(size, largest), color="#999999", edgecolor="white")
        handles.setdefault(words, shown)
