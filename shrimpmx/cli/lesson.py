"""`shrimpmx lesson`: a page to learn from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.native.files import write_whole
from shrimpmx.native.streams import put, tell

NAMES = ("coalescing", "waiting", "queues")
# Runs between two lines of progress.
PROGRESS_RUNS = 50


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "lesson",
        description="Write a page with sliders: two rules side by side, played from traces of "
        "simulated hosts, and questions.",
    )
    parser.add_argument("lesson", metavar="LESSON", help=", ".join(NAMES))
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the page (LESSON.html)",
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Write the page; returns 0. InputError for another lesson, MachineError if it cannot be
    written.
    """
    # All that runs, which the other commands need not load.
    from shrimpmx.page.lessons.write import LESSONS, lesson_page

    lesson = LESSONS.get(options.lesson)
    if lesson is None:
        hint = did_you_mean(options.lesson, NAMES)
        raise InputError(f"lesson is one of {', '.join(NAMES)}, not {options.lesson!r}{hint}")
    place = options.output or Path(f"{lesson.name}.html")
    if place.is_dir():
        raise InputError(f"{place} is a directory; give a file with --output")
    write_whole(place, lesson_page(lesson, _tell_progress), "give another file with --output")
    put(str(place))
    return 0


def _tell_progress(made: int, of: int) -> None:
    if made % PROGRESS_RUNS == 0 or made == of:
        tell(f"shrimpmx: {made} of {of} simulated runs made")
