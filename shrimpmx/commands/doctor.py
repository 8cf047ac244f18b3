"""`shrimpmx doctor`: what this machine can and cannot show, and how to enable it."""

from __future__ import annotations

import argparse
from typing import Any

from rich.markup import escape

from shrimpmx.bench.checkup import Finding, checkup
from shrimpmx.commands.terminal import console
from shrimpmx.results.result import json_place, write_json

_STYLE = {"good": "green", "limited": "yellow", "missing": "red"}


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "doctor",
        help="what this machine can and cannot show",
        description="Look at CPUs, permissions and limits, and say what follows for results.",
    )
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write the findings there")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings; returns 0 also if something is missing: the run says so itself."""
    findings = checkup()
    if options.json:
        write_json(options.json, {"findings": [finding.as_dict() for finding in findings]})
    terminal = console()
    for finding in findings:
        terminal.print(_lines(finding), soft_wrap=True)
    return 0


def _lines(finding: Finding) -> str:
    style = _STYLE[finding.state]
    lines = [
        f"[{style}]{finding.state:8}[/{style}] [bold]{finding.what}[/bold]: {escape(finding.found)}"
    ]
    lines.extend(
        f"{'':9}{escape(sentence)}" for sentence in (finding.follows, finding.enable) if sentence
    )
    return "\n".join(lines)
