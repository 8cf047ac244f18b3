"""The options of commands that start MPI programs, and the scenarios that they describe."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from shrimpmx.cli.options import (
    add_draws_option,
    add_engine_option,
    add_recording_options,
    add_settings_option,
    add_what_if_option,
    check_draws_option,
    check_what_if_option,
)
from shrimpmx.cluster.spec import FOREVER_S, ClusterSpec
from shrimpmx.errors import InputError
from shrimpmx.experiment.engines import REAL
from shrimpmx.experiment.program import OPTIONS, RUNS_MAX, Program
from shrimpmx.experiment.program_executor import SILENCE_S
from shrimpmx.results.json_file import json_place
from shrimpmx.settings.assignments import split_setting
from shrimpmx.settings.names import parameter_name
from shrimpmx.show.terminal import say

GRACE_S = ClusterSpec.grace_s
STDIN = "0"
# Options of other mpiruns, and what to do instead.
OTHERS = {
    "all nodes are emulated on this machine, so there is no list of hosts: use --nodes M": (
        *("-host", "--host", "-hosts", "--hosts", "-H", "-f", "-hostfile", "--hostfile"),
        *("-machinefile", "--machinefile"),
    ),
    "the nodes get their ranks by -n, --nodes and --map-by": (
        *("-ppn", "-perhost", "-N", "-npernode", "--npernode", "-ppr", "--rank-by"),
    ),
    "leave it out: nothing here needs that permission": (
        *("-oversubscribe", "--oversubscribe", "--allow-run-as-root", "--use-hwthread-cpus"),
    ),
    "set parameters by --set KEY=VALUE (shrimpmx list --parameters)": (
        *("-mca", "--mca", "-gmca", "--gmca", "-launcher", "-iface", "--prefix"),
    ),
    "use -x NAME=VALUE; ranks have all of your environment anyway": (
        *("-env", "-genv", "-envall", "-genvall", "-envlist", "-genvlist"),
    ),
    "use --tag-output": ("-l", "-prepend-rank", "--prepend-rank", "-output-filename"),
}


class _Elsewhere(argparse.Action):
    """An option of other mpiruns; `const` says what to do instead."""

    def __call__(
        self, _parser: Any, _space: Any, _values: Any, name: str | None = None
    ) -> NoReturn:
        raise InputError(f"{name} is not an option here: {self.const}")


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the options of `mpirun`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "mpirun",
        allow_abbrev=False,
        description="Run an MPI program as the ranks of an emulated cluster. The "
        "exit code is that of the first rank that fails.",
    )
    add_cluster_options(parser)
    add_engine_option(parser)
    _add_output_options(parser)
    add_recording_options(parser)
    parser.add_argument(
        "--report",
        action="store_true",
        help="at the end print messages, waits and CPU time of ranks, and interrupts of cores",
    )
    parser.add_argument(
        "--costs",
        action="store_true",
        help="at the end print the number of payments, the total time and the share of each cost "
        "of an emulated host, by node and payer",
    )
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="DIR",
        help="profile each rank by py-spy, into files of this new directory",
    )
    parser.add_argument(
        "--runs", type=int, default=1, metavar="N", help="run the program N times (1)"
    )
    add_draws_option(parser)
    add_what_if_option(parser)
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep the result there")
    parser.add_argument(
        "--json", type=json_place, metavar="FILE", help="write the result there; -: standard output"
    )
    return parser


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """The cluster, the program and how it is started; words of other mpiruns are refused."""
    parser.add_argument("-n", "-np", type=int, required=True, metavar="N", help="number of ranks")
    parser.add_argument(
        "--slots",
        type=int,
        metavar="S",
        help="room for S ranks, with those that the program spawns (N)",
    )
    parser.add_argument("--nodes", type=int, metavar="M", help="emulated nodes (2; 1 for one rank)")
    add_settings_option(parser, "set a parameter (shrimpmx list --parameters)")
    parser.add_argument(
        *("--map-by", "-map-by"),
        choices=("core", "node", "slot"),
        default="slot",
        help="how ranks fill nodes: in blocks of equal size (slot), all cores of a node before "
        "the next node (core), or one rank per node in turn (node)",
    )
    parser.add_argument(
        *("--bind-to", "-bind-to"),
        choices=("core", "none"),
        default="core",
        help="a rank runs on one core, or on all cores of its node (none)",
    )
    parser.add_argument(
        "-x",
        dest="exports",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="set an environment variable of the ranks, in addition to your environment",
    )
    parser.add_argument(
        *("--wdir", "-wdir", "-wd"),
        default="",
        metavar="DIR",
        help="working directory of the ranks, from which the program's path is relative",
    )
    parser.add_argument(
        *("--timeout", "-timeout"), type=float, metavar="S", help="give up after S seconds"
    )
    for advice, names in OTHERS.items():
        parser.add_argument(
            *names, action=_Elsewhere, nargs=0, const=advice, help=argparse.SUPPRESS
        )
    parser.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="PROGRAM ARGS", help="the program, its options"
    )


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    """What ranks read and print, and what is said of them."""
    parser.add_argument(
        "--tag-output", action="store_true", help="print each line with its [rank] in front"
    )
    parser.add_argument(
        "--silence",
        type=float,
        default=SILENCE_S,
        metavar="S",
        help="report the waits of all ranks after S seconds without progress (10); 0: never",
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=GRACE_S,
        metavar="S",
        help=f"time for ranks to end after Ctrl-C, SIGTERM or SIGHUP, in seconds ({GRACE_S:g})",
    )
    parser.add_argument(
        "--stdin",
        choices=(STDIN, "all", "none"),
        default=STDIN,
        help="ranks with the standard input: rank 0, all (a copy each), or none",
    )


def check_options(options: argparse.Namespace, command: str, others: Mapping[str, str]) -> None:
    """InputError if a command cannot use its options, or --set sets one of the parameters that
    `others` map to the options that set them.
    """
    if options.words[:1] == ["--"]:
        del options.words[0]
    if not options.words:
        raise InputError(f"name the program to run: shrimpmx {command} -n 2 PROGRAM ARGS")
    if ":" in options.words:
        raise InputError(
            "all ranks run one program, so there is no ':' between several: start a script that "
            "chooses by PMI_RANK"
        )
    if options.n < 1:
        raise InputError(f"-n must be at least 1, not {options.n}")
    if options.slots is not None and options.slots < options.n:
        raise InputError(
            f"--slots must be at least {options.n}, the value of -n, not {options.slots}"
        )
    if options.timeout is not None and not 0 < options.timeout <= FOREVER_S:
        raise InputError(f"--timeout must be more than 0 seconds, not {options.timeout:g}")
    for setting in options.settings:
        name = split_setting(setting)[0]
        option = others.get(name if name == "repeats" else parameter_name(name))
        if option:
            raise InputError(f"set {name} by {option} here, not by --set")


def program_of(options: argparse.Namespace) -> Program:
    """The program and its cluster."""
    return Program(
        tuple(options.words),
        options.n,
        options.nodes,
        tuple(options.settings),
        options.map_by,
        options.bind_to,
        options.engine == REAL,
        options.slots or 0,
    )


def slots_of(options: argparse.Namespace) -> int:
    """The ranks for which the program has room."""
    return int(options.slots or options.n)


def check_mpirun(options: argparse.Namespace) -> None:
    """InputError if `mpirun` cannot use its options."""
    check_options(options, "mpirun", OPTIONS)
    check_draws_option(options)
    check_what_if_option(options)
    if options.draws and options.runs > 1:
        raise InputError(
            "--runs repeats one set of costs and --draws varies it: leave one of them out"
        )
    if not 1 <= options.runs <= RUNS_MAX:
        raise InputError(f"--runs must be 1 to {RUNS_MAX}, not {options.runs}")
    if times_run(options) > 1 and options.profile is not None:
        raise InputError("--profile shows one run: leave --runs, --draws and --what-if out")
    if not 0 <= options.silence <= FOREVER_S:
        raise InputError(f"--silence must be 0 seconds or more, not {options.silence:g}")
    if not 0 <= options.grace <= FOREVER_S:
        raise InputError(f"--grace must be 0 seconds or more, not {options.grace:g}")


def times_run(options: argparse.Namespace) -> int:
    """How often `mpirun` runs the program."""
    return int(options.runs + options.draws + bool(options.what_if))


def exported(exports: list[str]) -> dict[str, str]:
    """The variables of -x; of one that is not set it says so, as other mpiruns do."""
    found = {}
    for export in exports:
        name, given, value = export.partition("=")
        if not name:
            raise InputError(f"-x takes NAME or NAME=VALUE, not {export!r}")
        if given:
            found[name] = value
        elif name not in os.environ:
            say(f"-x {name}: there is no such environment variable")
    return found
