"""`shrimpmx affinity`: which cores a live run's interrupts go to, and another choice of them."""

from __future__ import annotations

import argparse
from typing import Any

from shrimpmx.cli.live_tables import seats_words
from shrimpmx.cluster.live.attach import AttachedRun, no_vectors, steer
from shrimpmx.cluster.live.runs import choose_run, command_of
from shrimpmx.errors import InputError
from shrimpmx.settings.core_lists import format_core_list, parse_core_mask
from shrimpmx.show.terminal import console


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "affinity",
        description="Print the interrupts of a live run like /proc/interrupts, with the affinity "
        "of each vector; or redirect one vector to other cores during the run, like a write to "
        "smp_affinity_list or smp_affinity.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="RUN-ID",
        help="id of a live run, or its first characters; default: the newest run of real processes",
    )
    parser.add_argument("--node", type=int, metavar="N", help="only this node")
    parser.add_argument("--vector", type=int, metavar="V", help="the vector to change")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--cores", metavar="LIST", help="emulated cores of that node, such as 0-3,8")
    where.add_argument("--mask", metavar="HEX", help="the same as a mask, such as 10f")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print the tables, or change one affinity; returns 0.

    InputError for a run, node, vector or core that there is not, and for an empty list.
    """
    cores = _wanted(options)
    with AttachedRun(choose_run(options.target, to_change=cores is not None)) as attached:
        if cores is None:
            _print(attached, options.node)
        else:
            before = steer(attached, options.node, options.vector, cores)
            now = attached.nodes[options.node].affinity(options.vector)
            console(soft_wrap=True).print(
                f"node {options.node}, vector {options.vector}: interrupts go to "
                f"{_cores_words(now)} from now on; before, to {_cores_words(before)}"
            )
    return 0


def _wanted(options: argparse.Namespace) -> str | None:
    """The list of cores to send interrupts to; None: nothing is to be changed."""
    cores: str | None = options.cores
    if options.mask is not None:
        try:
            cores = format_core_list(parse_core_mask(options.mask))
        except ValueError as error:
            raise InputError(f"--mask: {error}") from None
    if cores is None:
        if options.vector is not None:
            raise InputError("--vector needs its new cores: --cores LIST or --mask HEX")
        return None
    if options.node is None or options.vector is None:
        raise InputError("--cores and --mask need a vector: --node N --vector V")
    return cores


def _print(attached: AttachedRun, only: int | None) -> None:
    numbers = list(attached.nodes) if only is None else [attached.checked_node(only)]
    terminal = console(soft_wrap=True)
    terminal.print(f"run {attached.run.run_id}", markup=False)
    terminal.print(f"command  {command_of(attached.run)}", markup=False, highlight=False)
    for number in numbers:
        why = no_vectors(attached, number)
        if why:
            terminal.print(f"\nnode {number}: {why}")
        else:
            terminal.print(f"\n{_table(attached, number)}", markup=False)


def _table(attached: AttachedRun, number: int) -> str:
    """The interrupts of a node, with a vector's affinity and the processes it serves behind it."""
    node, reading = attached.nodes[number], attached.node_reading(number)
    head, *rows = node.interrupts_table().splitlines()
    lines = [f"node {number}, {_cores_words(range(node.cores_count))}", head]
    for vector, row in enumerate(rows):
        served = [seat for seat in reading.endpoints if seat.queue == vector]
        affinity = format_core_list(reading.affinities[vector])
        lines.append(f"{row}  affinity {affinity}  {seats_words(served)}".rstrip())
    return "\n".join(lines)


def _cores_words(cores: range | tuple[int, ...]) -> str:
    return f"core{'s' if len(cores) > 1 else ''} {format_core_list(cores)}"
