"""`shrimpmx mpirun`: run an MPI program as the ranks of an emulated cluster."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.ending import NAMES, signal_of
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.spec import FOREVER_S, ClusterSpec
from shrimpmx.commands.engines import chosen_engine
from shrimpmx.errors import DeadlineError, InputError, InterruptedRunError
from shrimpmx.mpi.library import library_path
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.result import ResultDirectory, json_place, write_json
from shrimpmx.results.runs import ANY
from shrimpmx.settings.names import parameter_name
from shrimpmx.study.execute import ClusterExecutor, machine_costs, never_joined, outcome_of
from shrimpmx.study.scenario import Point, Scenario, split_setting
from shrimpmx.study.sweep import Sweep

# As `timeout` exits, and where no rank has joined.
EXIT_LATE, EXIT_NO_MPI = 124, 1
NODES = 2
CORES_MAX = 64
METRICS = ("run_time", "run_cpu_time", "run_interrupts")
# Settings that options stand for.
OPTIONS = {
    "workload": "PROGRAM",
    "program": "PROGRAM",
    "arguments": "ARGS",
    "ranks": "-n",
    "map_by": "--map-by",
    "bind_to": "--bind-to",
    "deadline_s": "--timeout",
}


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "mpirun",
        description="Run any executable that uses MPI as the ranks of an emulated cluster. The "
        "exit code is that of the first rank that fails.",
    )
    parser.add_argument("-n", "-np", type=int, required=True, metavar="N", help="number of ranks")
    parser.add_argument("--nodes", type=int, metavar="M", help="emulated nodes (2)")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a parameter (shrimpmx list --parameters); repeatable",
    )
    parser.add_argument(
        "--map-by",
        choices=("core", "node", "slot"),
        default="slot",
        help="nodes of ranks: blocks of one size (slot), all cores of a node before the next, or "
        "in turn (node)",
    )
    parser.add_argument(
        "--bind-to", choices=("core", "none"), default="core", help="cores that a rank may use"
    )
    _add_program_options(parser)
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep the result there")
    parser.add_argument("--json", type=json_place, metavar="FILE", help="write the result there")
    parser.add_argument(
        *("--hostfile", "-hostfile", "--machinefile", "--host", "-H"),
        dest="hosts",
        help=argparse.SUPPRESS,
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="PROGRAM ARGS")
    parser.set_defaults(function=run)


def _add_program_options(parser: argparse.ArgumentParser) -> None:
    """How the program is started and ended."""
    parser.add_argument(
        "-x",
        dest="exports",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="set an environment variable of the ranks; all others are handed on anyway",
    )
    parser.add_argument("--wdir", "-wdir", default="", metavar="DIR", help="where ranks start")
    parser.add_argument(
        "--tag-output", action="store_true", help="print ranks' lines with the rank in front"
    )
    parser.add_argument("--timeout", type=float, metavar="S", help="give up after S seconds")
    parser.add_argument(
        "--stdin",
        choices=("0", "all", "none"),
        default="0",
        help="ranks that get the standard input (rank 0)",
    )


def run(options: argparse.Namespace) -> int:
    """Run a program; returns the exit code. Raises InputError, MachineError and AgentError, of a
    rank that failed with its exit code.
    """
    try:
        return _run(options)
    except InterruptedRunError as error:
        return _interrupted(error.signal)
    except KeyboardInterrupt as interrupt:
        return _interrupted(signal_of(interrupt))
    except DeadlineError as error:
        late, _, _ = str(error).partition("; raise deadline_s")
        _say(f"{late}; raise --timeout if it needs longer")
        return EXIT_LATE


def _run(options: argparse.Namespace) -> int:
    scenario = scenario_of(options)
    (point,) = scenario.points()
    launches = launches_of(options)
    library_path()
    if options.output is not None:
        ResultDirectory(options.output).prepare(resume=False)
    engine = chosen_engine()
    executor = _Executor(
        engine,
        ClusterExecutor(engine, costs=machine_costs([point], engine)),
        launches,
        FOREVER_S if options.timeout is None else options.timeout,
    )
    _say(_described(executor.spec_of(point, 1)))
    with run_log(options.output) if options.output is not None else _no_log():
        if options.output is None and options.json is None:
            executor.run(point, 1)
        else:
            _keep(options, scenario, executor)
    return executor.exit_code()


@contextlib.contextmanager
def _no_log() -> Iterator[None]:
    """What a log would hold is not printed."""
    logger, nowhere = logging.getLogger("shrimpmx"), logging.NullHandler()
    logger.addHandler(nowhere)
    try:
        yield
    finally:
        logger.removeHandler(nowhere)


@dataclass
class _Executor:
    """Runs the one point of an MPI program: an Executor of a sweep."""

    engine: Engine
    points: ClusterExecutor
    launches: list[Launch]
    deadline_s: float
    spec: ClusterSpec | None = None
    result: ClusterResult | None = None

    def spec_of(self, point: Point, seed: int) -> ClusterSpec:
        """The cluster, with what the command line says of the program."""
        spec = self.points.spec_of(point, seed)
        ranks = zip(spec.ranks, self.launches, strict=True)
        return replace(
            spec,
            ranks=tuple(replace(rank, launch=launch) for rank, launch in ranks),
            deadline_s=self.deadline_s,
        )

    def run(self, point: Point, seed: int) -> ClusterResult:
        """Run it."""
        self.spec = self.spec_of(point, seed)
        self.result = self.engine.run(self.spec)
        return self.result

    def __call__(self, point: Point, seed: int) -> Outcome:
        result = self.run(point, seed)
        assert self.spec is not None
        return outcome_of(self.spec, result)

    def exit_code(self) -> int:
        """Of the run that has ended; says so if it was none of an MPI program."""
        if self.spec is None or self.result is None or not self.result.absent:
            return 0
        _say(never_joined(self.spec, self.result))
        return EXIT_NO_MPI if any(self.result.absent.values()) else 0


def _keep(options: argparse.Namespace, scenario: Scenario, executor: _Executor) -> None:
    """Run it as the sweep of one run, and keep its result."""
    sweep = Sweep(
        scenario,
        executor,
        output=options.output,
        prober=lambda _cpus: (ANY, None),  # two processes that would delay the program's start
        changes=options.settings,
    )
    try:
        sweep.run()
    finally:
        if options.json and sweep.last_document is not None:
            write_json(options.json, sweep.last_document)


def scenario_of(options: argparse.Namespace) -> Scenario:
    """The program as a scenario of one point. InputError if the options cannot be used."""
    _check(options)
    program, *arguments = options.words
    parameters: dict[str, Any] = {
        "workload": "mpi",
        "program": program,
        "arguments": shlex.join(arguments),
        "ranks": options.n,
        "map_by": options.map_by,
        "bind_to": options.bind_to,
        "nodes": min(NODES, options.n) if options.nodes is None else options.nodes,
    }
    given = _scenario(parameters).changed(options.settings)
    if given.sweep or given.repeats > 1:
        raise InputError("mpirun runs a program once: give each parameter one value")
    defaults = {"cores": _cores(options.n, given.parameters), "wait": _wait(options.n, given)}
    return _scenario({**defaults, **parameters}).changed(options.settings)


def _check(options: argparse.Namespace) -> None:
    if options.hosts is not None:
        raise InputError("the nodes are emulated, so there is no list of hosts: use --nodes M")
    if options.words[:1] == ["--"]:
        del options.words[0]
    if not options.words:
        raise InputError("name the program to run: shrimpmx mpirun -n 2 PROGRAM ARGS")
    if options.n < 1:
        raise InputError(f"-n must be at least 1, not {options.n}")
    if options.timeout is not None and not 0 < options.timeout <= FOREVER_S:
        raise InputError(f"--timeout must be more than 0 seconds, not {options.timeout:g}")
    for setting in options.settings:
        name = split_setting(setting)[0]
        option = OPTIONS.get(name if name == "repeats" else parameter_name(name))
        if option:
            raise InputError(f"{name} is not set by --set here, but by {option}")


def _scenario(parameters: Mapping[str, Any]) -> Scenario:
    return Scenario(name="mpirun", title="An MPI program", parameters=parameters, metrics=METRICS)


def _cores(ranks: int, parameters: Mapping[str, Any]) -> int:
    """As many as a node has ranks; where the number of nodes is none, it is refused later."""
    nodes = parameters["nodes"]
    return min(CORES_MAX, -(-ranks // nodes)) if isinstance(nodes, int) and nodes > 0 else 1


def _wait(ranks: int, given: Scenario) -> str:
    """Ranks that share a CPU with others give it up to them."""
    cpus = given.parameters.get("cpus") or os.sched_getaffinity(0)
    count = len(cpus) if isinstance(cpus, tuple | set) else 1
    return "sched" if ranks > count else "spin-block"


def launches_of(options: argparse.Namespace) -> list[Launch]:
    """How each rank's program is started."""
    launch = Launch(_environment(options.exports), options.wdir, tagged=options.tag_output)
    inputs = [os.devnull] * options.n
    if options.stdin == "0":
        inputs[0] = ""
    elif options.stdin == "all":
        inputs = [_copy_of_input()] * options.n
    return [replace(launch, stdin=each) for each in inputs]


