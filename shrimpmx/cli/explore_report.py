"""The tables and sentences of `shrimpmx explore`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from shrimpmx.experiment.explore.choice import OBJECTIVES, ranked
from shrimpmx.experiment.explore.findings import Findings, Setting
from shrimpmx.experiment.explore.measured import HANDLERS_CPU, RANKS_CPU
from shrimpmx.experiment.explore.words import (
    FRONTIER,
    PLACES,
    TYPED,
    alike_words,
    unit_of,
)
from shrimpmx.results.words import number_words

RECOMMENDED, ALIKE, ON_FRONTIER = "→", "=", "*"
INTERVALS = "medians of all runs; [low, high]: the 95 % interval"

# What stands before a setting in the table.
Mark = Callable[[Findings, int], str]


def print_findings(
    findings: Findings, console: Console, texts: Sequence[tuple[str, Sequence[str]]]
) -> None:
    """Print the settings, those that failed, and the `texts`: the recommended one, its commands."""
    _print_settings(findings, console, _mark, _legend(findings))
    for title, lines in texts:
        console.print(f"\n[bold]{title}[/bold]")
        for line in lines:
            _print_line(console, line, wrapped=title not in TYPED)
    console.print()


def _legend(findings: Findings) -> str:
    objective, exact = findings.objective, findings.is_exact
    ratio = f"figures are exact; ratio: {PLACES[objective]} over the least"
    marks = f"{RECOMMENDED} recommended   {ALIKE} {alike_words(objective, exact=exact)}"
    frontier = f"{ON_FRONTIER} on the frontier: {FRONTIER}"
    return "\n".join((ratio if exact else INTERVALS, marks, frontier))


def print_unfinished(findings: Findings, console: Console) -> None:
    """Print the settings that have run, where others have not: nothing is recommended yet."""
    _print_settings(findings, console, lambda _findings, _index: "", INTERVALS)
    console.print()


def _print_settings(findings: Findings, console: Console, mark: Mark, legend: str) -> None:
    console.print(_table(findings, mark))
    console.print(f"\n[dim]{escape(legend)}[/dim]")
    for setting in findings.failed:
        console.print(f"failed: {escape(setting.name)}: {escape(setting.measured.failed)}")


def _print_line(console: Console, line: str, *, wrapped: bool) -> None:
    if wrapped:
        console.print(Padding(escape(line), (0, 0, 0, 2)))
    else:
        console.print(f"  {escape(line)}", soft_wrap=True)


def _table(findings: Findings, mark: Mark) -> Table:
    """A row for each setting, those that may be best first; intervals of the objective."""
    usable = {each.index: each.measured for each in findings.usable}
    unit, scale = unit_of(each.median("time") for each in usable.values())
    columns = [f"time, {unit}", "ranks' CPU", "handlers'", "interrupts", "runs"]
    if findings.objective == "cpu":
        columns.insert(1, "CPU")
    if findings.is_exact:
        columns.append("ratio")
    table = Table(
        *("", "setting", *columns),
        box=SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    # Where a line is too short for all of it the name of the setting takes several.
    table.columns[1].overflow = "fold"
    for column in table.columns[2:]:
        column.justify, column.no_wrap = "right", True
    order = ranked(usable, OBJECTIVES[findings.objective])
    first = [findings.best, *(index for index in findings.contenders if index != findings.best)]
    for index in [*first, *(index for index in order if index not in first)]:
        setting = findings.settings[index]
        cells = [_cell(setting, figure, findings.objective, scale) for figure in _shown(findings)]
        cells.append(str(setting.measured.runs))
        if findings.is_exact:
            cells.append(f"{findings.ratio(index):.3f}")
        table.add_row(mark(findings, index), escape(setting.name), *cells)
    return table


def _shown(findings: Findings) -> tuple[str, ...]:
    """The figures of a row."""
    whole = ("cpu",) if findings.objective == "cpu" else ()
    return ("time", *whole, RANKS_CPU, HANDLERS_CPU, "interrupts")


def _mark(findings: Findings, index: int) -> str:
    alike = ALIKE if index in findings.contenders else " "
    first = RECOMMENDED if index == findings.best else alike
    return first + (ON_FRONTIER if index in findings.frontier else "")


def _cell(setting: Setting, figure: str, objective: str, scale: float) -> str:
    """The median, with its interval if it is what was asked for and runs differ."""
    summary = setting.summary(figure)
    values = (summary.median, summary.low, summary.high)
    if figure == "interrupts":
        median, low, high = (f"{value:,.0f}" for value in values)
    else:
        median, low, high = (number_words(value / scale) for value in values)
    shown = figure == objective and summary.low < summary.high
    return f"{median} [{low}, {high}]" if shown else median
