"""`shrimpmx report`: results as one HTML page that works offline."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shrimpmx.native.streams import put
from shrimpmx.page.page import PAGE_FILE, published_in, write_page
from shrimpmx.results.result import RUN_FILE, results_in


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "report",
        description="Write results as one self-contained HTML page: question, verdicts, figures, "
        "tables, their origin, and the data as downloads. Two results are compared side by side "
        "first.",
    )
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULT",
        help="a result directory, its run.json, a directory of results, such as reproduce makes; "
        "or a claims.json, validation.json or conformance.json (also .gz), or a directory of these",
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
    others = {given: published_in(given) for given in options.results}
    directories = list(dict.fromkeys(p for given in others for p in _results(given, others[given])))
    place = options.output or _common(options.results) / PAGE_FILE
    # Two that are named one by one, not a directory that happens to hold two.
    compared = len(options.results) == len(directories) == 2
    published = dict.fromkeys(path for found in others.values() for path in found)
    write_page(directories, list(published), place, compared=compared)
    put(place)
    return 0


def _results(given: Path, others: Sequence[Path]) -> Iterator[Path]:
    """The results that a path means; where `others` are published there may be none."""
    if not others or (os.path.isdir(given) and next(given.rglob(RUN_FILE), None)):
        yield from results_in(given)


def _common(given: Sequence[Path]) -> Path:
    """The directory that is given, or the one that holds all of those that are."""
    places = [path.parent if os.path.isfile(path) else path for path in given]
    if len(places) == 1:
        return places[0]
    return Path(os.path.relpath(os.path.commonpath([path.absolute() for path in places])))
