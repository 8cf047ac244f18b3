"""`shrimpmx doctor`: what this machine can and cannot show, and how to enable it."""

from __future__ import annotations

import argparse
from typing import Any

from rich.markup import escape
from rich.table import Table

from shrimpmx.bench.checkup import CheckResult, checkup
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.show.terminal import console

_STYLE = {"good": "green", "limited": "yellow", "missing": "red"}


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "doctor",
        description="Check this machine's CPUs, permissions and limits for runs.",
    )
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write the results there")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print the results; returns 0 also if something is missing: the run says so itself."""
    results = checkup()
    if options.json:
        write_json(options.json, {"findings": [result.as_dict() for result in results]})
    terminal = console()
    table = Table.grid(padding=(0, 1))
    for result in results:
        style = _STYLE[result.state]
        table.add_row(f"[{style}]{result.state:8}[/{style}]", _lines(result))
    terminal.print(table)
    return 0


def _lines(result: CheckResult) -> str:
    sentences = (sentence for sentence in (result.follows, result.enable) if sentence)
    head = f"[bold]{result.what}[/bold]: {escape(result.found)}"
    return "\n".join((head, *map(escape, sentences)))
