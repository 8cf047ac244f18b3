"""`shrimpmx mpirun`: run an MPI program as the ranks of an emulated cluster."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.ending import NAMES, signal_of
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.cluster.engine.profiling import py_spy
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.launch import Launch, check_command
from shrimpmx.cluster.spec import FOREVER_S, ClusterSpec
from shrimpmx.commands import mpi_options
from shrimpmx.commands.engines import chosen_engine
from shrimpmx.commands.mpi_report import print_report
from shrimpmx.errors import DeadlineError, InputError, InterruptedRunError
from shrimpmx.mpi.library import library_path
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.result import ResultDirectory, write_json
from shrimpmx.results.runs import ANY
from shrimpmx.study.execute import ClusterExecutor, machine_costs, never_joined, outcome_of
from shrimpmx.study.scenario import Point, Scenario
from shrimpmx.study.sweep import Sweep

# As `timeout` exits.
EXIT_LATE = 124


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    mpi_options.add_parser(commands).set_defaults(function=run)


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
    scenario = mpi_options.scenario_of(options)
    (point,) = scenario.points()
    launch = launch_of(options)
    check_command(options.words, launch)
    library_path()
    engine = chosen_engine()
    executor = _Executor(
        engine,
        ClusterExecutor(engine, costs=machine_costs([point], engine)),
        [replace(launch, stdin=each) for each in inputs_of(options)],
        FOREVER_S if options.timeout is None else options.timeout,
        options.silence,
        "" if options.profile is None else str(options.profile),
    )
    spec = executor.spec_of(point, 1)
    engine.place(spec)
    if options.profile is not None:
        _make_profiles(options.profile)
    if options.output is not None:
        ResultDirectory(options.output).prepare(resume=False, advice="give another --output")
    _say(_described(spec))
    with run_log(options.output) if options.output is not None else _no_log():
        if options.output is None and options.json is None:
            executor.run(point, 1)
        else:
            _keep(options, scenario, executor)
    executor.say_absent()
    if options.report and executor.spec is not None and executor.result is not None:
        print_report(executor.spec, executor.result)
    return 0


def _make_profiles(directory: Path) -> None:
    """The directory for profiles. InputError if it is there, or there is no profiler."""
    py_spy()
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"--profile {directory} exists: give a new directory") from None
    except OSError as error:
        raise InputError(
            f"--profile cannot make {directory}: {error.strerror or error}; give another place"
        ) from None


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
    silence_s: float
    profiles: str
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
            silence_s=self.silence_s,
            profiles=self.profiles,
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

    def say_absent(self) -> None:
        """Whether the run that has ended was none of an MPI program."""
        if self.spec is not None and self.result is not None and self.result.absent:
            _say(never_joined(self.spec))


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


def launch_of(options: argparse.Namespace) -> Launch:
    """How the program is started."""
    return Launch(_environment(options.exports), options.wdir, tagged=options.tag_output)


def inputs_of(options: argparse.Namespace) -> list[str]:
    """What each rank's program reads."""
    if options.stdin == "all":
        return [_copy_of_input()] * options.n
    first = "" if options.stdin == "0" else os.devnull
    return [first, *[os.devnull] * (options.n - 1)]


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
