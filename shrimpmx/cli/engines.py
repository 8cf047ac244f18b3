"""The engine that commands run clusters with."""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.errors import InputError
from shrimpmx.experiment.clusters import shared_cores, unasked_policies
from shrimpmx.experiment.heeded import unheeded
from shrimpmx.native.cores import processes_visible
from shrimpmx.native.streams import tell
from shrimpmx.settings.strategies import NO_TIMER

if TYPE_CHECKING:
    from shrimpmx.experiment.point import Point

REAL, SIMULATED = "forked", "simulated"
ENGINES = (REAL, SIMULATED)
BOTH = "both"


def add_engine_options(parser: argparse.ArgumentParser, *, both: bool = False) -> None:
    """Declare --engine, --workers and --scheduler; with `both` one may be asked for after the
    other.
    """
    add_engine_option(parser, both=both)
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="simulate N points beside each other (1)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="make the runs on the workers of the Dask scheduler there, such as tls://head:8786",
    )
    parser.add_argument(
        "--trust-network",
        action="store_true",
        help="let --scheduler use a network without TLS",
    )


def add_engine_option(parser: argparse.ArgumentParser, *, both: bool = False) -> None:
    """Declare --engine; with `both` that is a choice, too."""
    also = "; or both, one after the other" if both else ""
    parser.add_argument(
        "--engine",
        choices=(*ENGINES, BOTH) if both else ENGINES,
        default=ENGINES[0],
        help="real processes on this machine (forked), or emulated hosts under a virtual clock"
        f"{also}",
    )


def check_engine_options(options: argparse.Namespace) -> None:
    """InputError if they cannot be used together."""
    if options.workers < 1:
        raise InputError(f"--workers must be at least 1, not {options.workers}")
    if options.scheduler is not None and options.workers > 1:
        raise InputError("--workers is for this machine: leave it out with --scheduler")
    if options.workers > 1 and options.engine == ENGINES[0]:
        raise InputError(
            "runs of real processes beside each other disturb each other: --workers needs "
            "--engine simulated"
        )
    cpus = len(os.sched_getaffinity(0))
    if options.workers > cpus:
        tell(
            f"shrimpmx: --workers {options.workers} is more than there are CPUs, {cpus}: more "
            "workers than CPUs seldom help, and each of them takes memory"
        )


def engine_words(options: argparse.Namespace) -> list[str]:
    """The options of an engine that a command was given, as words of its command line."""
    words = [] if options.engine == ENGINES[0] else ["--engine", options.engine]
    words += [] if options.workers == 1 else ["--workers", str(options.workers)]
    words += [] if options.scheduler is None else ["--scheduler", options.scheduler]
    return words + (["--trust-network"] if options.trust_network else [])


def are_elsewhere(options: argparse.Namespace) -> bool:
    """Whether other machines' times are measured, each with its environment and costs."""
    return options.engine != SIMULATED and options.scheduler is not None


def tell_doubts(
    points: Sequence[Point],
    settings: Iterable[str],
    engine: Engine,
    policies: Mapping[str, Callable[[], Any]],
) -> None:
    """Name the user's `settings` without effect, points whose packets may wait for others without
    end, a program's ranks that share cores under the engine, and those of the user's own `policies`
    that ignore completed sends.
    """
    shared = shared_cores(points, real=engine.is_real)
    frames = sorted({point.untimed_frames for point in points} - {0})
    for sentence in (
        *filter(None, [shared]),
        *unasked_policies(points, policies, real=engine.is_real),
        *unheeded(points, settings),
        *(NO_TIMER.format(count) for count in frames),
    ):
        tell(f"shrimpmx: note: {sentence}")


def check_real_hosts(points: Iterable[Point]) -> None:
    """InputError if a parameter describes hosts, which real processes have of their own."""
    for point in points:
        for name in sorted(point.parameters.model.model_fields_set):
            raise InputError(f"{name} describes simulated hosts: use --engine simulated")


def chosen_engine(name: str = ENGINES[0], limit_s: float | None = None) -> Engine:
    """The engine of that name; `limit_s`: how long a simulated run of programs may take here."""
    if name != ENGINES[0]:
        from shrimpmx.simulation.engine import Simulated

        return Simulated(limit_s=limit_s)
    _tell_what_cannot_be_seen()
    return Forked()


@functools.cache
def _tell_what_cannot_be_seen() -> None:
    visible, why = processes_visible()
    if not visible:
        tell(
            f"shrimpmx: {why}: if this one is killed, Python programs that ranks have started may "
            "go on; `shrimpmx doctor` says what to do"
        )
