"""`shrimpmx bench`: the speed of the emulator itself, part by part."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from shrimpmx.errors import InputError
from shrimpmx.experiment.engines import chosen_engine
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.show.cells import cell_words, legend
from shrimpmx.show.terminal import console

SECONDS = 0.5
TABLE_WIDTH = 120


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "bench",
        description="Measure the speed of the emulator's parts: rings, wake-ups, the receive "
        "path, ping-pong.",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="figures whose names begin like this; repeatable",
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"per figure ({SECONDS})")
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write the results there")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print; returns 0. InputError if a name is unknown."""
    if not 0 < options.seconds <= 600:
        raise InputError(f"--seconds must be more than 0 and at most 600, not {options.seconds}")
    # Loaded on use: it pulls in every compiled part, which no other command needs.
    measure = importlib.import_module("shrimpmx.bench.run")
    results: Sequence[dict[str, Any]] = measure.run_bench(
        options.only, options.seconds, chosen_engine()
    )
    if options.json:
        write_json(options.json, {"results": list(results)})
    # Names are long and tell rows apart: of the columns only the last one may wrap.
    table = Table(box=None)
    table.add_column("what", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("CPUs", no_wrap=True)
    table.add_column("bound by", overflow="fold")
    rows = [_row(result) for result in results]
    for row in rows:
        table.add_row(*row)
    terminal = console()
    terminal.width = max(terminal.width, TABLE_WIDTH)
    terminal.print(table)
    if told := legend(cell for row in rows for cell in row[1:4]):
        terminal.print(escape(told))
    return 0


def _row(result: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """A result in words: rates in millions, what is missing with its reason."""
    name, unit = escape(result["name"]), str(result.get("unit", ""))
    if "unavailable" in result:
        return name, "—", "", "", str(result["unavailable"])
    shown = dict(result)
    if unit == "msg/s":
        unit = "M msg/s"
        shown["median"] = result["median"] / 1e6
        shown["ci95"] = [end / 1e6 for end in result["ci95"]]
    return name, cell_words(shown), unit, str(result["state"]), str(result["bound_by"])
