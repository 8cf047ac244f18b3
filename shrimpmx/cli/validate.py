"""`shrimpmx validate`: points on real processes, and simulated with this machine's costs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from shrimpmx.cli.options import SEED_MAX, add_settings_option
from shrimpmx.errors import AgentError, InputError, NotHereError
from shrimpmx.experiment.progress_bar import progress_for
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.this_machine import calibrated_machine
from shrimpmx.experiment.validation.comparison import (
    Compared,
    accuracy,
    as_data,
    earlier_figures,
    repeated,
    summary,
)
from shrimpmx.experiment.validation.families import FAMILIES, shortened
from shrimpmx.experiment.validation.running import Validation
from shrimpmx.experiment.validation.words import (
    FIGURE_HEADS,
    WORD_HEADS,
    failure_lines,
    row_words,
    summary_lines,
)
from shrimpmx.results.environment import environment
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.settings.assignments import split_setting
from shrimpmx.settings.names import own_name
from shrimpmx.show.terminal import console

REPEATS = 5
REPEATS_MAX = 1000
# A point with fewer real runs at the distance of the calibration is not compared, if as many were
# asked for (ours).
LEAST_RUNS = 3
# Narrower the columns could not be read.
TABLE_WIDTH = 132


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    names = ", ".join(family.name for family in FAMILIES)
    parser = commands.add_parser(
        "validate",
        description="Run points alternately on real processes and simulated, with platform "
        "this-machine, and compare their figures. The calibration, made beforehand by `shrimpmx "
        "calibrate`, uses none of these points.",
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"these kinds of points only: {names}"
    )
    add_settings_option(parser, "set a parameter of these points, or the values of an axis (a,b,c)")
    parser.add_argument(
        "--points", type=int, metavar="N", help="the first N points of each kind only"
    )
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help=f"runs of each point ({REPEATS})"
    )
    parser.add_argument("--short", action="store_true", help="few points, one run of each")
    parser.add_argument("--seed", type=int, default=1, help="seed of the runs (1)")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="PATH",
        help="output of an earlier validate --json on this machine: compare both sets of real "
        "runs, too",
    )
    parser.add_argument(
        "--json", type=json_place, metavar="PATH", help="also write everything there"
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Run, print and write it; returns 0, whatever comes out of a point at least. InputError for
    bad options, or without a calibration; AgentError if all points fail; NotHereError if nothing
    can be run, or compared.
    """
    families = _families(options)
    earlier = earlier_figures(options.against) if options.against else {}
    platform, state = calibrated_machine()
    validation = Validation(families, platform, options.seed, options.points, state)
    if all(pair.impossible for pair in validation.pairs):
        raise NotHereError(validation.pairs[0].impossible)
    repeats = 1 if options.short else options.repeats
    validation.take_turns(repeats, progress_for("validate", validation.axes))
    least = min(repeats, LEAST_RUNS)
    rows, failed = validation.rows(least), validation.failures()
    if failed and not rows:
        raise AgentError(f"every point failed, the first one: {failed[0]['reason']}")
    if not rows:
        raise NotHereError(
            f"the CPUs were {state} during the calibration, but not in enough real runs: their "
            "distance may change by itself, so try again in a minute, or calibrate again"
        )
    axis = {family.name: family.compare or "" for family in families}
    found = {**summary(rows, axis), **validation.disturbances(), **validation.distances(least)}
    if earlier:
        found["real_again"] = accuracy(repeated(rows, earlier))
    terminal = console()
    terminal.width = max(terminal.width, TABLE_WIDTH)
    for family in families:
        mine = [row for row in rows if row.family == family.name]
        if mine:
            terminal.print(family_table(family, mine))
    for pair in validation.pairs:
        if pair.impossible:
            terminal.print(f"not measurable here: {pair.family.name}: {pair.impossible}")
    for line in (*failure_lines(failed), *summary_lines(found)):
        terminal.print(line, soft_wrap=True, markup=False, highlight=False)
    if options.json:
        document = {
            "schema": 1,
            "environment": environment(),
            "platform": platform.model_dump(mode="json", exclude_unset=True),
            "repeats": repeats,
            "rows": as_data(rows),
            "summary": found,
            "failed": failed,
        }
        write_json(options.json, document)
    return 0


def _families(options: argparse.Namespace) -> Sequence[Scenario]:
    known = shortened() if options.short else list(FAMILIES)
    names = [family.name for family in known]
    for name in options.only or ():
        if name not in names:
            raise InputError(f"--only {name}: there are {', '.join(names)}")
    if not 1 <= options.repeats <= REPEATS_MAX:
        raise InputError(f"--repeats must be 1 to {REPEATS_MAX}, not {options.repeats}")
    if options.points is not None and options.points < 1:
        raise InputError(f"--points must be at least 1, not {options.points}")
    if not 0 <= options.seed <= SEED_MAX:
        raise InputError(f"--seed must be from 0 to 2**63 - 1, not {options.seed}")
    for setting in options.settings:
        if own_name(split_setting(setting)[0]) == "platform":
            raise InputError(
                f"--set {setting}: leave it out, since validate compares this machine with the "
                "platform this-machine; `shrimpmx run --engine simulated` takes other platforms"
            )
    chosen = [family for family in known if not options.only or family.name in options.only]
    return [family.changed(options.settings) for family in chosen]


def family_table(family: Scenario, rows: Sequence[Compared]) -> Table:
    """The figures of one kind of points, a line for each metric of each point."""
    axes = list(family.sweep)
    table = Table(title=family.title, title_justify="left", box=None)
    for axis in axes:
        table.add_column(axis, no_wrap=True)
    for head in WORD_HEADS:
        table.add_column(head, no_wrap=True)
    for head in FIGURE_HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(str(row.params[axis]) for axis in axes), *row_words(row))
    return table
