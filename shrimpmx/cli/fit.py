"""`shrimpmx fit`: hosts from measurements."""

from __future__ import annotations

import argparse
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from shrimpmx.cli.options import add_scheduler_options, add_settings_option
from shrimpmx.experiment.fit.benchmarks import BENCHMARKS
from shrimpmx.experiment.fit.fitting import BEGINS_WITH, Asked, fitted
from shrimpmx.experiment.fit.recipe import RECIPE
from shrimpmx.native.files import write_whole
from shrimpmx.page.fits import published_of
from shrimpmx.page.page import page_of_published
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.show.fit import (
    COST_HEADS,
    FIGURE_HEADS,
    cost_rows,
    figure_rows,
    sentences,
    table_of,
)
from shrimpmx.show.terminal import console

# Narrower the columns could not be read.
TABLE_WIDTH = 132


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "fit",
        description="Find the costs of hosts that explain measurements made there, and write them "
        "as a platform for simulated hosts. Measurements are tables (.csv, .toml) or the output of "
        f"{BENCHMARKS}. Each group in turn is left out and predicted from the others.",
    )
    parser.add_argument("measurements", nargs="*", type=Path, metavar="MEASUREMENTS")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.toml", help="where the platform goes"
    )
    parser.add_argument(
        "--platform",
        default=BEGINS_WITH,
        metavar="NAME",
        help="platform or file that the fit begins with (myri10g-2009)",
    )
    parser.add_argument(
        "--vary",
        default="",
        metavar="NAME,...",
        help="fit these costs only, by their names (all that the platform sets)",
    )
    parser.add_argument(
        "--topology",
        type=Path,
        metavar="FILE",
        help="the hosts' packages, caches and cores: output of lscpu, lscpu -J or lstopo --of xml",
    )
    add_settings_option(parser, "setting of all measurements that do not say otherwise")
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        metavar="N",
        help="divide the groups into N parts, and leave out one part, not one group, at a time",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the simulated runs (1)")
    parser.add_argument(
        "--workers",
        type=int,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="simulate N figures in parallel (as many as CPUs)",
    )
    add_scheduler_options(parser)
    parser.add_argument(
        "--json", type=json_place, metavar="PATH", help="also write everything there"
    )
    parser.add_argument(
        "--recipe", action="store_true", help="print commands that measure a cluster, and end"
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Fit, print and write; returns 0. InputError for bad input: nothing is written."""
    terminal = console()
    if options.recipe:
        terminal.print(RECIPE, markup=False, soft_wrap=True, end="")
        return 0
    given = vars(options)
    fit, target, forget = fitted(
        Asked(**{each.name: given[each.name] for each in fields(Asked) if each.name in given})
    )
    document = fit.document()
    write_whole(target.with_suffix(".html"), page_of_published([published_of(document)]))
    if options.json:
        write_json(options.json, document)
    forget()
    terminal.width = max(terminal.width, TABLE_WIDTH)
    terminal.print(table_of("Costs", COST_HEADS, cost_rows(document)))
    terminal.print(table_of("Figures", FIGURE_HEADS, figure_rows(document["measurements"])))
    for sentence in sentences(document):
        terminal.print(sentence, markup=False, soft_wrap=True)
    terminal.print(
        f"page: {target.with_suffix('.html')}\n"
        f"platform: {target}, for --engine simulated --set platform={target}",
        markup=False,
        soft_wrap=True,
    )
    return 0
