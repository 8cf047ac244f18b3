"""`shrimpmx binding`: make the file that process_binding=file reads, from a proc tree."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shrimpmx.cluster.place.binding_file import prepare
from shrimpmx.errors import InputError
from shrimpmx.mx.binding import ENDPOINTS_MAX, default_file, parse_board
from shrimpmx.native.files import write_whole
from shrimpmx.native.streams import put


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "binding",
        description="Write, for each endpoint, the cores for its rx queue's interrupts, like "
        "omx_prepare_binding; process_binding=file:PATH then moves each process there. The tree "
        "may be a real machine's or an emulated node's.",
    )
    parser.add_argument(
        "--root", type=Path, default=Path("/"), metavar="DIR", help="directory of proc; default: /"
    )
    parser.add_argument(
        "--interface", required=True, metavar="NAME", help="name as in proc/interrupts: eth2, node0"
    )
    parser.add_argument(
        "--mac", required=True, type=_board, metavar="MAC", help="hardware address of its board"
    )
    parser.add_argument(
        "--endpoints",
        type=_endpoints,
        metavar="N",
        help="number of endpoints, 0 to N - 1; default: one per rx queue",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="default: the file of process_binding=file"
    )
    parser.set_defaults(function=run)


def _board(text: str) -> str:
    try:
        return parse_board(text)
    except ValueError as error:
        raise InputError(f"--mac: {error}") from None


def _endpoints(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= ENDPOINTS_MAX:
        raise InputError(f"--endpoints must be from 1 to {ENDPOINTS_MAX}, not {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Write the file and say where it is; returns 0. InputError as `prepare` raises it."""
    lines = prepare(options.root, options.interface, options.mac, options.endpoints)
    path = options.output or default_file()
    text = "".join(f"{line.text()}\n" for line in lines)
    write_whole(path, text, "give another place with --output")
    put(f"wrote the bindings of {len(lines)} endpoints of {options.interface} to {path}")
    return 0
