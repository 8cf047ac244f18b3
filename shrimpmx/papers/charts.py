"""The charts of a result: the paper's figures for its scenarios, else a panel per metric; the map
of an exploration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shrimpmx.experiment.explore.kept import KEY, kept_in
from shrimpmx.experiment.explore.picture import chart_of
from shrimpmx.papers.coalescing2009 import plots as coalescing_plots
from shrimpmx.papers.coalescing2009.figures import PAPER_FIGURES, SAVED_SOURCE, TABLE2
from shrimpmx.papers.multiqueue2010 import figures as multiqueue_figures
from shrimpmx.papers.multiqueue2010 import plots as multiqueue_plots
from shrimpmx.papers.waiting1997 import figures as waiting_figures
from shrimpmx.papers.waiting1997 import plots as waiting_plots
from shrimpmx.results.expectation_kinds import Place
from shrimpmx.results.words import is_simulated
from shrimpmx.show.plot.caption import caption
from shrimpmx.show.plot.chart import AnyPanel, Chart, Panel, Panels
from shrimpmx.show.plot.panels import HERE, OWN_COSTS, SIMULATED, metric_panel, tail_panels
from shrimpmx.show.plot.reading import Result

FIGURES = {
    **coalescing_plots.FIGURES,
    **waiting_plots.FIGURES,
    **multiqueue_plots.FIGURES,
}
# What papers say of their scenarios, where no figure of theirs can be drawn.
SAID = {**waiting_figures.SAID, **multiqueue_figures.SAID}

# Panels of one picture; what is more goes into another (ours).
PANELS_MAX = 12
# File systems take 255 bytes, endings included.
NAME_LETTERS = 60
# Values of an axis that are told apart as series (ours).
SERIES_MAX = 11
# Behind a result's name, the picture of its percentiles.
TAILS = "percentiles"


def why_empty(document: Mapping[str, Any]) -> str:
    """Why a result has no charts."""
    if len(document["points"]) > 1:
        return "no point of it has a figure"
    return "its one point has one figure of each metric at most, which shrimpmx report shows"


def charts_of(document: Mapping[str, Any]) -> list[Chart]:
    """The charts of a result, none of a single figure: a table says it better; of an exploration
    the map of its settings. InputError if it has no points, or figures are missing.
    """
    result = Result(document, PAPER_FIGURES)
    if kept_in(document) is not None:
        return [chart_of(document[KEY])]
    figure = FIGURES.get(result.scenario)
    drawn = figure(result) if figure else None
    panels, columns = drawn or _generic(result)
    panels = [panel for panel in panels if not _is_one_figure(panel)]
    if is_simulated(document):
        panels = [_of_simulated(panel) for panel in panels]
    name = _file_name(result.scenario)
    title = document.get("title") or result.scenario
    charts = list(_pictures(result, name, title, panels, columns))
    tails = tail_panels(result)
    if tails:
        title = f"{title} (median, percentiles, maximum)"
        columns = 2 if len(tails) == 4 else min(len(tails), 3)
        charts += _pictures(result, f"{name}-{TAILS}", title, tails, columns)
    return charts


def _is_one_figure(panel: AnyPanel) -> bool:
    """Whether there is one place to draw at, and one figure there."""
    if not isinstance(panel, Panel) or len(panel.axis.words) > 1:
        return False
    return len(panel.series) == 1 and len(panel.series[0].values) == 1


def _pictures(
    result: Result, name: str, title: str, panels: Panels, columns: int
) -> Iterator[Chart]:
    """So many charts that each has room for its panels."""
    for start in range(0, len(panels), PANELS_MAX):
        chosen = tuple(panels[start : start + PANELS_MAX])
        theirs = any(_has_paper(panel) for panel in chosen)
        lines = caption(result, theirs, _sources(result))
        suffix = f"-{start // PANELS_MAX + 1}" if start else ""
        yield Chart(name + suffix, title, chosen, columns, lines)


def _of_simulated(panel: AnyPanel) -> AnyPanel:
    """A panel whose figures are not this machine's."""
    if not isinstance(panel, Panel):
        return panel
    series = tuple(
        replace(each, label=SIMULATED) if each.label == HERE else each for each in panel.series
    )
    title = panel.title.replace(OWN_COSTS, "no platform")
    return replace(panel, title=title, series=series)


def _file_name(scenario: str) -> str:
    """A scenario's name as that of a file: what a file system may not take becomes a dash."""
    return re.sub(r"[^\w.-]+", "-", scenario).strip("-.")[:NAME_LETTERS] or "result"


def _has_paper(panel: AnyPanel) -> bool:
    return isinstance(panel, Panel) and any(series.paper for series in panel.series)


def _sources(result: Result) -> tuple[str, ...]:
    """What the paper says of this scenario in numbers."""
    found = dict.fromkeys(figure.source for figure in result.published if figure.source)
    sources = [*found, *([SAVED_SOURCE] if result.scenario == TABLE2 else ())]
    sources += [SAID[result.scenario]] if result.scenario in SAID else []
    return (f"The paper: {'; '.join(sources)}.",) if sources else ()


def _generic(result: Result) -> tuple[Panels, int]:
    """A row of panels per metric, a panel for each place of the other axes that was run."""
    # What has columns only is drawn along them; without any the last axis gives series.
    rows, others = result.rows or result.columns, result.others
    few = [axis for axis in others if len(result.axes[axis]) <= SERIES_MAX]
    lines = [result.columns] if result.rows and result.columns else few[-1:]
    others = [axis for axis in others if axis not in lines]
    places = [place for place in result.places(others) if _is_run(result, place, lines)]
    panels = [
        metric_panel(result, metric, rows, lines, place)
        for metric in result.metrics
        for place in places
    ]
    columns = len(places) if len(places) > 1 else min(2, len(panels))
    return panels, min(columns, 3)


def _is_run(result: Result, place: Place, lines: Sequence[str]) -> bool:
    return any(result.find({**place, **line}) for line in result.places(lines))
