"""The multiqueue paper's Table I and figure 5 as panels of our results, and our placement map.

Each takes a result and gives its panels, and how many stand side by side; or None if the axes
were changed so that the figure cannot be drawn from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shrimpmx.papers.multiqueue2010 import figures as paper
from shrimpmx.results.expectation_kinds import Place
from shrimpmx.results.words import number_words, value_words
from shrimpmx.show.plot.chart import ONLY, Axis, GridCell, GridPanel, Panel, Series, Value
from shrimpmx.show.plot.panels import (
    HERE,
    Figure,
    axis_of,
    axis_words,
    is_wide,
    metric_panel,
    note_missing,
    ours_and_paper,
    panel_title,
    shown_or_why,
)
from shrimpmx.show.plot.reading import NOT_RUN, Result, metric_label

BINDING_AXIS = Axis(
    "binding of interrupts and process",
    tuple(paper.BINDINGS),
    tuple(map(float, range(len(paper.BINDINGS)))),
    groups=(("interrupts to one core, by distance", 2.5),),
)
# What is drawn as a map: figures that are never 0.
MAPPED = ("half_round_trip", "handler_cpu_per_packet")
# What tells which way to steer is better; the other metrics say what happened.
COMPARED = ("events_handed_over", "endpoint_handovers", "half_round_trip")
# What the ledger has by structure.
STRUCTURES = ("events_handed_over", "endpoint_handovers", "pull_handovers")


def table1(result: Result) -> tuple[Sequence[Panel], int] | None:
    """Table I: each metric by binding, beside the paper's where it has it; side by side without
    and with copy offload.
    """
    if set(result.axes) - {"copy_offload"} != {"irq_binding", "distance"}:
        return None
    places = result.places([axis for axis in result.axes if axis == "copy_offload"])
    panels = [_by_binding(result, metric, place) for metric in result.metrics for place in places]
    return panels, len(places) if len(places) > 1 else min(3, len(panels))


def _by_binding(result: Result, metric: str, place: Place) -> Panel:
    spots = [{**place, **binding} for binding in paper.BINDINGS.values()]
    ours = [result.value(result.find(spot), metric) for spot in spots]
    known = [paper.paper_value(result.scenario, metric, spot) for spot in spots]
    theirs = [None if y is None else Value(y, y, y) for y in known]
    series = ours_and_paper(HERE, ONLY, ours, theirs)
    shown, reason = shown_or_why(result, metric, series, ours)
    return Panel(
        panel_title(metric, place),
        BINDING_AXIS,
        metric_label(metric),
        shown,
        is_wide(shown, BINDING_AXIS.kind),
        reason=reason,
    )


def placement_map(result: Result) -> tuple[Sequence[GridPanel], int] | None:
    """A grid of both cores for each figure that can be mapped."""
    metrics = [metric for metric in MAPPED if metric in result.metrics]
    if set(result.axes) != {"irq_binding", "rank_core"} or not metrics:
        return None
    return [_grid(result, metric) for metric in metrics], len(metrics)


def _grid(result: Result, metric: str) -> GridPanel:
    cells: list[GridCell] = []
    reasons: dict[str, int] = {}
    for row, irq_binding in enumerate(result.axes["irq_binding"]):
        for column, rank_core in enumerate(result.axes["rank_core"]):
            point = result.find({"irq_binding": irq_binding, "rank_core": rank_core})
            found = result.value(point, metric)
            if isinstance(found, Value) and found.y > 0:
                cells.append(GridCell(column, row, found.y, number_words(found.y)))
            elif isinstance(found, str) and found != NOT_RUN:
                reasons[found] = reasons.get(found, 0) + 1
    note_missing(result, metric, reasons)
    return GridPanel(
        title=panel_title(metric, {}),
        x_label=axis_words("rank_core"),
        y_label=axis_words("irq_binding"),
        value_label=metric_label(metric),
        columns=tuple(value_words("rank_core", v) for v in result.axes["rank_core"]),
        rows=tuple(value_words("irq_binding", v) for v in result.axes["irq_binding"]),
        cells=tuple(cells),
        even=_middle(cells),
        reason="" if cells else "; ".join(reasons) or NOT_RUN,
    )


def _middle(cells: Sequence[GridCell]) -> float:
    """Their geometric mean, from which colours run to both sides."""
    logarithms = [math.log(cell.value) for cell in cells]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else 1.0


def steering(result: Result) -> tuple[Sequence[Panel], int] | None:
    """What is handed over and how long it takes, by what chooses the queue, of processes that stay
    and that move.
    """
    metrics = [metric for metric in COMPARED if metric in result.metrics]
    if set(result.axes) != {"steering", "move_every"} or not metrics:
        return None
    panels = [metric_panel(result, metric, "steering", ["move_every"]) for metric in metrics]
    return panels, len(panels)


def ledger(result: Result) -> tuple[Sequence[Panel], int] | None:
    """What is handed over, structure by structure, by size and binding: a row for each number of
    pairs.
    """
    metrics = [metric for metric in STRUCTURES if metric in result.metrics]
    if set(result.axes) != {"pairs", "size_bytes", "irq_binding"} or not metrics:
        return None
    panels = [
        metric_panel(result, metric, "size_bytes", ["irq_binding"], place, bars=True)
        for place in result.places(["pairs"])
        for metric in metrics
    ]
    return panels, len(metrics)


def alltoall(result: Result) -> tuple[Sequence[Panel], int] | None:
    """Figure 5: times relative to those of native MX, by size, with a series for each binding; then
    the other metrics.
    """
    if set(result.axes) != {"size_bytes", "nic", "copy_offload", "irq_binding"}:
        return None
    others = [metric for metric in result.metrics if metric != "run_time"]
    return [_by_size(result, metric) for metric in ("run_time", *others)], 2


def _by_size(result: Result, metric: str) -> Panel:
    """A metric by size; a time as that of native MX gives it."""
    axis = axis_of(result, "size_bytes")
    relative = metric == "run_time"
    bindings = paper.ALLTOALL_BINDINGS.items()
    series: list[Series] = []
    everything: list[Value | str] = []
    for style, (label, where) in enumerate(bindings):
        if where == paper.NATIVE_MX and metric != "run_interrupts":
            continue
        found: list[Value | str] = []
        for size in result.axes["size_bytes"]:
            here = result.value(result.find({"size_bytes": size, **where}), metric)
            to = result.value(result.find({"size_bytes": size, **paper.NATIVE_MX}), metric)
            found.append(_relative(here, to) if relative else here)
        series += ours_and_paper(label, style, found, [None] * len(found))
        everything += found
    shown, reason = shown_or_why(result, metric, series, everything)
    title = "Run time relative to native MX" if relative else panel_title(metric, {})
    words = "run time / native MX's (lower is better)" if relative else metric_label(metric)
    return Panel(
        title,
        axis,
        words,
        shown,
        is_wide(shown, axis.kind),
        baseline=1.0 if relative else None,
        reason=reason,
    )


def _relative(here: Value | str, to: Value | str) -> Value | str:
    """A figure by another; its interval goes as far as both allow."""
    if isinstance(here, str) or isinstance(to, str):
        return here if isinstance(here, str) else str(to)
    starred = here.starred or to.starred
    return Value(here.y / to.y, here.low / to.high, here.high / to.low, starred=starred)


FIGURES: dict[str, Figure] = {
    paper.LATENCY: table1,
    paper.THROUGHPUT: table1,
    paper.LEDGER: ledger,
    paper.ALLTOALL: alltoall,
    paper.PLACEMENT: placement_map,
    paper.STEERING: steering,
}
