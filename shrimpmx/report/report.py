"""A result as tables that a newcomer understands; made from the result document only."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from shrimpmx.host.idle import AWAKE_BY
from shrimpmx.report.axis_layout import AxisLayout, axis_layout
from shrimpmx.report.cells import (
    cell_words,
    is_unusual,
    legend,
    summary_of,
    tail_words,
    usual_state,
)
from shrimpmx.report.limited import is_limited, limit_notes
from shrimpmx.report.sections import SECTIONS
from shrimpmx.results.expectation import matching
from shrimpmx.results.expectation_kinds import AS_EXPECTED, OPPOSITE
from shrimpmx.results.machines import machine_lines
from shrimpmx.results.metrics import METRICS, shown_figures
from shrimpmx.results.outside import disturbance_words
from shrimpmx.results.runs import ANY, steered_words
from shrimpmx.results.statistics import SAMPLES_WISHED, instability
from shrimpmx.results.words import (
    NO_PLATFORM_WORDS,
    SIMULATED_WORDS,
    axis_title,
    heading_words,
    is_simulated,
    number_words,
    place_words,
    titled,
    unit_words,
    value_words,
)

# Longer than any line, in columns.
ENDLESS = 100_000
OWN_TIMES = "Times are as measured: this machine's own."
_VERDICT_STYLE = {AS_EXPECTED: "green", OPPOSITE: "red"}

Document = Mapping[str, Any]
PointData = Mapping[str, Any]


def print_report(document: Document, console: Console) -> None:
    """Print a result: what it is, one table per metric, verdicts, notes."""
    console.print(f"[bold]{escape(document.get('title') or document['scenario'])}[/bold]")
    if document.get("source"):
        console.print(f"[dim]{escape(document['source'])}[/dim]")
    if document.get("set"):
        console.print(escape(f"set: {', '.join(document['set'])}"))
    if is_simulated(document):
        console.print(SIMULATED_WORDS)
    points = document["points"]
    if not points:
        console.print("No point was finished.")
        return
    measured = [point for point in points if "impossible" not in point]
    own = NO_PLATFORM_WORDS if is_simulated(document) else OWN_TIMES
    emulation = emulation_words(measured, own)
    for line in (*shared_words(document), *emulation, *idle_words(measured)):
        console.print(escape(line), highlight=False)
    texts = [item["detail"] for item in document.get("expectations", ())]
    for metric in points[0]["metrics"]:
        for title, table in metric_tables(document, metric, console):
            console.print(f"\n[bold]{title}[/bold]")
            console.print(table)
            figures = table.columns[bool(axis_layout(document).rows) :]
            texts += [str(cell) for column in figures for cell in column.cells]
    if legend(texts):
        console.print(f"[dim]{escape(legend(texts))}[/dim]")
    if document.get("shows"):
        console.print()
        console.print(escape(document["shows"]))
    for name in document.get("sections", ()):
        console.print(f"\n[bold]{escape(SECTIONS[name].title)}[/bold]")
        # Text with columns of its own: a terminal wraps it, a file keeps its lines.
        console.print(escape(SECTIONS[name].text(document)), highlight=False, soft_wrap=True)
    _print_expectations(document.get("expectations", ()), console)
    for note in notes(document):
        console.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False)


def shared_words(document: Document) -> list[str]:
    """A line on those settings of the scenario that all points share, if there are any."""
    axes, params = axis_layout(document).axes, document["points"][0]["params"]
    shared = [place_words(name, value) for name, value in params.items() if name not in axes]
    return [f"At all points: {', '.join(shared)}"] if shared else []


def emulation_words(points: Sequence[PointData], own: str = OWN_TIMES) -> list[str]:
    """What was emulated: whose times the figures are, one line for each dilation.

    Where platforms are compared a line says whose it is, and of those without one `own`.
    """
    lines = [(point["params"].get("platform"), _emulation(point)) for point in points]
    if len({platform for platform, _ in lines}) == 1:
        return [line for line in dict.fromkeys(line for _, line in lines) if line]
    return [
        f"{place_words('platform', platform).capitalize()}: {line or own}"
        for platform, line in dict.fromkeys(lines)
    ]


def _emulation(point: PointData) -> str:
    """What was emulated at a point; '' if its times are this machine's own."""
    dilation, costs = point.get("time_dilation", 1.0), point.get("host_costs_ns", {})
    parts = []
    if dilation != 1.0:
        parts.append(
            "Times are those of the emulated hosts: measured times divided by "
            f"{dilation:g} (time_dilation; raw samples in run.json)."
        )
    interrupt = costs.get("interrupt", 0)
    if interrupt:
        parts.append(f"An interrupt takes {number_words(interrupt / dilation / 1000)} µs.")
    added = " and ".join(
        f"{number_words(ns / dilation / 1000)} µs per {what}"
        for what, ns in costs.items()
        if ns and what != "interrupt"
    )
    if added:
        parts.append(f"Added to the host's own costs: {added}.")
    return " ".join(parts)


