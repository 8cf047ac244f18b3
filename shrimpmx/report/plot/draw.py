"""Pictures of charts with matplotlib, and the files that they are written to."""

from __future__ import annotations

import contextlib
import math
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from shrimpmx.native.files import write_whole
from shrimpmx.report.plot.backend import matplotlib_here
from shrimpmx.report.plot.chart import Chart, GridPanel, MapPanel
from shrimpmx.report.plot.draw_grid import draw_grid
from shrimpmx.report.plot.draw_map import draw_map, name_spots
from shrimpmx.report.plot.draw_panel import draw_panel
from shrimpmx.report.plot.look import plain
from shrimpmx.report.plot.panels import PAPER

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
DPI = 150
# A panel's size, a map's, and that of one that is alone; the legend's width.
PANEL_INCHES, MAP_INCHES, ONE_PANEL_INCHES, LEGEND_INCHES = (4.7, 3.5), (5.4, 4.4), (6.6, 4.8), 2.2
# Letters per inch: of the caption, and of the title, which is larger.
CAPTION_LETTERS, TITLE_LETTERS = 14.0, 9.5
LEGEND_LETTERS = 28
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.5,
    # The same result gives the same file.
    "svg.hashsalt": "shrimpmx",
}


def figure_of(chart: Chart) -> Figure:
    """The chart as a matplotlib figure. MachineError without matplotlib."""
    with _settings():
        return _figure(chart)


def save(chart: Chart, directory: Path, formats: Sequence[str]) -> list[Path]:
    """Write the chart into `directory`; the files. MachineError if they cannot be written."""
    paths = []
    with _settings():
        figure = _figure(chart)
        for name in formats:
            picture = BytesIO()
            # A date would make each file another one.
            metadata = {"Date": None} if name == "svg" else {}
            figure.savefig(picture, format=name, dpi=DPI, metadata=metadata)
            paths.append(directory / f"{chart.name}.{name}")
            write_whole(paths[-1], picture.getvalue(), "give another directory with --output")
    return paths


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """Our settings whatever a user's are; no warnings of letters that the font lacks."""
    matplotlib = matplotlib_here()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def _figure(chart: Chart) -> Figure:
    from matplotlib.figure import Figure

    columns = max(1, min(chart.columns, len(chart.panels)))
    rows = math.ceil(len(chart.panels) / columns)
    maps = any(isinstance(panel, MapPanel) for panel in chart.panels)
    inches = MAP_INCHES if maps else PANEL_INCHES
    inches = ONE_PANEL_INCHES if len(chart.panels) == 1 else inches
    width = inches[0] * columns + LEGEND_INCHES
    letters = int(width * CAPTION_LETTERS)
    caption = "\n".join(textwrap.fill(plain(line), letters) for line in chart.caption)
    height = inches[1] * rows + 0.5 + 0.16 * (caption.count("\n") + 1)
    figure = Figure(figsize=(width, height), layout="constrained")
    title = textwrap.fill(chart.title, int((width - LEGEND_INCHES) * TITLE_LETTERS))
    figure.suptitle(plain(title), x=0.01, ha="left", fontsize=12, fontweight="bold")
    handles: dict[str, Artist] = {}
    named: list[tuple[Axes, MapPanel]] = []
    for index, panel in enumerate(chart.panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        if isinstance(panel, MapPanel):
            draw_map(axes, panel, handles)
            named.append((axes, panel))
        elif isinstance(panel, GridPanel):
            draw_grid(axes, panel)
        else:
            draw_panel(axes, panel, handles)
    if handles:
        # Ours first, then the paper's.
        order = sorted(handles, key=lambda label: label.startswith(PAPER))
        figure.legend(
            [handles[label] for label in order],
            [textwrap.fill(plain(label), LEGEND_LETTERS) for label in order],
            loc="outside right upper",
            frameon=False,
            fontsize=8,
            labelspacing=0.8,
        )
    if caption:
        figure.supxlabel(caption, x=0.01, ha="left", fontsize=7.5, color="#333333")
    if named:
        figure.draw_without_rendering()  # lays it out
    for axes, panel in named:
        name_spots(axes, panel)
    return figure
