"""A result as tables that a newcomer understands; made from the result document only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from shrimpmx.costs.table import COSTS
from shrimpmx.host.idle import AWAKE_BY
from shrimpmx.results.disturbance import disturbance_words
from shrimpmx.results.environment import machine_lines
from shrimpmx.results.expectation_kinds import AS_EXPECTED, OPPOSITE
from shrimpmx.results.runs import ANY, steered_words
from shrimpmx.results.statistics import SAMPLES_WISHED, instability
from shrimpmx.results.words import (
    NO_PLATFORM_WORDS,
    SIMULATED_WORDS,
    is_simulated,
    number_words,
    place_words,
)
from shrimpmx.settings.workload import PROGRAMS
from shrimpmx.show.axis_layout import axis_layout
from shrimpmx.show.cells import legend, summary_of, usual_state
from shrimpmx.show.draws import most_probable
from shrimpmx.show.notes import limit_notes, overrun_notes, resend_notes
from shrimpmx.show.sections import SECTIONS
from shrimpmx.show.tables import MetricTable, metric_tables, unit_of

# Longer than any line, in columns.
ENDLESS = 100_000
OWN_TIMES = "Times are as measured: this machine's own."
# What a run may have several of, so that hosts are charged for each by itself.
OF_HOSTS = ("platform", "frequency_ratio")
_VERDICT_STYLE = {AS_EXPECTED: "green", OPPOSITE: "red"}

Document = Mapping[str, Any]
PointData = Mapping[str, Any]


def print_report(document: Document, console: Console) -> None:
    """Print a result: what it is, one table per metric, verdicts, notes."""
    whole, document = document, most_probable(document)
    console.print(f"[bold]{escape(document.get('title') or document['scenario'])}[/bold]")
    if document.get("source"):
        console.print(f"[dim]{escape(document['source'])}[/dim]")
    for line in heading_lines(document):
        console.print(escape(line), highlight=False)
    points = document["points"]
    if not points:
        console.print("No point was finished.")
        return
    texts = [item["detail"] for item in document.get("expectations", ())]
    for metric in points[0]["metrics"]:
        # Where it is needed for a line the second part of a cell stands below the first.
        forms = (metric_tables(document, metric, between) for between in (" ", "\n"))
        for tables in zip(*forms, strict=True):
            console.print(f"\n[bold]{escape(tables[0].title)}[/bold]")
            console.print(_fitting(tables, console))
            texts += tables[0].words()
    if legend(texts):
        console.print(f"[dim]{escape(legend(texts))}[/dim]")
    if document.get("shows"):
        console.print()
        console.print(escape(document["shows"]))
    for name in document.get("sections", ()):
        console.print(f"\n[bold]{escape(SECTIONS[name].title)}[/bold]")
        # Text with columns of its own: a terminal wraps it, a file keeps its lines.
        console.print(escape(SECTIONS[name].text(whole)), highlight=False, soft_wrap=True)
    _print_expectations(document.get("expectations", ()), console)
    for note in notes(document):
        console.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False)


def heading_lines(document: Document) -> Iterator[str]:
    """Under which settings a result came about, and whose times its figures are."""
    if document.get("set"):
        yield f"set: {', '.join(document['set'])}"
    if is_simulated(document):
        yield SIMULATED_WORDS
    if document["points"]:
        measured = [point for point in document["points"] if "impossible" not in point]
        yield from shared_words(document)
        yield from emulation_words(measured, simulated=is_simulated(document))
        yield from idle_words(measured, simulated=is_simulated(document))
        yield from engines_words(measured, simulated=is_simulated(document))


def shared_words(document: Document) -> list[str]:
    """A line on those settings of the scenario that all points share, if there are any."""
    axes, params = axis_layout(document).axes, document["points"][0]["params"]
    shared = [place_words(name, value) for name, value in params.items() if name not in axes]
    return [f"At all points: {', '.join(shared)}"] if shared else []


def emulation_words(points: Sequence[PointData], *, simulated: bool) -> list[str]:
    """What was emulated: whose times the figures are, one line for each dilation.

    Where hosts are compared, of several platforms or frequencies, a line says whose it is.
    """
    own = NO_PLATFORM_WORDS if simulated else OWN_TIMES
    varying = [
        name for name in OF_HOSTS if len({point["params"].get(name) for point in points}) > 1
    ]
    lines = dict.fromkeys(
        (
            ", ".join(place_words(name, point["params"].get(name)) for name in varying),
            _emulation(point, simulated=simulated),
        )
        for point in points
    )
    if not varying:
        return [line for _, line in lines if line]
    return [f"With {host}: {line or own}" for host, line in lines]


def _emulation(point: PointData, *, simulated: bool) -> str:
    """What was emulated at a point; '' if its times are this machine's own."""
    dilation, costs = point.get("time_dilation", 1.0), point.get("host_costs_ns", {})
    parts = []
    if dilation != 1.0:
        parts.append(
            f"Times are those of the emulated hosts: {'virtual' if simulated else 'measured'} "
            f"times divided by {dilation:g} (time_dilation; raw samples in run.json)."
        )
        if point["params"].get("workload") in PROGRAMS and not simulated:
            parts.append(
                "A program's own computing is not dilated, and counts as shorter by that factor."
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
        charged = "A host is charged" if simulated else "Added to the host's own costs:"
        parts.append(f"{charged} {added}.")
    if simulated:
        parts += _wake_words(point)
    return " ".join(parts)


def _wake_words(point: PointData) -> Iterator[str]:
    """What a core takes to wake up, if it takes any time: often the most of a latency, and no part
    of that of real processes. By how much wake-ups differ from each other, if they do.
    """
    model = point.get("host_model", {})
    given = model.get("idle_exit_ns", 0)
    exits = given if isinstance(given, list | tuple) else [given]
    if any(exits) and point.get("idle") == "sleep":
        scale = 1000 * point.get("time_dilation", 1.0)
        words = " to ".join(number_words(ns / scale) for ns in sorted({min(exits), max(exits)}))
        yield f"A sleeping core takes {words} µs to wake up, on simulated hosts only."
    ratios = model.get("wake_jitter", [1.0])
    if min(ratios) < max(ratios):
        words = f"{number_words(min(ratios))} to {number_words(max(ratios))}"
        yield f"Interrupts and wake-ups take {words} times their costs, drawn each time."


def idle_words(points: Sequence[PointData], *, simulated: bool) -> list[str]:
    """What kept idle cores awake in those points that asked for it."""
    kept = {str(point.get("idle", "sleep")) for point in points} - {"sleep"}
    if kept and simulated:
        return ["Idle cores do not sleep where idle=awake."]
    by = [AWAKE_BY.get(rule, rule) for rule in sorted(kept)]
    return [f"With idle=awake, idle cores are kept awake by {' and '.join(by)}."] if by else []


def engines_words(points: Sequence[PointData], *, simulated: bool) -> list[str]:
    """Costs charged to hosts of one engine only, and its structure."""
    if simulated:
        points = [point for point in points if point["params"].get("hosts") != "as-real"]
    lines = []
    for key, who in (("only_simulated", "simulated hosts"), ("only_real", "real processes")):
        apart = {
            name: place_words(name, value)
            for point in points
            for name, value in point.get(key, {}).items()
        }
        charged = [words for name, words in apart.items() if name in COSTS]
        had = [words for name, words in apart.items() if name not in COSTS]
        if charged:
            lines.append(f"Charged on {who} only: {', '.join(charged)}.")
        if had:
            lines.append(f"Set on {who} only: {', '.join(had)}.")
    if lines:
        lines[-1] += " --set hosts=as-real treats both alike."
    return lines


def _fitting(tables: Sequence[MetricTable], console: Console) -> Table:
    """The first of some forms of a table that fits a line of `console`. Where none does it is the
    first one, and rich breaks its cells where it can.
    """
    endless = console.options.update(max_width=ENDLESS)
    drawn = [_drawn(table) for table in tables]
    widths = [console.measure(each, options=endless).maximum for each in drawn]
    return next((t for t, w in zip(drawn, widths, strict=True) if w <= console.width), drawn[0])


def _drawn(shown: MetricTable) -> Table:
    table = Table()
    for heading in (*([shown.corner] if shown.corner else []), *shown.headings):
        table.add_column(escape(heading), justify="right")
    for heading, cells in shown.rows:
        first = [escape(heading)] if shown.corner else []
        words = (f"[bold]{cell.words}[/bold]" if cell.best else cell.words for cell in cells)
        table.add_row(*first, *words)
    return table


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
            sentence = instability(summary, unit_of(name), calmer) if summary else None
            # Counts come once per run: their spread over a few repeats is no noise to mend.
            if summary and sentence and summary.count >= SAMPLES_WISHED:
                share = summary.half_width / abs(summary.median or 1.0)
                unstable.append((share, name, sentence))
    found |= dict.fromkeys(
        (*limit_notes(document), *overrun_notes(document), *resend_notes(document))
    )
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
    if again := sum(point.get("made_again", 0) for point in document["points"]):
        found[
            f"{again} run{'s' * (again > 1)} took the place of others, with the CPUs at another "
            "distance than most or disturbed"
        ] = None
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
            "one CPU only: agents take turns instead of running in parallel, so times mean little, "
            "and counts can differ"
        )
