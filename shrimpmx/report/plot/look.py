"""How things look in every picture: series, texts and figures at axes."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shrimpmx.report.plot.chart import ONLY, AnyPanel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Okabe and Ito's palette without its yellow, which is too light for lines, and a grey.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#000000", "#777777"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
LINES = ("-", "--", "-.", ":")
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++", "oo")
# Letters of one text.
LETTERS_MAX = 800


@dataclass(frozen=True)
class Look:
    """How a series is told from others: by colour, and by shape as well."""

    colour: str
    marker: str
    line: str
    hatch: str


def look_of(style: int) -> Look:
    """The look of a style; ONLY is dark grey and plain."""
    if style == ONLY:
        return Look("#444444", "o", "-", "")
    return Look(
        COLOURS[style % len(COLOURS)],
        MARKERS[style % len(MARKERS)],
        LINES[style % len(LINES)],
        # Another one when colours begin anew: bars have neither marker nor line.
        HATCHES[(style + style // len(COLOURS)) % len(HATCHES)],
    )


def plain(text: str) -> str:
    """A text of a result as it stands in a picture: printable, not endless, and no formula."""
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in text[:LETTERS_MAX])
    return shown.replace("$", r"\$")


def begin(axes: Axes, panel: AnyPanel, x_label: str) -> bool:
    """Name a panel and its axes; False if it is empty, and says why."""
    axes.set_title(plain(textwrap.fill(panel.title, 52)), fontsize=9.5, loc="left")
    axes.set_xlabel(plain(x_label))
    axes.set_ylabel(plain(_wrapped(panel.y_label)))
    if not panel.reason:
        return True
    axes.set_xticks([])
    axes.set_yticks([])
    words = textwrap.fill(f"not available here: {panel.reason}", 40)
    axes.text(0.5, 0.5, plain(words), ha="center", va="center", transform=axes.transAxes)
    return False


def _wrapped(label: str) -> str:
    return "\n".join(textwrap.fill(line, 40) for line in label.split("\n"))


def short_words(value: float) -> str:
    """A figure with three digits, for places where there is little room."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.2g}' if abs(value) < 0.1 else f'{value:.3g}'):.6g}"


def plain_figures(axis: Axis) -> None:
    """Figures at an axis without powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if axis.get_scale() == "log":
        low, high = sorted(axis.get_view_interval())
        if high / low < 1000:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_formatter(NullFormatter())
