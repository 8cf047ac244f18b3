"""`shrimpmx export`: the samples of a result as a table for other programs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.native.files import write_whole
from shrimpmx.results.json_file import STANDARD_OUTPUT
from shrimpmx.results.result import RUN_FILE, load_measured

# The forms of a table: how the option says it, and what makes the text of a result's document.
FORMS = {"csv": ("as CSV", "shrimpmx.results.sample_table:csv_of")}


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "export", description="Write the samples of a result as a table: one line per sample."
    )
    parser.add_argument(
        "result", type=Path, metavar="RESULT", help=f"a result directory or its {RUN_FILE}"
    )
    forms = parser.add_mutually_exclusive_group()
    for form, (words, _) in FORMS.items():
        forms.add_argument(
            f"--{form}",
            nargs="?",
            type=Path,
            const=STANDARD_OUTPUT,
            metavar="FILE",
            help=f"{words}, to the standard output without FILE",
        )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Write the table; returns 0.

    InputError if the result is missing, damaged or empty, MachineError if the file cannot be
    written.
    """
    form = next((form for form in FORMS if getattr(options, form) is not None), None)
    if form is None:
        raise InputError(f"choose a format for the table: --{' or --'.join(FORMS)}")
    path, (_, function) = getattr(options, form), FORMS[form]
    text: str = resolve_name(function)(load_measured(options.result))
    if path == STANDARD_OUTPUT:
        sys.stdout.write(text)
    else:
        write_whole(path, text, f"give another file with --{form}")
    return 0
