"""`shrimpmx run`: run a scenario, keep its result, print it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shrimpmx.cli.options import (
    SCENARIO_WORDS,
    add_draws_option,
    add_engine_options,
    add_groups_option,
    add_recording_options,
    add_sweep_options,
    add_what_if_option,
    add_words,
    are_elsewhere,
    check_draws_option,
    check_engine_options,
    check_groups_option,
    check_recording,
    check_sweep_options,
    check_what_if_option,
    engine_words,
    recording_of,
    recording_words,
    take_scenario,
)
from shrimpmx.cli.resuming import resume_command, say_how_to_go_on, settings_to_go_on
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.costs.table import ALL_CHARGED, FREE, FREE_COST
from shrimpmx.errors import AgentError, InputError, MachineError
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.doubts import tell_doubts
from shrimpmx.experiment.engines import check_real_hosts, chosen_engine
from shrimpmx.experiment.execute import check_possible, checked_points, executor_for, sweep_of
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.machine_costs import costs_for
from shrimpmx.experiment.platform import check_draws, costs_of, emulated
from shrimpmx.experiment.platform_files import kept_platforms
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress_bar import progress_for
from shrimpmx.experiment.recording import Recording
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Beside, Sweep
from shrimpmx.experiment.what_if import (
    Pair,
    counterparts,
    keep_what_if,
    names_in,
    spelled_out,
    what_if_lines,
)
from shrimpmx.experiment.workers import cluster_at, runs_beside
from shrimpmx.native.streams import put, while_read
from shrimpmx.papers.registry import check_claims
from shrimpmx.results.json_file import write_json
from shrimpmx.results.result import RUN_FILE, ResultDirectory, default_output
from shrimpmx.settings.platform import DRAW, Platform
from shrimpmx.show.report import print_report
from shrimpmx.show.terminal import console

ALL_BUT_ONE = "all-but-one"


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser("run", description="Run a scenario, print and keep its result.")
    add_words(parser, *SCENARIO_WORDS)
    add_sweep_options(parser)
    add_engine_options(parser)
    add_groups_option(parser)
    add_recording_options(parser)
    add_draws_option(parser)
    add_what_if_option(parser)
    parser.add_argument(
        "--placement",
        action="store_true",
        help="first print each agent's CPU, with the reason",
    )
    parser.add_argument(
        "--costs",
        nargs="?",
        const=True,
        choices=[ALL_BUT_ONE],
        help="print the number of payments, the total time and the share of each cost, by node and "
        f"payer; {ALL_BUT_ONE}: rerun each simulated point with one cost free at a time, and print "
        "the costs in order of effect",
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Run a scenario; returns 0. Raises InputError, MachineError (a NotHereError if none of its
    points can be run here), AgentError.
    """
    check_sweep_options(options)
    check_engine_options(options)
    check_groups_option(options)
    check_draws_option(options)
    check_what_if_option(options)
    _check_place(options)
    name = take_scenario(options)
    file = find_scenario(name)
    engine = chosen_engine(options.engine, groups=options.groups)
    declared = load_scenario(file).on(real=engine.is_real)
    if options.costs is True:
        declared = declared.model_copy(update={"sections": (*declared.sections, "paid")})
    elif options.costs == ALL_BUT_ONE:
        options.settings = [*options.settings, _free_costs(options, declared, engine)]
    if options.draws:
        numbers = ",".join(map(str, range(options.draws + 1)))
        options.settings = [*options.settings, f"{DRAW}={numbers}"]
    scenario = declared.changed(options.settings, _kept_platforms(options))
    points = checked_points(scenario)
    if options.draws:
        check_draws(options.draws, [point.parameters for point in points])
    what_if = _what_if(options, scenario, points) if options.what_if else None
    check_claims(points)
    check_recording(options, points)
    if engine.is_real:
        check_real_hosts(points)
    tell_doubts(points, options.settings, engine, scenario.policies)
    with cluster_at(options.scheduler, engine, trust=options.trust_network) as cluster:
        beside = runs_beside(options.workers, cluster, engine, scenario, file)
        return _run(options, name, scenario, points, engine, beside, what_if)


WhatIf = tuple[Scenario, dict[int, Point]]


def _what_if(options: argparse.Namespace, scenario: Scenario, points: Sequence[Point]) -> WhatIf:
    """The scenario with the settings of --what-if, and its point for each of the scenario's."""
    settings = spelled_out(options.what_if)
    names = names_in(settings)
    other = scenario.changed(settings)
    return other, counterparts(points, checked_points(other), names)


