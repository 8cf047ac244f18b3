"""Grids: a figure over two axes as colours, with what is to be known of each place in words."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from shrimpmx.report.plot.chart import GridPanel
from shrimpmx.report.plot.look import begin, plain, short_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From one side to the other, both as dark; also for eyes that see red and green alike.
COLOURS = "PuOr"
# Colours run at least as far as to this ratio, so that noise is not shown in full colour (ours).
LEAST_SPREAD = 1.25
# Words on a colour that is darker than this are white.
DARK = 0.5
# Letters of a line beside the bar of colours.
LABEL_LETTERS = 36


def draw_grid(axes: Axes, panel: GridPanel) -> None:
    """Draw a grid into `axes`, with a bar that says what the colours are."""
    if not begin(axes, panel, panel.x_label):
        return
    spread = max([LEAST_SPREAD, *(distance(cell.value, panel.even) for cell in panel.cells)])
    limit = math.log(spread)
    table = [[math.nan] * len(panel.columns) for _ in panel.rows]
    for cell in panel.cells:
        table[cell.row][cell.column] = math.log(cell.value / panel.even)
    image = axes.imshow(
        table, COLOURS, aspect="auto", origin="lower", vmin=-limit, vmax=limit, zorder=1
    )
    colours = image.to_rgba(np.array(table))
    for cell in panel.cells:
        red, green, blue, _ = colours[cell.row, cell.column]
        # Luma of ITU-R BT.601.
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < DARK
        axes.text(
            cell.column,
            cell.row,
            plain(cell.words),
            ha="center",
            va="center",
            fontsize=7,
            color="white" if dark else "black",
        )
    axes.grid(visible=False)
    axes.set_xticks(range(len(panel.columns)), [plain(words) for words in panel.columns])
    axes.set_yticks(range(len(panel.rows)), [plain(words) for words in panel.rows])
    figure = axes.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(image, ax=axes, shrink=0.9)
    ticks = [-limit, -limit / 2, 0.0, limit / 2, limit]
    bar.set_ticks(ticks, labels=[short_words(panel.even * math.exp(tick)) for tick in ticks])
    bar.set_label(plain(textwrap.fill(panel.value_label, LABEL_LETTERS)))


def distance(value: float, even: float) -> float:
    """How many times the greater of the two is as large as the other."""
    return max(value / even, even / value)
