"""`shrimpmx explore`: which coalescing, placement and waiting suits an MPI program."""

from __future__ import annotations

import argparse
import math
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.cluster.launch import Launch, check_command
from shrimpmx.cluster.nics.kinds import kind_of
from shrimpmx.cluster.spec import FOREVER_S
from shrimpmx.commands import mpi_options
from shrimpmx.commands.beside import write_beside
from shrimpmx.commands.engines import (
    add_engine_option,
    check_real_hosts,
    chosen_engine,
    tell_doubts,
)
from shrimpmx.commands.explore_report import print_findings, print_unfinished, texts_of
from shrimpmx.commands.mpi_executor import ProgramExecutor, exported, say
from shrimpmx.commands.mpi_scenario import program_scenario
from shrimpmx.commands.mpirun import EXIT_LATE
from shrimpmx.commands.progress import BudgetBar, Lines
from shrimpmx.commands.sweeping import (
    add_sweep_options,
    check_possible,
    check_sweep_options,
    checked_points,
    costs_for,
    costs_to_keep,
    default_output,
    executor_for,
    kept_platforms,
    varying_axes,
)
from shrimpmx.commands.terminal import console
from shrimpmx.errors import (
    AgentError,
    DeadlineError,
    InputError,
    InterruptedRunError,
    NotHereError,
)
from shrimpmx.mpi.library import library_path
from shrimpmx.native.held import HeldDirectory
from shrimpmx.native.streams import on_terminal, put, while_read
from shrimpmx.report.plot.draw import FORMATS, save
from shrimpmx.results.json_file import write_json
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.result import PRINTED_FILE, ResultDirectory
from shrimpmx.study.clusters import never_joined
from shrimpmx.study.execute import ClusterExecutor
from shrimpmx.study.explore import grid
from shrimpmx.study.explore.choice import OBJECTIVES
from shrimpmx.study.explore.exploration import Exploration
from shrimpmx.study.explore.findings import Findings
from shrimpmx.study.explore.pace import Pace, SimulatedPace
from shrimpmx.study.explore.picture import chart_of
from shrimpmx.study.explore.race import RUNS_MOST, SETTLED
from shrimpmx.study.explore.words import closing, counted_words, rests_on, rests_on_simulated
from shrimpmx.study.measuring import UNDISTURBED
from shrimpmx.study.point import Point
from shrimpmx.study.program import cores_of, limits_of
from shrimpmx.study.scenario import Scenario

