"""Input of the tools: what cannot be used ends them with a sentence and exit code 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

SEED = (0, 2**32 - 1)
# Processes at a time.
JOBS = (1, 1000)


def check(options: argparse.Namespace, limits: Mapping[str, tuple[float, float]]) -> None:
    """Exit if one of the options lies outside of its limits; None, not given, lies within."""
    for name, (least, most) in limits.items():
        value = getattr(options, name)
        if value is not None and not least <= value <= most:
            refuse(f"--{name.replace('_', '-')} must be from {least} to {most}, not {value}")


def seeds(text: str) -> range:
    """A-B as the seeds from A to B, a number as this one: the type of --seeds; exit if it is
    neither.
    """
    first, dash, last = text.partition("-")
    ends = (first, last if dash else first)
    if not all(map(str.isdecimal, ends)) or not int(ends[0]) <= int(ends[1]) <= SEED[1]:
        refuse(f"--seeds must be from A to B, as 1-500, or one, not {text!r}")
    return range(int(ends[0]), int(ends[1]) + 1)


def refuse(sentence: str) -> NoReturn:
    """Exit with a sentence that begins with the tool's name."""
    print(f"{Path(sys.argv[0]).name}: {sentence}", file=sys.stderr)
    raise SystemExit(2)
