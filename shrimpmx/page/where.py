"""Where the time of a result's traced runs went, for its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from shrimpmx.errors import InputError
from shrimpmx.show.breakdown.breakdown import Breakdown, breakdown_of
from shrimpmx.show.breakdown.spans import PARTS, percentages, totals
from shrimpmx.show.breakdown.words import CRITICAL, legend, parts_table, path_lines
from shrimpmx.show.kept_trace import load_trace, traces_in
from shrimpmx.show.plot.chart import Axis, Chart, Panel, Series, Value
from shrimpmx.show.tables import MetricTable
from shrimpmx.show.timeline import dilation_words

# Traced runs, their slowest messages, and the bars of ranks that a page has (ours).
RUNS_MAX, SLOWEST, RANKS_MAX = 4, 3, 11


@dataclass(frozen=True)
class Where:
    """Of one run: a chart, a table, lines of its critical path."""

    chart: Chart
    table: MetricTable
    legend: str
    title: str
    lines: list[str]


def where_in(place: Path) -> tuple[list[Where], list[str]]:
    """That of the first traced runs of a result directory, and notes on those left out."""
    found, notes = [], []
    traces = traces_in(place)
    for path, words in list(traces.items())[:RUNS_MAX]:
        try:
            trace = load_trace(path)
        except InputError as error:
            notes.append(str(error))
            continue
        if breakdown := breakdown_of(trace):
            whose = dilation_words(trace.dilation)
            name = ", ".join([path.stem, *words] if len(traces) > 1 else words)
            found.append(_where(breakdown, name, whose))
    if len(traces) > RUNS_MAX:
        notes.append(
            f"{len(traces) - RUNS_MAX} more traced runs: shrimpmx trace {place} --where says where "
            "their time went"
        )
    return found, notes


def _where(breakdown: Breakdown, name: str, whose: str) -> Where:
    table = parts_table(breakdown, SLOWEST)
    title = ", ".join(filter(None, (table.title, name)))
    path = ", ".join(filter(None, ("Critical path: µs since the begin, µs, step", name, whose)))
    return Where(
        Chart("where", title, (_panel(breakdown, title),)),
        replace(table, title=", ".join(filter(None, (title, whose)))),
        legend(table),
        path,
        list(path_lines(breakdown)),
    )


def _panel(breakdown: Breakdown, title: str) -> Panel:
    bars = dict(list(breakdown.ranks.items())[:RANKS_MAX])
    bars[CRITICAL] = breakdown.path
    return Panel(
        title,
        Axis("", tuple(bars), tuple(range(len(bars)))),
        "share of the time, %",
        tuple(_series([percentages(totals(spans)) for spans in bars.values()])),
    )


def _series(shares: list[dict[str, float]]) -> Iterator[Series]:
    for style, part in enumerate(PARTS):
        values = {
            place: Value(parts[part], parts[part], parts[part])
            for place, parts in enumerate(shares)
            if part in parts
        }
        if values:
            yield Series(part, values, style, stack="all")
