"""`shrimpmx run`: run a scenario, keep its result, print it."""

from __future__ import annotations

import argparse
from typing import Any

from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.commands.engines import (
    add_engine_options,
    check_engine_options,
    chosen_engine,
    engine_words,
    runs_beside,
)
from shrimpmx.commands.sweeping import (
    SCENARIO_WORDS,
    add_sweep_options,
    add_words,
    bar_for,
    check_possible,
    check_sweep_options,
    checked_points,
    costs_for,
    default_output,
    executor_for,
    resume_command,
    say_how_to_go_on,
    settings_to_go_on,
    sweep_of,
    take_scenario,
)
from shrimpmx.commands.terminal import console
from shrimpmx.errors import AgentError
from shrimpmx.report.report import print_report
from shrimpmx.results.json_file import write_json
from shrimpmx.results.result import ResultDirectory
from shrimpmx.study.loading import find_scenario, load_scenario


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser("run", description="Run a scenario, print and keep its result.")
    add_words(parser, *SCENARIO_WORDS)
    add_sweep_options(parser)
    add_engine_options(parser)
    parser.add_argument(
        "--trace", action="store_true", help="record what every agent does, beside the result"
    )
    parser.add_argument(
        "--placement",
        action="store_true",
        help="first print which agent runs on which CPU, and why",
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Run a scenario; returns 0. Raises InputError, MachineError (a NotHereError if none of its
    points can be run here), AgentError.
    """
    check_sweep_options(options)
    check_engine_options(options)
    name = take_scenario(options)
    scenario = load_scenario(find_scenario(name)).changed(options.settings)
    points = checked_points(scenario)
    output = options.output or default_output(scenario.name)
    # Before anything is measured or printed: a result that cannot be kept is not worth a run.
    directory = ResultDirectory(output)
    directory.prepare(options.resume)
    engine = chosen_engine(options.engine)
    kept = directory.load_run().get("costs") if options.resume else None
    costs = costs_for(points, kept, engine)
    traces = output / "traces" if options.trace else None
    executor = executor_for(scenario, traces, costs, engine)
    bar = bar_for(scenario.name, scenario)
    sweep = sweep_of(scenario, executor, options, output, bar, costs, engine)
    sweep.beside = runs_beside(options)
    if options.placement:
        for lines in executor.placement_maps(sweep.points):
            print(lines, end="\n\n")
    try:
        with run_log(output):
            document = sweep.run()
    except (AgentError, KeyboardInterrupt) as error:
        more = [*(["--trace"] if options.trace else []), *engine_words(options)]
        settings = settings_to_go_on(options, points, error)
        command = resume_command(["run", name], options, settings, output, more)
        say_how_to_go_on(sweep.runs_done, len(sweep.plans), output, command, error)
        raise
    finally:
        if options.json and sweep.last_document is not None:
            write_json(options.json, sweep.last_document)
    check_possible(document)
    print_report(document, console())
    print(f"\nresult: {output}")
    return 0
