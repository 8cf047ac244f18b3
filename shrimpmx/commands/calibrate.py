"""`shrimpmx calibrate`: what this machine charges for wake-ups, interrupts and switches."""

from __future__ import annotations

import argparse
from typing import Any

from rich.table import Table

from shrimpmx.commands.terminal import console
from shrimpmx.errors import InputError
from shrimpmx.execute import handler_cost
from shrimpmx.measure import calibration
from shrimpmx.measure.result import json_place, write_json
from shrimpmx.measure.words import number_words

SECONDS = 0.3


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "calibrate",
        help="measure what this machine charges, and store it",
        description="Measure wake-ups, interrupts, context switches, the handler's cost per "
        "packet, and T_block; stored below $XDG_CACHE_HOME/shrimpmx for this machine.",
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"per cost ({SECONDS})")
    parser.add_argument("--show", action="store_true", help="show what is stored, measure nothing")
    parser.add_argument(
        "--json", type=json_place, metavar="PATH", help="write the figures there too"
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Measure, print, store; returns 0. InputError for times that make no sense.

    MachineError if they cannot be stored, once they are printed and written to --json.
    """
    if not 0.01 <= options.seconds <= 60:
        raise InputError(f"--seconds must be from 0.01 to 60, not {options.seconds}")
    if options.show:
        stored = calibration.load()
        if stored is None:
            raise InputError("this machine has no stored calibration; run shrimpmx calibrate")
        document = stored
    else:
        document = calibration.calibrate(options.seconds)
        document["costs"]["handler_per_packet"] = handler_cost(options.seconds)
    terminal = console()
    terminal.print(costs_table(document["costs"]))
    terminal.print(f"CPUs are {document['state']}; taken {document['environment']['time']}")
    if options.json:
        write_json(options.json, document)
    if not options.show:
        terminal.print(f"stored in {calibration.store(document)}", soft_wrap=True)
    return 0


def costs_table(costs: dict[str, dict[str, Any]]) -> Table:
    """The costs with their 95 % intervals, in microseconds; reasons for those not available."""
    table = Table(box=None)
    table.add_column("cost")
    table.add_column("µs", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("what it is")
    for name, cost in costs.items():
        if "unavailable" in cost:
            table.add_row(name, "—", "", f"{cost['meaning']}: {cost['unavailable']}")
            continue
        low, high = (number_words(end / 1000) for end in cost["ci95"])
        table.add_row(
            name, number_words(cost["median"] / 1000), f"{low} to {high}", cost["meaning"]
        )
    return table
