"""What a picture shows, as data: charts of panels of series. Nothing here draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Value:
    """A figure with its 95 % interval; all three are the same where there is no interval.

    `bound`: what is known is only that it lies below. `starred`: it was measured with the CPUs at
    another distance than most.
    """

    y: float
    low: float
    high: float
    bound: bool = False
    starred: bool = False


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: where each place lies, and what it is called.

    Places of "bars" are groups of bars; those of "lines" are points of lines. `groups` are places
    that belong together: what they are called, and where their middle lies.
    """

    label: str
    words: tuple[str, ...]
    positions: tuple[float, ...]
    kind: Literal["bars", "lines"] = "bars"
    groups: tuple[tuple[str, float], ...] = ()


# The style of a series that is not one of several: all of a panel's, on this machine.
ONLY = -1


@dataclass(frozen=True)
class Series:
    """Values by the index of their place; `style` chooses colour, marker and line.

    `paper`: figures of a paper, which are drawn hollow in the style of the series they belong to.
    `missing`: places where there should be a figure and is none, with a reason in the caption.
    Series of bars with one `stack` stand on each other, in their order, and the interval of the
    last is shown as that of the whole; '': each has a bar of its own.
    """

    label: str
    values: Mapping[int, Value]
    style: int = 0
    paper: bool = False
    missing: tuple[int, ...] = ()
    stack: str = ""


@dataclass(frozen=True)
class Panel:
    """Series over one axis. `baseline` is a level to compare with; `reason`: why it is empty."""

    title: str
    axis: Axis
    y_label: str
    series: tuple[Series, ...]
    log: bool = False
    baseline: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Spot:
    """A strategy on a map: two figures with intervals, and a third that is its size."""

    label: str
    x: Value
    y: Value
    size: float | None
    style: int = 0


@dataclass(frozen=True)
class MapPanel:
    """Spots by two figures; `size_label` says what the size of a spot means, and `largest` is
    the largest one of all maps of the chart, so that sizes can be compared.
    """

    title: str
    x_label: str
    y_label: str
    size_label: str
    spots: tuple[Spot, ...]
    largest: float = 0.0
    log_y: bool = True
    reason: str = ""


@dataclass(frozen=True)
class GridCell:
    """A place of a grid by the numbers of its column and row: a figure, and what is written."""

    column: int
    row: int
    value: float
    words: str


@dataclass(frozen=True)
class GridPanel:
    """A figure over two axes as colours; where it is `even` neither of two is better.

    `columns` and `rows` are the places of the axes, `value_label` says what the figure is.
    """

    title: str
    x_label: str
    y_label: str
    value_label: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[GridCell, ...]
    even: float = 1.0
    reason: str = ""


AnyPanel = Panel | MapPanel | GridPanel
Panels = Sequence[AnyPanel]


@dataclass(frozen=True)
class Chart:
    """One picture: its file's name, the question it answers, panels, and lines below them."""

    name: str
    title: str
    panels: tuple[AnyPanel, ...]
    columns: int = 1
    caption: tuple[str, ...] = field(default=())
