"""The options of commands that start MPI programs, and the scenarios that they describe."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel

from shrimpmx.cluster.spec import FOREVER_S
from shrimpmx.commands.engines import REAL, add_engine_option
from shrimpmx.commands.recording import add_recording_options
from shrimpmx.commands.settings import add_settings_option
from shrimpmx.errors import InputError
from shrimpmx.results.json_file import json_place
from shrimpmx.settings.assignments import assigned, split_setting
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.names import parameter_name
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.user_code import OwnClass, names_class
from shrimpmx.study.platform_files import own_platforms
from shrimpmx.study.point import Point, parameters_of

Rules = dict[str, OwnClass]
NODES = 2
CORES_MAX = 64
SILENCE_S = 10.0
PULL_FRAMES = 4 * 32  # frames of one pull in flight: blocks times frames of a block (Open-MX)
# Emulated cores have no other ranks but those that are put there.
SIMULATED_WAIT = "spin-block"
# Settings that options stand for.
OPTIONS = {
    "workload": "PROGRAM",
    "program": "PROGRAM",
    "arguments": "ARGS",
    "ranks": "-n",
    "nodes": "--nodes",
    "map_by": "--map-by",
    "bind_to": "--bind-to",
    "deadline_s": "--timeout",
}
# Options of other mpiruns, and what to do instead.
OTHERS = {
    "all nodes are emulated on this machine, so there is no list of hosts: use --nodes M": (
        *("-host", "--host", "-hosts", "--hosts", "-H", "-f", "-hostfile", "--hostfile"),
        *("-machinefile", "--machinefile"),
    ),
    "the nodes get their ranks by -n, --nodes and --map-by": (
        *("-ppn", "-perhost", "-N", "-npernode", "--npernode", "-ppr", "--rank-by"),
    ),
    "leave it out: there is nothing here that it would allow": (
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
        raise InputError(f"{name} is no option here: {self.const}")


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the options of `mpirun`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "mpirun",
        allow_abbrev=False,
        description="Run an MPI program of Python as the ranks of an emulated cluster. The "
        "exit code is that of the first rank that fails.",
    )
    add_cluster_options(parser)
    add_engine_option(parser)
    _add_output_options(parser)
    add_recording_options(parser)
    parser.add_argument(
        "--report",
        action="store_true",
        help="at the end print messages, waiting and CPU time of ranks, and interrupts of cores",
    )
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="DIR",
        help="profile each rank by py-spy into a file of that new directory",
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep the result there")
    parser.add_argument(
        "--json", type=json_place, metavar="FILE", help="write the result there; -: standard output"
    )
    return parser


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """The cluster, the program and how it is started; words of other mpiruns are refused."""
    parser.add_argument("-n", "-np", type=int, required=True, metavar="N", help="number of ranks")
    parser.add_argument("--nodes", type=int, metavar="M", help="emulated nodes (2; 1 for one rank)")
    add_settings_option(parser, "set a parameter (shrimpmx list --parameters)")
    parser.add_argument(
        *("--map-by", "-map-by"),
        choices=("core", "node", "slot"),
        default="slot",
        help="nodes of ranks: blocks of one size (slot), all cores of a node before the next, or "
        "in turn (node)",
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
        help="set an environment variable of the ranks; all others are handed on anyway",
    )
    parser.add_argument(
        *("--wdir", "-wdir", "-wd"),
        default="",
        metavar="DIR",
        help="where ranks start; the path of the program counts from there",
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
        "--tag-output", action="store_true", help="print ranks' lines with [rank] in front"
    )
    parser.add_argument(
        "--silence",
        type=float,
        default=SILENCE_S,
        metavar="S",
        help="report what ranks wait for when all have waited for S seconds (10); 0: never",
    )
    parser.add_argument(
        "--stdin",
        choices=("0", "all", "none"),
        default="0",
        help="ranks that get the standard input: rank 0, all (each a copy), or none",
    )


def point_of(options: argparse.Namespace) -> tuple[Point, Rules, Rules]:
    """The program's cluster, and the user's own policies and waiting strategies that it has.
    InputError if the options cannot be used.
    """
    check_options(options, "mpirun", OPTIONS)
    if not 0 <= options.silence <= FOREVER_S:
        raise InputError(f"--silence must be 0 seconds or more, not {options.silence:g}")
    made = assigned(options.settings, program_parameters(options))
    if made.others.get("repeats", 1) != 1:
        raise InputError("mpirun runs a program once; shrimpmx run program=... repeats it")
    if made.sweep:
        raise InputError("mpirun runs a program once: give each parameter one value")
    given = made.parameters
    chosen = {
        "cores": cores_of(options, given),
        "wait": _wait(options.n, given) if options.engine == REAL else SIMULATED_WAIT,
        **limits_of(options.n, given),
        **given,
    }
    policies, waits = _own_rules(chosen)
    platforms = own_platforms([chosen.get("platform")], {})
    return Point(0, chosen, *parameters_of(chosen, policies, waits, platforms)), policies, waits


def _own_rules(chosen: Mapping[str, Any]) -> tuple[Rules, Rules]:
    if not any(map(names_class, chosen.values())):
        return {}, {}
    from shrimpmx.study.own_rules import own_rules  # loads what most programs do not need

    return own_rules({name: (value,) for name, value in chosen.items()})


def program_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters that options and words stand for, by name."""
    program, *arguments = options.words
    return {
        "workload": "mpi",
        "program": program,
        "arguments": shlex.join(arguments),
        "ranks": options.n,
        "map_by": options.map_by,
        "bind_to": options.bind_to,
        "nodes": min(NODES, options.n) if options.nodes is None else options.nodes,
    }


