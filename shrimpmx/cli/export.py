"""`shrimpmx export`: the samples of a result as a table for other programs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from shrimpmx.native.files import write_whole
from shrimpmx.results.json_file import STANDARD_OUTPUT
from shrimpmx.results.result import RUN_FILE, load_measured
from shrimpmx.results.sample_table import csv_of


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "export", description="Write the samples of a result as a table: one line per sample."
    )
    parser.add_argument(
        "result", type=Path, metavar="RESULT", help=f"a result directory or its {RUN_FILE}"
    )
    parser.add_argument(
        "--csv",
        nargs="?",
        type=Path,
        const=STANDARD_OUTPUT,
        required=True,
        metavar="FILE",
        help="as CSV, to the standard output without FILE",
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Write the table; returns 0.

    InputError if the result is missing, damaged or empty, MachineError if the file cannot be
    written.
    """
    text = csv_of(load_measured(options.result))
    if options.csv == STANDARD_OUTPUT:
        sys.stdout.write(text)
    else:
        write_whole(options.csv, text, "give another file with --csv")
    return 0