BUDGET_S = 300.0
# Options whose values say where files go.
PLACES = ("--output", "--json", "--plot")
# Parameters that options choose, beside those of mpirun.
OPTIONS = {
    **mpi_options.OPTIONS,
    "repeats": "--runs",
    "coalescing": "--coalescing",
    "rx_queues": "--placement",
    "irq_binding": "--placement",
    "wait": "--wait",
}


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explore",
        allow_abbrev=False,
        description="Run an MPI program under settings of coalescing, placement and waiting, the "
        "best ones more often, and recommend one.",
    )
    mpi_options.add_cluster_options(parser)
    add_engine_option(parser)
    for name, default, what in (
        ("coalescing", grid.COALESCING, "coalescing strategies"),
        ("placement", tuple(grid.PLACEMENTS), "placements of interrupts and queues"),
        ("wait", grid.WAITS, "waiting strategies"),
    ):
        parser.add_argument(
            f"--{name}",
            default=",".join(default),
            metavar="LIST",
            help=f"{what}, separated by commas ({','.join(default)})",
        )
    parser.add_argument(
        "--for",
        dest="objective",
        choices=tuple(OBJECTIVES),
        default="time",
        help="what the best setting has the least of (time)",
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help=f"how long to run settings ({BUDGET_S:g}; simulated: until it is settled)",
    )
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help=f"the most runs of one setting ({RUNS_MOST}; simulated: {SETTLED})",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="DIR", help="directory of the picture; default: the result's"
    )
    add_sweep_options(parser)
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Explore a program's settings, keep all runs, print what suits it; returns 0.

    Raises InputError, also for a budget too short for all settings; MachineError; and AgentError
    of a program that runs under no setting, with its exit code.
    """
    scenario = scenario_of(options)
    points = checked_points(scenario)
    output = options.output or default_output("explore")
    launch = Launch(
        exported(options.exports), options.wdir, stdout=str((output / PRINTED_FILE).absolute())
    )
    check_command(options.words, launch)
    library_path()
    engine = chosen_engine(options.engine, limit_s=options.timeout)
    if engine.is_real:
        check_real_hosts(points)
    else:
        _check_simulated(scenario, points, engine)
    tell_doubts(points, options.settings)
    if options.plot is not None:
        _try_out(options.plot)
    with ResultDirectory(output).beginning(options.resume) as resume:
        kept = ResultDirectory(output).load_run().get("costs") if resume else None
        costs = costs_for(points, kept, engine)
        runner = executor_for(scenario, costs=costs, engine=engine)
        placement = runner.placement_of(points[0])
        made_with = {"command": _repeating(options), **costs_to_keep(costs)}
        pace = _pace(options, engine, len(points))
        exploration = _exploration(
            options, scenario, engine, runner, launch, output, resume, made_with, pace
        )
        within = "" if pace.seconds is None else f", within {pace.seconds:g} s"
        say(
            f"{len(points)} setting{'s' * (len(points) > 1)} of {shlex.join(options.words)}, "
            f"{options.n} ranks on {scenario.parameters['nodes']} nodes{within}"
        )
        try:
            with run_log(output):
                exploration.run()
        except DeadlineError as error:
            late, _, _ = str(error).partition("; raise deadline_s")
            say(f"{late}; raise --timeout if it needs longer")
            return EXIT_LATE
        except (KeyboardInterrupt, InterruptedRunError):
            say(f"go on with --resume --output {output} and the same options")
            raise
        _report(options, exploration, output, engine, len(placement.processes))
    return 0


def _try_out(directory: Path) -> None:
    """InputError if pictures cannot be written there once all has run."""
    try:
        with HeldDirectory.at(directory, make=True) as held:
            held.try_out()
    except OSError as error:
        raise InputError(
            f"--plot cannot write to {directory}: {error.strerror or error}; give another place"
        ) from error


def _check_simulated(scenario: Scenario, points: Sequence[Point], engine: Engine) -> None:
    """NotHereError if simulated hosts can run none of the settings."""
    from shrimpmx.simulation.engine import check_simulated

    runner = executor_for(scenario, costs=costs_for(points, None, engine), engine=engine)
    reasons = []
    for point in points:
        try:
            check_simulated(runner.spec_of(point, 1))
        except NotHereError as error:
            reasons.append(error)
    if len(reasons) == len(points):
        raise reasons[0]


def _pace(options: argparse.Namespace, engine: Engine, settings: int) -> Pace:
    """How long it may take."""
    timeout_s = FOREVER_S if options.timeout is None else options.timeout
    if not engine.is_real:
        return SimulatedPace(settings, options.runs or SETTLED, timeout_s, options.budget)
    return Pace(BUDGET_S if options.budget is None else options.budget, timeout_s)


def _exploration(
    options: argparse.Namespace,
    scenario: Scenario,
    engine: Engine,
    runner: ClusterExecutor,
    launch: Launch,
    output: Path,
    resume: bool,
    made_with: dict[str, Any],
    pace: Pace,
) -> Exploration:
    axes = varying_axes(scenario)
    engine.onlooker = progress = (
        BudgetBar("explore", axes, pace.budget, pace.clock)
        if on_terminal()
        else Lines("explore", axes, whole=None)
    )
    program = ProgramExecutor(
        engine, runner, [launch] * options.n, FOREVER_S, mpi_options.SILENCE_S, ""
    )

    def execute(point: Point, seed: int, limit_s: float) -> Outcome:
        program.deadline_s = limit_s
        outcome = program(point, seed)
        if program.spec and program.result and program.result.absent:
            raise AgentError(never_joined(program.spec))
        return outcome

    own = {"engine": engine.describe(), "cpus": engine.cpus()}
    return Exploration(
        scenario,
        execute,
        options.objective,
        pace,
        most=options.runs or (RUNS_MOST if engine.is_real else SETTLED),
        seed=options.seed,
        output=output,
        resume=resume,
        progress=progress,
        changes=options.settings,
        made_with=made_with,
        dilation_of=lambda point: runner.emulated(point).dilation,
        working_directory=launch.directory,
        own=own if engine.is_real else {**own, **UNDISTURBED},
    )


def _repeating(options: argparse.Namespace) -> str:
    """The command line that explores the same, without the places of what it keeps."""
    own = iter(options.arguments[: len(options.arguments) - len(options.words)])
    kept = []
    for word in own:
        option, given, _ = word.partition("=")
        if option in PLACES:
            _ = given or next(own, "")
        elif word != "--resume":
            kept.append(word)
    return shlex.join(["shrimpmx", *kept, *options.words])


def scenario_of(options: argparse.Namespace) -> Scenario:
    """The settings as a scenario. InputError if the options cannot be used."""
    mpi_options.check_options(options, "explore", OPTIONS)
    check_sweep_options(options)
    if options.budget is not None and not (math.isfinite(options.budget) and options.budget > 0):
        raise InputError(f"--budget must be more than 0 seconds, not {options.budget:g}")
    if options.runs is not None and not 1 <= options.runs <= RUNS_MOST:
        raise InputError(f"--runs must be 1 to {RUNS_MOST}, not {options.runs}")
    names = {name: _names(options, name) for name in ("coalescing", "placement", "wait")}
    grid.check_placements(names["placement"])
    given = program_scenario(options, "explore", platforms=kept_platforms(options))
    if "cores" in given.sweep:
        raise InputError("cores takes one value here: placements are made for it")
    cores = cores_of(options.n, given.parameters)
    axes = grid.axes_of(names["coalescing"], names["placement"], names["wait"], cores)
    scenario = program_scenario(
        options,
        "explore",
        {"cores": cores, **limits_of(options.n, given.parameters)},
        given.platforms,
        repeats=RUNS_MOST,
        **axes,
    )
    for point in scenario.points():
        nic, nodes = point.parameters.nic, point.parameters.cluster.nodes
        if not kind_of(nic).interrupts:
            raise InputError(f"explore compares interrupts, which nic {nic.nic_kind!r} has not")
        if nodes < 2:
            raise InputError("explore needs two nodes or more: on one no message meets a NIC")
    return grid.distinct(scenario)


def _names(options: argparse.Namespace, name: str) -> tuple[str, ...]:
    """The names that an option lists."""
    text: str = getattr(options, name)
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise InputError(f"--{name} takes names with a comma between two, not {text!r}")
    for each in names:
        if names.count(each) > 1:
            raise InputError(f"--{name} names {each!r} twice")
    return names


def _report(
    options: argparse.Namespace,
    exploration: Exploration,
    output: Path,
    engine: Engine,
    processes: int,
) -> None:
    """Print and draw what was found. InputError if the budget was too short; PlacementError or
    AgentError if no setting could be measured.
    """
    findings = exploration.findings()
    shortage = exploration.shortage()
    complete = not exploration.race.pending()
    document = {**(exploration.sweep.last_document or {}), "complete": complete}
    found: dict[str, Any] = {} if findings is None else findings.as_dict()
    if findings is not None and shortage:
        with while_read():
            print_unfinished(findings, console())
    elif findings is not None:
        texts = _texts(findings, exploration, document, engine, processes)
        with while_read():
            print_findings(findings, console(), texts)
        found |= {"program": shlex.join(options.words), "texts": texts}
        document["explore"] = found
    ResultDirectory(output).finish(document, complete=complete)
    if options.json:
        write_json(options.json, {**document, "explore": found})
    paths: list[Path] = []
    if findings is not None and not shortage:
        paths = save(chart_of(found), options.plot or output / "plots", FORMATS)
    with while_read():
        put("\n".join([*map(str, paths), f"result: {output}"]))
    if shortage:
        raise InputError(shortage)
    if findings is None:
        check_possible(document)
        reason = document["points"][0]["failed"]
        raise AgentError(f"the program failed under every setting: {reason}")
    write_beside(output, [output])
    with while_read():
        console().print(escape(closing(findings)))


def _texts(
    findings: Findings,
    exploration: Exploration,
    document: dict[str, Any],
    engine: Engine,
    processes: int,
) -> list[tuple[str, list[str]]]:
    """What is said below the settings."""
    parameters = exploration.sweep.points[0].parameters
    if not engine.is_real:
        costs: Counter[str] = Counter()
        for point in document["points"]:
            costs |= Counter(point.get("host_costs_ns", {}))  # the most of each
        lines = rests_on_simulated(
            parameters.platform.name, parameters.cluster.compute, parameters.host.cores, costs
        )
        computes = parameters.cluster.compute != "none"
        return texts_of(findings, [counted_words(findings, computes=computes), *lines])
    limits = dict.fromkeys(limit for p in document["points"] for limit in p["limits"])
    cpus = len(parameters.cluster.cpus or os.sched_getaffinity(0))
    dilation = document["points"][0].get("time_dilation", 1.0)
    lines = rests_on(processes, cpus, dilation, list(limits))
    counted = counted_words(findings, computes=True)
    return texts_of(findings, [counted, *lines], crowded=processes > cpus)