def cores_of(options: argparse.Namespace, given: Mapping[str, Any]) -> Any:
    """The cores of a node: as many as it has ranks, unless they are `given`; where the number of
    nodes is none, it is refused later.
    """
    nodes = given["nodes"]
    least = -(-options.n // nodes) if isinstance(nodes, int) and nodes > 0 else 1
    return given.get("cores", min(CORES_MAX, least))


def limits_of(ranks: int, given: Mapping[str, Any]) -> dict[str, int]:
    """How much a rank may have in flight to another, so that the bursts of all fit into half of an
    endpoint's event ring, and half of a node's rx ring.

    A few messages may always go (`notacked_max`), so that with more than some ten ranks on two
    nodes full rings are possible again. Open-MX has no such limits.
    """

    def value(name: str, model: type[BaseModel]) -> int:
        entries = given.get(name)
        return entries if isinstance(entries, int) else model.model_fields[name].default

    local = -(-ranks // _nodes_in_use(ranks, given))
    remote = max(1, ranks - local)
    frames = value("rx_ring_entries", NicParameters) // 2
    events = value("event_ring_entries", HostParameters) // 2
    return {
        "send_window": max(1, min(events // remote, frames // (remote * local))),
        "pulls_max": max(1, frames // (PULL_FRAMES * local)),
    }


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
    if options.timeout is not None and not 0 < options.timeout <= FOREVER_S:
        raise InputError(f"--timeout must be more than 0 seconds, not {options.timeout:g}")
    for setting in options.settings:
        name = split_setting(setting)[0]
        option = others.get(name if name == "repeats" else parameter_name(name))
        if option:
            raise InputError(f"{name} is not set by --set here, but by {option}")


def _wait(ranks: int, given: Mapping[str, Any]) -> str:
    """Ranks that share a CPU with others give it up to them: by a yield on one node, where they
    need nothing but each other, else by sleeping, so that NICs and handlers get it at once.
    """
    cpus = given.get("cpus") or os.sched_getaffinity(0)
    count = len(cpus) if isinstance(cpus, tuple | set) else 1
    # A handler preempts the rank of its core, so it needs no CPU of its own.
    nics = _nodes_in_use(ranks, given)
    if nics > 1:
        return "block" if ranks + nics > count else "spin-block"
    return "sched" if ranks > count else "spin-block"


def _nodes_in_use(ranks: int, given: Mapping[str, Any]) -> int:
    """The nodes that get ranks; 1 where their number is none, which is refused later."""
    nodes, cores = given["nodes"], given.get("cores")
    if not isinstance(nodes, int):
        return 1
    if given["map_by"] == "core" and isinstance(cores, int) and cores > 0:
        return min(nodes, -(-ranks // cores))
    return max(1, min(nodes, ranks))
