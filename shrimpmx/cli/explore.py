"""`shrimpmx explore`: which coalescing, placement and waiting suits an MPI program."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from shrimpmx.cli import mpi_options
from shrimpmx.cli.mpi_options import exported
from shrimpmx.cli.mpirun import EXIT_LATE
from shrimpmx.cli.options import add_engine_option, add_sweep_options, check_sweep_options
from shrimpmx.cli.resuming import going_on
from shrimpmx.errors import DeadlineError, InputError, InterruptedRunError, late_words
from shrimpmx.experiment.doubts import tell_doubts
from shrimpmx.experiment.engines import chosen_engine
from shrimpmx.experiment.explore.exploring import BUDGET_S, Exploring
from shrimpmx.experiment.explore.findings import Findings, Setting
from shrimpmx.experiment.explore.measured import HANDLERS_CPU, OBJECTIVES, RANKS_CPU, ranked
from shrimpmx.experiment.explore.picture import chart_of
from shrimpmx.experiment.explore.question import ALL, OPTIONS, Question
from shrimpmx.experiment.explore.race import RUNS_MOST, SETTLED
from shrimpmx.experiment.explore.words import (
    FRONTIER,
    PLACES,
    TYPED,
    alike_words,
    closing,
    unit_of,
)
from shrimpmx.native.held import HeldDirectory
from shrimpmx.native.streams import put, tell, while_read
from shrimpmx.papers.registry import check_claims
from shrimpmx.results.json_file import write_json
from shrimpmx.results.result import default_output
from shrimpmx.results.words import number_words
from shrimpmx.show.plot.draw import FORMATS, save
from shrimpmx.show.terminal import console, say


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explore",
        allow_abbrev=False,
        description="Run an MPI program under settings of coalescing, placement and waiting, "
        "better ones more often, and recommend one.",
    )
    mpi_options.add_cluster_options(parser)
    add_engine_option(parser)
    for name, what in (
        ("coalescing", "coalescing strategies"),
        ("placement", "placements of interrupts and queues"),
        ("wait", "waiting strategies"),
    ):
        default = ",".join(ALL[name])
        parser.add_argument(
            f"--{name}",
            default=default,
            metavar="LIST",
            help=f"{what}, separated by commas ({default})",
        )
    parser.add_argument(
        "--for",
        dest="objective",
        choices=tuple(OBJECTIVES),
        default="time",
        help="objective: the least run time, CPU time or interrupts (time)",
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help=f"time limit for all runs ({BUDGET_S:g}; simulated: until settled)",
    )
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help=f"limit of runs per setting ({RUNS_MOST}; simulated: {SETTLED})",
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=0,
        metavar="N",
        help="then run the best settings again under N draws of a fitted platform's costs (0)",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="DIR", help="directory of the picture; default: the result's"
    )
    add_sweep_options(parser)
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Explore a program's settings, keep all runs, print what suits it; returns 0.

    Raises InputError, also for a budget too short for all settings; MachineError; and AgentError
    of a program that runs under no setting, with its exit code.
    """
    question = question_of(options)
    output = options.output or default_output("explore")
    engine = chosen_engine(options.engine, limit_s=options.timeout)
    exploring = Exploring(question, engine, output, resume=options.resume)
    check_claims(exploring.points)
    tell_doubts(exploring.points, options.settings, engine, exploring.scenario.policies)
    if options.plot is not None:
        _try_out(options.plot)
    with exploring.opened():
        pace, count = exploring.pace, len(exploring.points)
        within = "" if pace.seconds is None else f", within {pace.seconds:g} s"
        say(
            f"{count} setting{'s' * (count > 1)} of {shlex.join(options.words)}, {options.n} ranks "
            f"on {exploring.scenario.parameters['nodes']} nodes{within}"
        )
        try:
            exploring.run()
            _report(options, exploring)
        except DeadlineError as error:
            say(late_words(error, "raise --timeout if it needs longer"))
            return EXIT_LATE
        except (KeyboardInterrupt, InterruptedRunError):
            next_command = going_on(output, _resume_command(options, exploring))
            tell(f"its runs are kept in {output}; {next_command}")
            raise
    return 0


def _resume_command(options: argparse.Namespace, exploring: Exploring) -> str:
    """The command line that goes on with an interrupted exploration."""
    places = {"--json": options.json, "--plot": options.plot}
    more = [word for name, place in places.items() if place for word in (name, str(place))]
    return exploring.resume_command(more)


def _try_out(directory: Path) -> None:
    """InputError if pictures cannot be written there once all has run."""
    try:
        with HeldDirectory.at(directory, make=True) as held:
            held.try_out()
    except OSError as error:
        raise InputError(
            f"--plot cannot write to {directory}: {error.strerror or error}; give another place"
        ) from error


def question_of(options: argparse.Namespace) -> Question:
    """What is asked. InputError if the options cannot be used."""
    mpi_options.check_options(options, "explore", OPTIONS)
    check_sweep_options(options)
    question = Question(
        mpi_options.program_of(options),
        coalescing=_names(options, "coalescing"),
        placement=_names(options, "placement"),
        wait=_names(options, "wait"),
        objective=options.objective,
        budget=options.budget,
        runs=options.runs,
        draws=options.draws,
        seed=options.seed,
        timeout=options.timeout,
        environment=exported(options.exports),
        wdir=options.wdir,
    )
    question.check()
    return question


def _names(options: argparse.Namespace, name: str) -> tuple[str, ...]:
    """The names that an option lists."""
    text: str = getattr(options, name)
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise InputError(f"--{name} takes comma-separated names, not {text!r}")
    return names


def _report(options: argparse.Namespace, exploring: Exploring) -> None:
    """Print and draw what was found. Raises what Exploring.check() does."""
    findings, document = exploring.keep()
    shortage, output = exploring.exploration.shortage(), exploring.output
    if findings is not None:
        with while_read():
            if shortage:
                print_unfinished(findings, console())
            else:
                print_findings(findings, console(), document["explore"]["texts"])
    if options.json:
        write_json(options.json, document)
    paths: list[Path] = []
    if findings is not None and not shortage:
        paths = save([chart_of(document["explore"])], options.plot or output / "plots", FORMATS)
    with while_read():
        put("\n".join([*map(str, paths), f"result: {output}"]))
    exploring.check(findings, document)
    assert findings is not None
    from shrimpmx.page.page import write_beside

    write_beside(output, [output])
    with while_read():
        console().print(escape(closing(findings)))


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