def idle_words(points: Sequence[PointData]) -> list[str]:
    """What kept idle cores awake in those points that asked for it."""
    kept = {str(point.get("idle", "sleep")) for point in points} - {"sleep"}
    by = [AWAKE_BY.get(rule, rule) for rule in sorted(kept)]
    return [f"Idle cores that are awake are kept so by {' and '.join(by)}."] if by else []


def metric_tables(document: Document, metric: str, console: Console) -> Iterable[tuple[str, Table]]:
    """Titles and tables of one metric: rows and columns as the scenario says, one table for
    each value of the other axes; none if the metric is available nowhere. Where it is needed
    for a line of `console` the second part of each cell stands below the first.
    """
    points = document["points"]
    usual = usual_state(document)
    layout = axis_layout(document)
    endless = console.options.update(max_width=ENDLESS)
    for values in itertools.product(*(layout.axes[axis] for axis in layout.others)):
        place = dict(zip(layout.others, values, strict=True))
        chosen = matching(points, place)
        found = [point["metrics"].get(metric, {}) for point in chosen]
        for figure, least, what in (
            ("median", "samples", ""),
            ("p99", "p99", ", 99th percentile and longest"),
        ):
            if any(least in each for each in found):
                tables = [_table(metric, chosen, layout, usual, figure, b) for b in (" ", "\n")]
                widths = [console.measure(each, options=endless).maximum for each in tables]
                fits = [width <= console.width for width in widths]
                # Where neither fits, rich breaks cells where it can.
                yield _title(metric, place, what), tables[fits == [False, True]]


def _table(
    metric: str,
    points: Sequence[PointData],
    layout: AxisLayout,
    usual: str | None,
    figure: str,
    between: str,
) -> Table:
    axes, rows, columns = layout.axes, layout.rows, layout.columns
    table = Table()
    if rows:
        table.add_column(escape(axis_title(rows)), justify="right")
    column_values = axes[columns] if columns else [None]
    for value in column_values:
        heading = heading_words(columns, value) if columns else _unit(metric)
        table.add_column(escape(heading), justify="right")
    for row in axes[rows] if rows else [None]:
        cells = []
        for value in column_values:
            where = {rows: row} if rows else {}
            where |= {columns: value} if columns else {}
            found = matching(points, {str(k): v for k, v in where.items()})
            cells.append(found[0] if found else None)
        if not any(point and point["metrics"].get(metric) for point in cells):
            continue  # the sweep leaves these points out
        first = [escape(value_words(rows, row))] if rows else []
        table.add_row(*first, *_highlighted(metric, cells, usual, figure, between))
    return table


def _unit(metric: str) -> str:
    unit = METRICS[metric].unit if metric in METRICS else ""
    return unit_words(unit)


def _title(metric: str, place: Mapping[str, Any], what: str = "") -> str:
    known = METRICS.get(metric)
    parts = [titled((known.title if known else metric) + what, _unit(metric))]
    parts += [place_words(axis, value) for axis, value in place.items()]
    if known and known.better:
        parts.append(f"{known.better} is better")
    return escape(" — ".join(parts))


