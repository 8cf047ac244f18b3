"""`shrimpmx calibrate`: what wake-ups, interrupts and switches cost here, beside the platforms that
scenarios emulate, and the time dilation at which a run can stand for one of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from shrimpmx.bench import calibration
from shrimpmx.costs.table import COSTS
from shrimpmx.errors import InputError
from shrimpmx.experiment.engines import chosen_engine
from shrimpmx.experiment.machine_costs import path_costs
from shrimpmx.experiment.platform import PLATFORMS, Costs, proposal
from shrimpmx.experiment.platform_files import write_platform
from shrimpmx.experiment.this_machine import named_after, stored_calibration
from shrimpmx.native.files import check_place
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.results.words import number_words
from shrimpmx.settings.platform import Platform
from shrimpmx.show.terminal import console

NOT_STORED = "this machine's figures cannot be stored"
# With the costs of the platforms beside ours; on a narrower terminal the columns could not be read.
TABLE_WIDTH = 120


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "calibrate",
        description="Measure this machine's costs of wake-ups, interrupts and context switches, "
        "the handler's cost per packet, and T_block; store them below $XDG_CACHE_HOME/shrimpmx. "
        "Print them next to the costs of each platform, with the time dilation for emulating "
        "that platform here. Scenarios that need a calibration measure a missing one first.",
    )
    seconds = calibration.SECONDS
    parser.add_argument("--seconds", type=float, default=seconds, help=f"per cost ({seconds})")
    parser.add_argument(
        "--show", action="store_true", help="print the stored costs, measure nothing"
    )
    parser.add_argument(
        "--force", action="store_true", help="store the figures even if the stored ones are better"
    )
    parser.add_argument(
        "--write-platform",
        type=Path,
        metavar="FILE",
        help="write the figures as a platform file (TOML) for simulated hosts on any machine",
    )
    parser.add_argument(
        "--json", type=json_place, metavar="PATH", help="write the figures there too"
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Measure, print, store; returns 0. InputError for times that make no sense.

    What is stored already is kept if it is better: complete, or taken on a quieter machine.

    MachineError if they cannot be stored.
    """
    if not 0.01 <= options.seconds <= 60:
        raise InputError(f"--seconds must be from 0.01 to 60, not {options.seconds}")
    target = options.write_platform
    if target is not None and (target.suffix != ".toml" or not target.parent.is_dir()):
        raise InputError(f"--write-platform {target}: name a file.toml in a directory that exists")
    if target is not None:
        check_place(target, "give --write-platform another place")
    if not options.show:
        calibration.check_storage(NOT_STORED)
    measure = partial(path_costs, chosen_engine())
    document = (
        stored_calibration() if options.show else calibration.calibrate(options.seconds, measure)
    )
    costs = document["costs"]
    terminal = console()
    terminal.width = max(terminal.width, TABLE_WIDTH)
    terminal.print(costs_table(costs))
    terminal.print(f"CPUs are {document['state']}; taken {document['environment']['time']}")
    for platform in PLATFORMS.values():
        for line in platform_lines(platform, costs):
            terminal.print(line, soft_wrap=True, markup=False)
    if options.json:
        platforms = {name: proposal(platform, costs) for name, platform in PLATFORMS.items()}
        write_json(options.json, {**document, "platforms": platforms})
    if target is not None:
        write_platform(target, named_after(target, document))
        terminal.print(f"platform written to {target}", soft_wrap=True)
    if not options.show:
        terminal.print(_kept(document, options.force), soft_wrap=True, markup=False)
    return 0


def _kept(document: calibration.Document, force: bool) -> str:
    """Store a calibration, unless what is stored is better; what became of it."""
    try:
        before = None if force else calibration.load()
    except InputError:  # what cannot be used is replaced
        before = None
    if why := calibration.why_kept(before, document):
        taken = before["environment"]["time"] if before else ""
        return (
            f"not stored: the calibration of {taken} is kept, since {why}; calibrate again while "
            "nothing else runs, or with --force"
        )
    return f"stored in {calibration.store(document, NOT_STORED)}"


def platform_lines(platform: Platform, costs: Costs) -> Iterator[str]:
    """What the platform is, where its costs come from, and what a run takes to stand for it."""
    yield f"\n{platform.name}: {platform.title}"
    for name, cost in platform.costs.items():
        words = number_words(cost.value / 1000)
        yield f"  {name} {words} µs, {cost.origin}: {cost.source}"
    taken = proposal(platform, costs)
    if "unavailable" in taken:
        yield f"  no proposal: {taken['unavailable']}"
        return
    dilation = taken.pop("time_dilation")
    interrupt = number_words(taken.pop("interrupt_time_ns") / 1000)
    added = ", ".join(
        f"{number_words(ns / 1000)} µs per {COSTS[parameter].per}"
        for parameter, ns in taken.items()
    )
    if platform.dilation is not None:
        yield f"  dilation {dilation:g} on every machine: {platform.dilation_source}"
    yield f"  proposed here: time_dilation={dilation:g}; an interrupt then takes {interrupt} µs,"
    yield f"  and the host is charged {added or 'nothing'} in addition to its own costs"


def costs_table(costs: Costs) -> Table:
    """The costs with their 95 % intervals, in microseconds, beside those of each platform;
    reasons for those not available.
    """
    table = Table(box=None)
    table.add_column("cost", no_wrap=True)
    table.add_column("µs", justify="right")
    table.add_column("95 % interval", justify="right", no_wrap=True)
    for platform in PLATFORMS:
        table.add_column(platform, justify="right", no_wrap=True)
    table.add_column("what it is")
    for name, cost in costs.items():
        theirs = [_platform_cell(platform, name) for platform in PLATFORMS.values()]
        if "unavailable" in cost:
            table.add_row(name, "—", "", *theirs, f"{cost['meaning']}: {cost['unavailable']}")
            continue
        low, high = (number_words(end / 1000) for end in cost["ci95"])
        ours = number_words(cost["median"] / 1000)
        table.add_row(name, ours, f"{low} to {high}", *theirs, cost["meaning"])
    for name in {name: None for platform in PLATFORMS.values() for name in platform.costs}:
        if name not in costs:
            theirs = [_platform_cell(platform, name) for platform in PLATFORMS.values()]
            table.add_row(name, "—", "", *theirs, "not measured here: counts as 0")
    return table


def _platform_cell(platform: Platform, name: str) -> str:
    cost = platform.costs.get(name)
    return f"{number_words(cost.value / 1000)} ({cost.origin})" if cost else ""
