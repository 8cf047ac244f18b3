"""`shrimpmx run`: run a scenario, keep its result, print it."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from shrimpmx.cluster.logs import run_log
from shrimpmx.commands.progress import Bar
from shrimpmx.commands.terminal import console
from shrimpmx.errors import AgentError, InputError
from shrimpmx.execute import ClusterExecutor
from shrimpmx.loading import find_scenario, load_scenario
from shrimpmx.measure.report import print_report
from shrimpmx.measure.result import ResultDirectory, json_place, write_json
from shrimpmx.scenario import Scenario
from shrimpmx.sweep import Sweep

RESULTS = Path("results")


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "run", help="run a scenario", description="Run a scenario, keep its result, print it."
    )
    parser.add_argument("scenario", help="a scenario file, or a name such as smoke/pingpong")
    add_run_options(parser)
    parser.set_defaults(function=run)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Options of whatever runs a scenario."""
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a parameter, or the values of an axis (a,b,c); repeatable",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of order and faults (1)")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="new or empty directory for the result"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the interrupted result in --output"
    )
    parser.add_argument(
        "--json", type=json_place, metavar="PATH", help="write the result there as well"
    )
    parser.add_argument(
        "--trace", action="store_true", help="record what every agent did beside the result"
    )
    parser.add_argument(
        "--placement", action="store_true", help="print which agent runs on which CPU, and why"
    )


def default_output(name: str) -> Path:
    """A fresh directory under ./results for a scenario."""
    stem = name.replace("/", "-")
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = RESULTS / f"{stem}-{stamp}"
    number = 1
    while path.exists():
        number += 1
        path = RESULTS / f"{stem}-{stamp}-{number}"
    return path


def run(options: argparse.Namespace) -> int:
    """Run a scenario; returns 0. Raises InputError, MachineError, AgentError."""
    if options.seed < 0:
        raise InputError(f"--seed must be at least 0, not {options.seed}")
    if options.resume and not options.output:
        raise InputError("--resume needs --output DIR, the result to go on with")
    path = find_scenario(options.scenario)
    scenario = load_scenario(path).changed(options.settings)
    output = options.output or default_output(scenario.name)
    executor = ClusterExecutor(scenario.policies, output / "traces" if options.trace else None)
    sweep = Sweep(
        scenario,
        executor,
        seed=options.seed,
        output=output,
        resume=options.resume,
        tracer=executor.timeline,
        progress=Bar(scenario.name, varying_axes(scenario)) if sys.stderr.isatty() else None,
    )
    # Before anything runs, or is printed: nobody should wait for a result that cannot be kept.
    ResultDirectory(output).prepare(options.resume)
    if options.placement:
        for lines in executor.placement_maps(sweep.points):
            print(lines, end="\n\n")
    try:
        with run_log(output):
            document = sweep.run()
    except (AgentError, KeyboardInterrupt):
        _say_how_to_go_on(sweep, options, output)
        raise
    finally:
        if options.json and sweep.last_document is not None:
            write_json(options.json, sweep.last_document)
    print_report(document, console())
    print(f"\nresult: {output}")
    return 0


def varying_axes(scenario: Scenario) -> list[str]:
    """The axes that tell one run from another."""
    return [name for name, values in scenario.sweep.items() if len(values) > 1]


def resume_command(options: argparse.Namespace, output: Path) -> str:
    """The command line that goes on with an interrupted result, to be pasted into a shell."""
    words = [*_program(), "run", options.scenario]
    for setting in options.settings:
        words += ["--set", setting]
    words += ["--seed", str(options.seed), "--output", str(output), "--resume"]
    words += ["--json", str(options.json)] if options.json else []
    words += ["--trace"] if options.trace else []
    return shlex.join(words)


def _program() -> list[str]:
    """How this program can be started again from the same shell."""
    started = sys.argv[0]
    if Path(started).name != "shrimpmx":
        return [sys.executable, "-m", "shrimpmx"]
    found = shutil.which("shrimpmx")
    same = found is not None and Path(found).resolve() == Path(started).resolve()
    return ["shrimpmx" if same else started]


def _say_how_to_go_on(sweep: Sweep, options: argparse.Namespace, output: Path) -> None:
    # Nobody reads it where a closed terminal was the reason.
    with contextlib.suppress(OSError):
        print(
            f"{sweep.runs_done} of {len(sweep.plans)} runs are kept in {output}; go on with:\n"
            f"  {resume_command(options, output)}",
            file=sys.stderr,
        )