def _environment(exports: list[str]) -> dict[str, str]:
    """The variables of -x; of one that is not set it says so, as other mpiruns do."""
    found = {}
    for export in exports:
        name, given, value = export.partition("=")
        if not name:
            raise InputError(f"-x takes NAME or NAME=VALUE, not {export!r}")
        if given:
            found[name] = value
        elif name not in os.environ:
            _say(f"-x {name}: there is no such environment variable")
    return found


def _copy_of_input() -> str:
    """All of the standard input in memory, which each rank reads from its beginning."""
    descriptor = os.memfd_create("stdin")
    with os.fdopen(os.dup(descriptor), "wb") as copy, open(0, "rb", closefd=False) as source:
        while data := source.read(1 << 20):
            copy.write(data)
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _described(spec: ClusterSpec) -> str:
    ranks, nodes = len(spec.ranks), spec.nodes
    coalescing = f", coalescing {spec.nic.coalescing}" if spec.kind.interrupts else ""
    return (
        f"{ranks} rank{'s' * (ranks > 1)} on {nodes} node{'s' * (nodes > 1)}, "
        f"nic {spec.nic.nic_kind}{coalescing}, wait {spec.wait.strategy}"
    )


def _interrupted(number: int) -> int:
    name = {int(each): text for each, text in NAMES.items()}[number]
    _say(f"interrupted by {name}")
    return 128 + number


def _say(text: str) -> None:
    """To standard error, at once: what ranks print comes behind it."""
    print(f"shrimpmx: {text}", file=sys.stderr, flush=True)
