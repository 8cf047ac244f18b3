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
    COUNTS_WITHIN,
    TIMES_WITHIN,
    Compared,
    accuracy,
    as_data,
    earlier_figures,
    repeated,
    summary,
)
from shrimpmx.experiment.validation.families import FAMILIES, shortened
from shrimpmx.experiment.validation.running import Validation
from shrimpmx.results.environment import environment
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.results.words import number_words
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
        help="output of an earlier validate --json of this machine, whose real runs are compared "
        "with these, too",
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
            f"no point has enough real runs with the CPUs {state}, as in the calibration; that "
            "may change by itself: try again in a minute, or calibrate again"
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
                f"--set {setting}: validate compares this machine with the platform this-machine; "
                "leave it out, or take another one by run --engine simulated"
            )
    chosen = [family for family in known if not options.only or family.name in options.only]
    return [family.changed(options.settings) for family in chosen]


def family_table(family: Scenario, rows: Sequence[Compared]) -> Table:
    """The figures of one kind of points, a line for each metric of each point."""
    axes = list(family.sweep)
    table = Table(title=family.title, title_justify="left", box=None)
    for axis in axes:
        table.add_column(axis, no_wrap=True)
    for head in ("metric", "on"):
        table.add_column(head, no_wrap=True)
    for head in ("real", "95 % interval", "simulated", "ratio", "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        ratio = "—" if row.ratio is None else f"{row.ratio:.2f}"
        table.add_row(
            *(str(row.params[axis]) for axis in axes),
            f"{row.metric}, {row.unit}",
            row.model,
            number_words(row.real),
            " to ".join(map(number_words, row.real_ci95 or ())),
            number_words(row.simulated),
            ratio,
            " to ".join(f"{end:.2f}" for end in row.ratio_ci95 or ()),
        )
    return table


def failure_lines(failed: Sequence[dict[str, Any]]) -> list[str]:
    """Which points are left out since a run of them failed, and why."""
    return [
        f"failed, and left out: {each['family']} "
        + ", ".join(f"{name} {value}" for name, value in each["params"].items())
        + f": {each['reason']}"
        for each in failed
    ]


def summary_lines(found: dict[str, Any]) -> list[str]:
    """What came out in all, and how undisturbed it was."""
    lines = [
        f"{found['points']} points",
        f"counts: {found['counts_within']} of {found['counts']} within {COUNTS_WITHIN:.0%}; "
        f"without zeros and frames per message, {found['timed_counts_within']} of "
        f"{found['timed_counts']}",
    ]
    if found["certain_counts"]:
        lines.append(
            f"  of the {found['certain_counts']} of these on which real runs agree within "
            f"{COUNTS_WITHIN:.0%}, {found['certain_counts_within']}"
        )
    if found["median_error"] is not None:
        lines.append(
            f"times: the median of {found['times']} errors is {found['median_error']:.1%} "
            f"(aim: {TIMES_WITHIN:.0%})"
        )
    if again := found.get("real_again"):
        error = again["median_error"]
        lines.append(
            f"real runs of the earlier validation, which has {again['points']} of these points, in "
            f"place of the simulated ones: counts {again['counts_within']} of {again['counts']}, "
            f"certain ones {again['certain_counts_within']} of {again['certain_counts']}"
            + ("" if error is None else f", times {error:.1%}")
        )
    for name, each in found["families"].items():
        error = each["median_error"]
        lines.append(
            f"  {name}: {each['points']} points, counts {each['counts_within']} of "
            f"{each['counts']}" + ("" if error is None else f", times {error:.1%}")
        )
    orders = found["orders_reversed"]
    lines.append(f"orders: {len(orders)} reversed of {found['orders_certain']} that are certain")
    lines += [f"  reversed: {words}" for words in orders]
    if found["left_aside"]:
        aside = ", ".join(f"{count} {state}" for state, count in found["left_aside"].items())
        lines.append(
            f"real runs excluded, since the calibration has the CPUs {found['state']}: {aside}; "
            f"points not compared, for want of other runs: {found['not_compared']}"
        )
    if found["disturbed"] + found["retaken"]:
        causes = ", ".join(f"{name} {count}" for name, count in found["disturbances"].items())
        lines.append(
            f"real runs disturbed from outside: {found['disturbed']} kept, {found['retaken']} "
            f"repeated ({causes})"
        )
    return lines
