"""`shrimpmx caches`: cache misses of a node's receive path, simulated by valgrind."""

from __future__ import annotations

import argparse
import importlib
from dataclasses import asdict
from typing import Any

from rich.table import Table

from shrimpmx.errors import InputError
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.settings.workload import MESSAGE_MAX_BYTES
from shrimpmx.show.terminal import console

SIZES = (0, 128, 32768)
PACKETS = 1000
# The paper's hosts.
MACHINE = "clovertown-2007"
SAME_CORE = (
    "One core is simulated, with handler and rank (SC) and nothing else. Other bindings add "
    "hand-overs between cores: see the metric handovers_per_packet."
)


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "caches",
        description="Run one node's receive path under valgrind's callgrind, in a ping-pong, and "
        "print the cache misses of handler and rank per packet. docs/performance.md explains them.",
    )
    parser.add_argument(
        "--size",
        type=int,
        action="append",
        metavar="BYTES",
        help=f"message size; repeatable (default {', '.join(map(str, SIZES))})",
    )
    parser.add_argument(
        "--packets", type=int, default=PACKETS, help=f"approximate packets per size ({PACKETS})"
    )
    parser.add_argument(
        "--machine",
        default=MACHINE,
        metavar="NAME|SIZES",
        help=f"machine of the caches: {MACHINE}, this, or two sizes, such as 32K,4M ({MACHINE})",
    )
    parser.add_argument(
        "--copy-offload", action="store_true", help="a dma agent copies the data of large messages"
    )
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write the figures there")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Simulate and print; returns 0. InputError for bad sizes, MachineError without valgrind."""
    # Loaded on use: it pulls in every compiled part, which no other command needs.
    module = importlib.import_module("shrimpmx.bench.caches.callgrind")
    simulation = importlib.import_module("shrimpmx.bench.caches.simulation")
    sizes = options.size or list(SIZES)
    for size_bytes in sizes:
        if not 0 <= size_bytes <= MESSAGE_MAX_BYTES:
            raise InputError(f"--size must be 0 to {MESSAGE_MAX_BYTES} bytes, not {size_bytes}")
    if options.packets < 1:
        raise InputError(f"--packets must be at least 1, not {options.packets}")
    caches = module.simulated_caches(options.machine)
    rounds = simulation.plan(sizes, options.packets)
    simulation.check_valgrind()
    console(stderr=True).print("Python takes a few seconds to start under valgrind.")
    figures = simulation.simulate(rounds, caches, options.copy_offload)
    if options.json:
        write_json(options.json, {"machine": options.machine, **asdict(figures)})
    _print(figures)
    return 0


def _print(figures: Any) -> None:
    table = Table(box=None)
    for name in ("message", "part", *COLUMNS, "miss rate"):
        table.add_column(name, justify="left" if name == "part" else "right", no_wrap=True)
    for found in figures.sizes:
        for part, cost in (("handler", found.handler), ("library", found.library)):
            rate = cost.miss_rate
            table.add_row(
                f"{found.size_bytes} B",
                part,
                *(_figure(getattr(cost, field) / found.packets) for field in COLUMNS.values()),
                "—" if rate is None else f"{rate:.1f} %",
            )
    terminal = console()
    terminal.print(table)
    terminal.print("All figures but the miss rate are per packet found by the handler.")
    for line in figures.caches:
        terminal.print(line)
    terminal.print(SAME_CORE)


# Columns by the fields of a Cost. A miss of the first level is a reference to the last one.
COLUMNS = {
    "instructions": "instructions",
    "data refs": "data_references",
    "L1 misses": "first_misses",
    "LL misses": "last_misses",
}


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"
