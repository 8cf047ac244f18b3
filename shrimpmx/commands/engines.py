"""The engine that commands run clusters with."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import TYPE_CHECKING

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.errors import InputError
from shrimpmx.native.cores import processes_visible

if TYPE_CHECKING:
    from shrimpmx.study.sweep import Beside

REAL, SIMULATED = "forked", "simulated"
ENGINES = (REAL, SIMULATED)


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Declare --engine and --workers."""
    add_engine_option(parser)
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="simulate N points beside each other (1)",
    )


def add_engine_option(parser: argparse.ArgumentParser) -> None:
    """Declare --engine."""
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=ENGINES[0],
        help="real processes on this machine (forked), or emulated hosts under a virtual clock",
    )


def check_engine_options(options: argparse.Namespace) -> None:
    """InputError if they cannot be used together."""
    if options.workers < 1:
        raise InputError(f"--workers must be at least 1, not {options.workers}")
    if options.workers > 1 and options.engine == ENGINES[0]:
        raise InputError(
            "runs of real processes beside each other disturb each other: --workers needs "
            "--engine simulated"
        )


def runs_beside(options: argparse.Namespace) -> Beside | None:
    """What makes runs beside each other, as --workers says; None: they follow each other."""
    if options.workers == 1:
        return None
    from shrimpmx.study.workers import measured_beside

    return functools.partial(measured_beside, workers=options.workers)


def engine_words(options: argparse.Namespace) -> list[str]:
    """The options of an engine that a command was given, as words of its command line."""
    words = [] if options.engine == ENGINES[0] else ["--engine", options.engine]
    return words if options.workers == 1 else [*words, "--workers", str(options.workers)]


def chosen_engine(name: str = ENGINES[0]) -> Engine:
    """The engine of that name."""
    if name != ENGINES[0]:
        from shrimpmx.simulation.engine import Simulated

        return Simulated()
    _tell_what_cannot_be_seen()
    return Forked()


@functools.cache
def _tell_what_cannot_be_seen() -> None:
    visible, why = processes_visible()
    if not visible:
        print(
            f"shrimpmx: {why}: if this one is killed, Python programs that ranks have started may "
            "go on; `shrimpmx doctor` says what to do",
            file=sys.stderr,
            flush=True,
        )
