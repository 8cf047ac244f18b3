"""Charts as figures of a page: a drawing per panel, and as words what stands around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from shrimpmx.page.svg.canvas import PAPER_RADIUS, RADIUS, marker
from shrimpmx.page.svg.panel import dash_of, draw_panel, hatch_of, look_words, marker_of
from shrimpmx.page.svg.spots import draw_grid, draw_map, named, radius_of
from shrimpmx.report.plot.chart import AnyPanel, Chart, GridPanel, MapPanel, Panel, Series

# Samples as SVG, '' for none, each with what it means.
Legend = tuple[tuple[str, str], ...]
SAMPLE = {"viewBox": "0 0 30 14", "width": "30", "height": "14", "aria-hidden": "true"}


@dataclass(frozen=True)
class Figure:
    """A panel: what its axes are, its drawing, and of each series a sample with its name. Without
    a drawing `reason` says why.
    """

    title: str
    y_label: str
    x_label: str
    svg: str
    legend: Legend
    reason: str


def figures_of(charts: Iterable[Chart]) -> Iterator[Figure]:
    """A figure for each panel."""
    for chart in charts:
        for panel in chart.panels:
            yield _figure(panel)


def _figure(panel: AnyPanel) -> Figure:
    title, y_label = panel.title, panel.y_label.replace("\n", " ")
    x_label = panel.axis.label if isinstance(panel, Panel) else panel.x_label
    if y_label.startswith(title):
        title, y_label = y_label, ""
    label = ": ".join(filter(None, (title, y_label))) + (f" by {x_label}" if x_label else "")
    svg, legend = ("", ()) if panel.reason else _drawn(panel, label)
    return Figure(title, y_label, x_label, svg, legend, panel.reason)


def _drawn(panel: AnyPanel, label: str) -> tuple[str, Legend]:
    if isinstance(panel, GridPanel):
        return draw_grid(panel, label), (("", f"In each cell: {panel.value_label}"),)
    if isinstance(panel, MapPanel):
        return draw_map(panel, label), _named(panel)
    bars = panel.axis.kind == "bars"
    return draw_panel(panel, label), tuple((_sample(s, bars), s.label) for s in _told(panel))


def _told(panel: Panel) -> list[Series]:
    """Series of the legend, ours first; a single one of ours needs none."""
    theirs = [each for each in panel.series if each.paper]
    ours = [each for each in panel.series if not each.paper]
    return [*ours, *theirs] if len(panel.series) > 1 else []


def _named(panel: MapPanel) -> Legend:
    """The names of spots by their numbers, and what sizes mean."""
    found = []
    for words, spot in zip(named(panel), panel.spots, strict=True):
        if words:
            found.append(
                (_spot(radius_of(spot, 0.0), look_words(spot.style)), f"{words} {spot.label}")
            )
    sizes = f"The larger a spot, the more {panel.size_label}"
    return (*found, *([("", sizes)] if panel.size_label and panel.largest > 0 else []))


def _spot(radius: float, look: str) -> str:
    root = Xml.Element("svg", SAMPLE)
    Xml.SubElement(root, "path", {"d": marker(0, 15, 7, radius), "class": f"spot {look}"})
    return Xml.tostring(root, encoding="unicode")


def _sample(series: Series, bars: bool) -> str:
    """How a series is drawn, in small."""
    root, look = Xml.Element("svg", SAMPLE), look_words(series.style)

    def add(way: str, kind: str) -> None:
        Xml.SubElement(root, "path", {"d": way, "class": kind})

    box = "M2 1H28V13H2z"
    if bars and series.paper:
        add(box, f"bar paper {look}")
    elif bars:
        add(box, f"bar {look}")
        add(box, f"hatch h{hatch_of(series.style)}")
    else:
        if not series.paper:
            add("M0 7H30", f"line {look} {dash_of(series.style)}")
        radius = PAPER_RADIUS if series.paper else RADIUS
        paper = " paper" * series.paper
        add(marker(marker_of(series.style), 15, 7, radius), f"mark{paper} {look}")
    return Xml.tostring(root, encoding="unicode")
