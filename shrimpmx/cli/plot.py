"""`shrimpmx plot`: pictures of results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.native.streams import put, tell
from shrimpmx.papers.charts import charts_of, why_empty
from shrimpmx.results.result import load_result, results_in
from shrimpmx.show.plot.draw import FORMATS, save

PLOTS_DIRECTORY = "plots"


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "plot",
        description="Draw a result: as the figure or table of its paper, with the paper's values "
        "next to yours; as an exploration's map of settings; or each metric over the axes of the "
        "sweep.",
    )
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULT",
        help="a result directory, its run.json, or a directory of results, such as reproduce makes",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help=f"default: {PLOTS_DIRECTORY} in each result"
    )
    parser.add_argument(
        "--format",
        dest="formats",
        type=_formats,
        default=FORMATS,
        metavar="LIST",
        help=f"formats, separated by commas ({','.join(FORMATS)})",
    )
    parser.set_defaults(function=run)


def _formats(text: str) -> tuple[str, ...]:
    formats = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    for name in formats:
        if name not in FORMATS:
            hint = did_you_mean(name, FORMATS)
            raise InputError(f"--format takes {' and '.join(FORMATS)}, not {name!r}{hint}")
    return formats


def run(options: argparse.Namespace) -> int:
    """Draw all results and print the files' names; returns 0. One with nothing to draw is noted.

    InputError if one is missing, damaged or empty, if none has anything to draw, or if the pictures
    cannot be written.
    """
    directories = list(dict.fromkeys(p for given in options.results for p in results_in(given)))
    # All are read before the first is drawn, so that a damaged one is told at once.
    read = [(directory, load_result(directory)) for directory in directories]
    charts = {directory: charts_of(document) for directory, document in read}
    empty = {
        directory: why_empty(document) for directory, document in read if not charts[directory]
    }
    if len(empty) == len(read) == 1:
        raise InputError(f"{directories[0]} has nothing to draw: {empty[directories[0]]}")
    for directory, why in empty.items():
        tell(f"shrimpmx: {directory} has nothing to draw: {why}")
    if len(empty) == len(read):
        raise InputError(f"none of these {len(read)} results has anything to draw")
    used: set[Path] = set()
    for directory in directories:
        if directory in empty:
            continue
        place = _free(
            options.output or directory / PLOTS_DIRECTORY, charts[directory][0].name, used
        )
        for path in save(charts[directory], place, options.formats):
            put(path)
    return 0


def _free(place: Path, name: str, used: set[Path]) -> Path:
    """`place`, or a directory below it if an earlier result of this call took the name there."""
    number, chosen = 1, place
    while chosen / name in used:
        number += 1
        chosen = place / str(number)
    used.add(chosen / name)
    return chosen
