"""The options that several commands have."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from shrimpmx.cluster.nics.kind import kind_of
from shrimpmx.cluster.spec import CaptureRoom
from shrimpmx.errors import InputError
from shrimpmx.experiment.engines import ENGINES, SIMULATED
from shrimpmx.experiment.point import Point
from shrimpmx.native.streams import tell
from shrimpmx.results.json_file import json_place
from shrimpmx.settings.platform import DRAW

if TYPE_CHECKING:
    from shrimpmx.experiment.recording import Recording

BOTH = "both"
# The scenario of a program that is named without one.
PROGRAM_SCENARIO = "smoke/program"
PROGRAM_KEYS = ("program", "workload.program")
SCENARIO_WORDS = (
    "SCENARIO",
    "a scenario file, or a name such as smoke/pingpong; in place of both program=FILE: a "
    "Python file to run as the ranks (with workload=mpi an executable)",
    "+",
)
# Compiled code takes 64 bits, and each run adds its number to the sweep's seed.
SEED_MAX = 2**63 - 1


def add_words(parser: argparse.ArgumentParser, what: str, meaning: str, least: str) -> None:
    """The words of a command: names of `what`, `least` "+" or "*" of them, and settings."""
    parser.add_argument(
        "words",
        nargs=least,
        metavar=f"{what} | KEY=VALUE",
        help=f"{meaning}; KEY=VALUE: as with --set",
    )
    add_settings_option(parser, "set a parameter, or the values of an axis (a,b,c)")


def take_settings(options: argparse.Namespace) -> list[str]:
    """The names among a command's words; the settings among them join those of --set."""
    names = [word for word in options.words if not _is_setting(word)]
    options.settings = [*(word for word in options.words if word not in names), *options.settings]
    return names


def _is_setting(word: str) -> bool:
    """Whether a word is KEY=VALUE, and no file whose name has that form."""
    return "=" in word and not os.path.exists(word)


def take_scenario(options: argparse.Namespace) -> str:
    """The name of the scenario among a command's words; the settings join those of --set."""
    names = take_settings(options)
    if len(names) > 1:
        raise InputError(f"one scenario at a time, not {', '.join(names)}")
    if names:
        return names[0]
    if any(setting.partition("=")[0].strip() in PROGRAM_KEYS for setting in options.settings):
        return PROGRAM_SCENARIO
    raise InputError(
        "name a scenario (shrimpmx list shows them), or give program=FILE, a Python file or, with "
        "workload=mpi, an executable"
    )


def add_sweep_options(parser: argparse.ArgumentParser) -> None:
    """Options of whatever runs scenarios."""
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="seed of point order, faults and all other draws (1)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="new or empty directory for the result; default: results/NAME-TIME",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the interrupted result in --output, with the same settings and seed, on the "
        "same machine with the same code",
    )
    parser.add_argument(
        "--json",
        type=json_place,
        metavar="PATH",
        help="also write the result there; -: to the standard output",
    )


def check_sweep_options(options: argparse.Namespace) -> None:
    """InputError if they cannot be used together."""
    if options.seed < 0:
        raise InputError(f"--seed must be at least 0, not {options.seed}")
    if options.seed > SEED_MAX:
        raise InputError(f"--seed must be at most 2**63 - 1, {SEED_MAX}, not {options.seed}")
    if options.resume and not options.output:
        raise InputError("--resume needs --output DIR, the result to continue")


def add_settings_option(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Declare it, repeatable, as `settings`."""
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"{meaning}; repeatable",
    )


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
        help="simulate N points in parallel (1)",
    )
    add_scheduler_options(parser)


def add_groups_option(parser: argparse.ArgumentParser) -> None:
    """Declare --groups."""
    parser.add_argument(
        "--groups",
        type=int,
        default=1,
        metavar="N",
        help="simulate each run by N processes, each with a group of the leaf switches of a fat "
        "tree (1)",
    )


def check_groups_option(options: argparse.Namespace) -> None:
    """InputError if it cannot be used with the others."""
    if options.groups < 1:
        raise InputError(f"--groups must be at least 1, not {options.groups}")
    if options.groups > 1 and options.engine != SIMULATED:
        raise InputError("--groups needs --engine simulated")
    if options.groups > 1 and options.scheduler is not None:
        raise InputError(
            "--groups divides runs on this machine only: leave out either --groups or --scheduler"
        )


def add_scheduler_options(parser: argparse.ArgumentParser) -> None:
    """Declare --scheduler and --trust-network."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="make the runs on the workers of this Dask scheduler, such as tls://head:8786",
    )
    parser.add_argument(
        "--trust-network",
        action="store_true",
        help="allow --scheduler on a network without TLS",
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


def add_what_if_option(parser: argparse.ArgumentParser) -> None:
    """Declare --what-if."""
    parser.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="simulate again with this parameter or cost, too, or without the costs of a part of "
        "the time, as in interrupt=0, and print the difference of each part of the critical path; "
        "repeatable",
    )


