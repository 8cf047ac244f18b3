"""`shrimpmx report`: results as one HTML page that works offline."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shrimpmx.commands.plot import results_in
from shrimpmx.native.files import write_whole
from shrimpmx.page.page import page_of
from shrimpmx.page.stored import stored_in

PAGE_FILE = "report.html"


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "report",
        description="Write results as one HTML page that needs nothing beside itself: question, "
        "verdicts, tables, where the figures come from, and the data as downloads.",
    )
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULT",
        help="a result directory, its run.json, or a directory of results, such as reproduce makes",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help=f"default: {PAGE_FILE} in the result, or in the directory that holds all of them",
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Write the page of all results and print its path; returns 0.

    InputError if a result is missing, damaged or empty, MachineError if the page cannot be written.
    """
    directories = list(dict.fromkeys(p for given in options.results for p in results_in(given)))
    page = page_of([stored_in(directory) for directory in directories])
    place = options.output or _common(directories) / PAGE_FILE
    write_whole(place, page, "give another file with --output")
    print(place)
    return 0


def _common(directories: Sequence[Path]) -> Path:
    """The result, or the directory that holds all of them."""
    if len(directories) == 1:
        return directories[0]
    whole = Path(os.path.commonpath([directory.absolute() for directory in directories]))
    return Path(os.path.relpath(whole))
