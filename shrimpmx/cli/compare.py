"""`shrimpmx compare`: what changed from one result to another, point by point."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.results.comparison import (
    CHANGES,
    FASTER,
    NOT_COMPARABLE,
    SLOWER,
    UNCERTAIN,
    Comparison,
    compare,
)
from shrimpmx.results.disturbance import disturbance_words
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.result import RUN_FILE, load_measured
from shrimpmx.show.compared import (
    ComparedTable,
    compared_tables,
    counted_lines,
    difference_lines,
    hosts_line,
    reasons_of,
    repeating_lines,
)
from shrimpmx.show.terminal import console, print_whole

EXIT_FOUND = 1
_STYLE = {FASTER: "green", SLOWER: "red", UNCERTAIN: "yellow", NOT_COMPARABLE: "yellow"}
_JUDGED = (*CHANGES, UNCERTAIN, NOT_COMPARABLE)


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "compare", description="Compare two results: the factor of change of each figure."
    )
    what = f"a result directory or its {RUN_FILE}"
    parser.add_argument("first", type=Path, metavar="A", help=what)
    parser.add_argument("second", type=Path, metavar="B", help="another one")
    parser.add_argument(
        "--metrics", type=_names, default=(), metavar="NAME,...", help="only these metrics"
    )
    parser.add_argument(
        "--least",
        type=_share,
        default=0.0,
        metavar="PERCENT",
        help="count smaller changes as no difference",
    )
    parser.add_argument(
        "--fail-on",
        type=_verdicts,
        default=(),
        metavar="VERDICT,...",
        help=f"exit code {EXIT_FOUND} if a point has one of these: {', '.join(_JUDGED)}",
    )
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write all figures there")
    parser.set_defaults(function=run)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.replace("-", "_").split(","))
    if unknown := next((name for name in names if name not in METRICS), None):
        hint = did_you_mean(unknown, METRICS)
        raise InputError(
            f"--metrics: there is no metric {unknown!r}{hint} (shrimpmx list --metrics)"
        )
    return names


def _share(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent < 1000:
        raise InputError(f"--least must be a percentage of at least 0, not {text!r}")
    return percent / 100


def _verdicts(text: str) -> tuple[str, ...]:
    words = tuple(text.split(","))
    if unknown := next((word for word in words if word not in _JUDGED), None):
        hint = did_you_mean(unknown, _JUDGED)
        raise InputError(f"--fail-on takes {', '.join(_JUDGED)}, not {unknown!r}{hint}")
    return words


def run(options: argparse.Namespace) -> int:
    """Print what changed; returns 0, or EXIT_FOUND for --fail-on.

    InputError if a result is missing, damaged or empty, or if the two have no point in common.
    """
    first, second = load_measured(options.first), load_measured(options.second)
    found = compare(first, second, options.metrics, options.least)
    if not found.points:
        raise InputError(
            f"{options.first} and {options.second} have no point in common: their parameters have "
            "different values everywhere"
        )
    if not found.metrics():
        raise InputError(f"{options.first} and {options.second} have no metric in common")
    if options.json:
        write_json(options.json, _as_json(options, found))
    _print(options, (first, second), found, console())
    return EXIT_FOUND if set(options.fail_on) & set(found.verdicts()) else 0


def _as_json(options: argparse.Namespace, found: Comparison) -> dict[str, Any]:
    return {
        "first": str(options.first),
        "second": str(options.second),
        "settings": [list(each) for each in found.settings],
        "conditions": list(found.conditions),
        "alone": list(found.alone),
        "points": [
            {"params": place, "metrics": {name: asdict(change) for name, change in changes.items()}}
            for place, changes in found.points
        ],
    }


def _print(
    options: argparse.Namespace,
    documents: Sequence[Mapping[str, Any]],
    found: Comparison,
    terminal: Console,
) -> None:
    def say(text: str) -> None:
        terminal.print(escape(text), highlight=False)

    for line in hosts_line(found):
        say(line)
    for letter, path, document in zip(
        "AB", (options.first, options.second), documents, strict=True
    ):
        when = document["environment"].get("time", "")
        say(f"{letter}: {path}, {document['scenario']}{f', {when}' if when else ''}")
        if disturbed := disturbance_words(document["points"]):
            say(f"   {disturbed}")
    for line in difference_lines(found):
        say(line)
    for shown in compared_tables(found):
        terminal.print(f"\n[bold]{escape(shown.title)}[/bold]")
        print_whole(terminal, _table(shown))
    first, *rest = counted_lines(found)
    say(f"\n{first}")
    for line in rest:
        say(line)
    for reason in reasons_of(found):
        terminal.print(f"[yellow]note:[/yellow] {escape(reason)}", highlight=False)
    for line in repeating_lines(found):
        terminal.print(escape(line), highlight=False, soft_wrap=True)


def _table(shown: ComparedTable) -> Table:
    table = Table()
    *figures, verdict = shown.headings
    for heading in figures:
        table.add_column(escape(heading), justify="right", no_wrap=heading == figures[-1])
    table.add_column(verdict, no_wrap=True)
    for *cells, word in shown.rows:
        style = _STYLE.get(word)
        table.add_row(*map(escape, cells), f"[{style}]{word}[/{style}]" if style else word)
    return table