def check_what_if_option(options: argparse.Namespace) -> None:
    """InputError if it cannot be used."""
    if not options.what_if:
        return
    if options.engine != SIMULATED:
        raise InputError("--what-if needs --engine simulated: real runs always differ")
    for name in ("resume", "scheduler", "draws"):
        if getattr(options, name, None):
            raise InputError(f"--what-if cannot be combined with --{name}: leave one of them out")
    if getattr(options, "workers", 1) > 1:
        raise InputError("--what-if runs in one process: leave --workers out")


def add_draws_option(parser: argparse.ArgumentParser) -> None:
    """Declare --draws."""
    parser.add_argument(
        "--draws",
        type=int,
        default=0,
        metavar="N",
        help="run also under N draws of a fitted platform's costs, and print the spread of each "
        "figure (0)",
    )


def check_draws_option(options: argparse.Namespace) -> None:
    """InputError if it cannot be used."""
    if options.draws < 0:
        raise InputError(f"--draws must be 0 or more, not {options.draws}")
    if options.draws and options.engine != SIMULATED:
        raise InputError("--draws works on simulated hosts only: add --engine simulated")
    names = [setting.partition("=")[0].strip() for setting in options.settings]
    if options.draws and any(name.rpartition(".")[2] == DRAW for name in names):
        raise InputError(f"--draws and --set {DRAW} both choose draws: give one of them")


def check_engine_options(options: argparse.Namespace) -> None:
    """InputError if they cannot be used together."""
    if options.workers < 1:
        raise InputError(f"--workers must be at least 1, not {options.workers}")
    if options.scheduler is not None and options.workers > 1:
        raise InputError("--workers is for this machine: leave it out with --scheduler")
    if options.workers > 1 and options.engine == ENGINES[0]:
        raise InputError(
            "parallel runs of real processes disturb each other: --workers needs --engine simulated"
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
    words += [] if getattr(options, "groups", 1) == 1 else ["--groups", str(options.groups)]
    words += [] if options.scheduler is None else ["--scheduler", options.scheduler]
    return words + (["--trust-network"] if options.trust_network else [])


def are_elsewhere(options: argparse.Namespace) -> bool:
    """Whether other machines' times are measured, each with its environment and costs."""
    return options.engine != SIMULATED and options.scheduler is not None


# The head of a frame: addresses, EtherType, peer index.
LEAST_SNAP_BYTES = 16
DEFAULT = CaptureRoom()


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    parser.add_argument(
        "--trace", action="store_true", help="record every agent's actions, next to the result"
    )
    parser.add_argument(
        "--capture",
        action="store_true",
        help="keep the frames at both ends of links, for Wireshark, next to the result",
    )
    parser.add_argument(
        "--snap-length",
        type=int,
        metavar="BYTES",
        help="with --capture: keep the first BYTES of each frame only",
    )
    parser.add_argument(
        "--capture-size",
        type=int,
        metavar="MIB",
        help=f"with --capture: memory for the last frames of each end ({DEFAULT.end_bytes >> 20})",
    )


def room_of(options: argparse.Namespace) -> CaptureRoom:
    """What a capture is to keep. InputError if the options make no sense."""
    given = {"--snap-length": options.snap_length, "--capture-size": options.capture_size}
    for name, value in given.items():
        if value is not None and not options.capture:
            raise InputError(f"{name} is for captures: add --capture, or leave it out")
    snap_bytes, size_mib = given.values()
    if snap_bytes is not None and snap_bytes < LEAST_SNAP_BYTES:
        raise InputError(f"--snap-length must be at least {LEAST_SNAP_BYTES}, not {snap_bytes}")
    if size_mib is not None and size_mib < 1:
        raise InputError(f"--capture-size must be at least 1 MiB, not {size_mib}")
    return CaptureRoom(size_mib << 20 if size_mib else DEFAULT.end_bytes, snap_bytes)


def recording_of(options: argparse.Namespace, output: Path) -> Recording:
    """What runs are to keep in the directory of their result. InputError as room_of."""
    # What writes the files would delay commands that write none.
    from shrimpmx.experiment.recording import Recording
    from shrimpmx.results.result import CAPTURES, TRACES

    return Recording(
        output / TRACES if options.trace else None,
        output / CAPTURES if options.capture else None,
        room_of(options),
    )


def check_recording(options: argparse.Namespace, points: Iterable[Point]) -> None:
    """InputError if runs elsewhere are to be recorded, or a capture would have no frame."""
    room_of(options)
    elsewhere = getattr(options, "scheduler", None) is not None
    for name in ("trace", "capture"):
        if elsewhere and getattr(options, name):
            raise InputError(f"--{name} is for runs on this machine: leave --scheduler out")
    if options.capture and not any(map(_sends_frames, points)):
        raise InputError(
            "--capture would hold no frame, as all ranks are on one node: take more nodes, or set "
            "disable_shared=true"
        )


def recording_words(options: argparse.Namespace) -> list[str]:
    """The words of a command line that goes on with the same."""
    words = [f"--{name}" for name in ("trace", "capture") if getattr(options, name)]
    for name in ("snap_length", "capture_size"):
        if getattr(options, name) is not None:
            words += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    return words


def _sends_frames(point: Point) -> bool:
    """Whether frames may travel in its runs."""
    parameters = point.parameters
    alone = parameters.cluster.nodes == 1 and not kind_of(parameters.nic).vmmc
    return not alone or parameters.mx.disable_shared or parameters.mx.disable_self