def _tell_what_if(
    options: argparse.Namespace,
    what_if: WhatIf,
    engine: Engine,
    sweep: Sweep,
    recording: Recording,
    output: Path,
) -> None:
    """Run the first run of each point once more, and print the differences."""
    other, there = what_if
    costs = costs_for(list(there.values()), None, engine)
    again = Recording(parts={})
    executor = executor_for(other, costs, engine, again)
    pairs: dict[int, Pair] = {}
    varying = sweep.scenario.varying_axes
    for (index, seed), now in sorted((recording.parts or {}).items()):
        if index not in pairs:
            executor(there[index], seed)
            shown = sweep.points[index].shown
            place = {axis: shown[axis] for axis in varying}
            pairs[index] = Pair(place, now, (again.parts or {})[there[index].index, seed])
    keep_what_if(options.what_if, list(pairs.values()), output)
    for line in what_if_lines(options.what_if, list(pairs.values())):
        put(line)


def _kept_platforms(options: argparse.Namespace) -> dict[str, Platform]:
    return kept_platforms((options.output or Path()) / RUN_FILE, resume=options.resume)


def _free_costs(options: argparse.Namespace, declared: Scenario, engine: Engine) -> str:
    """The setting by which each cost of any point is free in turn."""
    if engine.is_real:
        raise InputError(
            "--costs all-but-one needs --engine simulated: real costs cannot be left out"
        )
    points = checked_points(declared.changed(options.settings, _kept_platforms(options)))
    none = {name: {"median": 0.0} for name in needed_costs(points)}
    charged = {
        name: None
        for point in points
        for name in costs_of(emulated(point.parameters, none, real=False))
        if name in FREE
    }
    if not charged:
        raise InputError(
            "--costs all-but-one finds no cost to leave out: set platform=NAME, or a cost"
        )
    return f"{FREE_COST}={','.join((ALL_CHARGED, *charged))}"


def _check_place(options: argparse.Namespace) -> None:
    """InputError if an option is for runs that this machine makes, and others are to make them."""
    if are_elsewhere(options) and options.placement:
        raise InputError("--placement shows runs on this machine: leave --scheduler out")


def _run(
    options: argparse.Namespace,
    name: str,
    scenario: Scenario,
    points: Sequence[Point],
    engine: Engine,
    beside: Beside | None,
    what_if: WhatIf | None,
) -> int:
    output = options.output or default_output(scenario.name)
    # Before anything is measured or printed: a result that cannot be kept is not worth a run.
    with ResultDirectory(output).beginning(options.resume) as resume:
        elsewhere = are_elsewhere(options)
        kept = ResultDirectory(output).load_run().get("costs") if resume else None
        costs = None if elsewhere else costs_for(points, kept, engine)
        recording = recording_of(options, output)
        if what_if is not None:
            recording.parts = {}
        executor = executor_for(scenario, costs, engine, recording)
        sweep = sweep_of(
            scenario,
            executor,
            output,
            progress_for(scenario.name, scenario.varying_axes),
            costs,
            engine,
            settings=options.settings,
            seed=options.seed,
            command=["run", name],
            resume=resume,
            elsewhere=elsewhere,
        )
        sweep.beside = beside
        if options.placement:
            for lines in executor.placement_maps(sweep.points):
                put(f"{lines}\n")
        document = _measured(options, name, points, sweep, output)
        check_possible(document)
        with while_read():
            print_report(document, console())
            for untold in recording.untold:
                put(f"\nnote: {untold}")
            if what_if is not None:
                _tell_what_if(options, what_if, engine, sweep, recording, output)
            put(f"\nresult: {output}")
        from shrimpmx.page.page import write_beside

        write_beside(output, [output])
    return 0


def _measured(
    options: argparse.Namespace, name: str, points: Sequence[Point], sweep: Sweep, output: Path
) -> dict[str, Any]:
    """The document of a sweep, run now; a failure tells the user what to do."""
    try:
        with run_log(output, forks=sweep.forks):
            return sweep.run()
    except (AgentError, MachineError, KeyboardInterrupt) as error:
        more = [*recording_words(options), *engine_words(options)]
        settings = settings_to_go_on(options, points, error)
        command = resume_command(["run", name], options, settings, output, more)
        say_how_to_go_on(sweep.runs_done, len(sweep.plans), output, command, error)
        raise
    finally:
        if options.json and sweep.last_document is not None:
            write_json(options.json, sweep.last_document)