def _highlighted(
    metric: str,
    points: Sequence[PointData | None],
    usual: str | None,
    figure: str,
    between: str,
) -> list[str]:
    """The cells of a row, the best figure bold; one of another state is no rival, nor one that
    is limited.
    """
    cells = [point and point["metrics"].get(metric) for point in points]
    limited = [point is not None and is_limited(point, metric) for point in points]
    words_of = cell_words if figure == "median" else tail_words
    marked = zip(cells, limited, strict=True)
    words = [words_of(cell, usual, mark, between) for cell, mark in marked]
    rivals = {
        index: shown_figures(cell)[figure]
        for index, (cell, mark) in enumerate(zip(cells, limited, strict=True))
        if cell is not None and figure in cell and not mark and not is_unusual(cell, usual)
    }
    better = METRICS[metric].better if metric in METRICS else ""
    if len(rivals) < 2 or not better:
        return words
    best = (max if better == "higher" else min)(rivals.values())
    return [
        f"[bold]{word}[/bold]" if rivals.get(index) == best else word
        for index, word in enumerate(words)
    ]


def _print_expectations(expectations: Iterable[Mapping[str, str]], console: Console) -> None:
    expected = list(expectations)
    if expected:
        console.print("\n[bold]What must come out[/bold]")
    for item in expected:
        style = _VERDICT_STYLE.get(item["verdict"], "yellow")
        scope = f" ({item['scope']})" if item.get("scope") else ""
        console.print(
            Padding(
                f"[{style}]{item['verdict']}[/{style}]: {escape(item['text'] + scope)}\n"
                f"{escape(item['detail'])}",
                (0, 0, 0, 2),
                expand=False,
            ),
            highlight=False,
        )


def notes(document: Document) -> list[str]:
    """What a reader has to know beside the figures: reasons, distances, unstable figures."""
    found: dict[str, None] = {}
    unstable: list[tuple[float, str, str]] = []
    states: dict[str, int] = {}
    calmer = not is_simulated(document)
    for point in document["points"]:
        if "impossible" in point:
            found[f"not measurable here: {point['impossible']}"] = None
            continue
        for words in steered_words(point.get("steered", ())):
            axes = document.get("layout", {}).get("axes", ())
            where = ", ".join(place_words(axis, point["params"][axis]) for axis in axes)
            found[f"{words}, so nothing is judged there: {where or 'the only point'}"] = None
        found.update(dict.fromkeys(point.get("binding_notes", ())))
        for state in point.get("states", ()):
            if state != ANY:
                states[state] = states.get(state, 0) + 1
        for name, metric in point["metrics"].items():
            if "unavailable" in metric:
                found[f"{name} is not available: {metric['unavailable']}"] = None
                continue
            summary = summary_of(metric)
            sentence = instability(summary, _unit(name), calmer) if summary else None
            # Counts come once per run: their spread over a few repeats is no noise to mend.
            if summary and sentence and summary.count >= SAMPLES_WISHED:
                share = summary.half_width / abs(summary.median or 1.0)
                unstable.append((share, name, sentence))
    found |= dict.fromkeys(limit_notes(document))
    if unstable:
        _, name, sentence = max(unstable)
        found[f"{len(unstable)} figure(s) unstable, the worst {name}: {sentence}"] = None
    if len(states) > 1:
        counted = ", ".join(f"{state} {count}" for state, count in sorted(states.items()))
        usual = usual_state(document)
        found[
            f"the CPUs changed distance during the sweep (runs: {counted}); times come from runs "
            f"of one state, {usual} unless starred (*), and verdicts compare within one state"
        ] = None
    if disturbed := disturbance_words(document["points"]):
        found[f"{disturbed}; a quieter machine gives better figures"] = None
    found |= dict.fromkeys(machine_lines(document))
    return [*found, *([] if is_simulated(document) else _machine_notes(document))]


def _machine_notes(document: Document) -> Iterator[str]:
    """What this machine lacked."""
    realtime = document.get("environment", {}).get("realtime", {})
    if realtime and not realtime.get("permitted", True):
        yield (
            f"no real-time priority ({realtime.get('reason')}): handlers wait for their turn, "
            "so times are longer; shrimpmx doctor says how to enable it"
        )
    cpus = document.get("environment", {}).get("topology", {}).get("cpus")
    if cpus is not None and len(cpus) < 2:
        yield (
            "one CPU only: all agents take turns, so times mean little, and counts can differ "
            "from those of agents that run beside each other"
        )
