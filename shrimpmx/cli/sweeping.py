"""What `run` and `reproduce` share: options, a scenario's sweep, the command that goes on."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shrimpmx.cli.engines import check_real_hosts, chosen_engine
from shrimpmx.cli.progress import progress_for
from shrimpmx.cli.settings import add_settings_option
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import FILE_NAME as LOG_FILE
from shrimpmx.costs.table import CHARGED
from shrimpmx.errors import (
    DeadlineError,
    InputError,
    MachineError,
    NotHereError,
    StandstillError,
    did_you_mean,
)
from shrimpmx.experiment.clusters import check_points, needed_costs
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.machine_costs import machine_costs
from shrimpmx.experiment.measuring import UNDISTURBED
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.platform_files import stored_platforms
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress import Quiet
from shrimpmx.experiment.ranks import INTERRUPT, T_BLOCK
from shrimpmx.experiment.recording import Recording
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.native.streams import tell
from shrimpmx.results.environment import software
from shrimpmx.results.json_file import json_place, read_json
from shrimpmx.results.result import RUN_FILE, ResultDirectory
from shrimpmx.settings.assignments import is_deadline
from shrimpmx.settings.cluster import DEADLINE_MAX_S
from shrimpmx.settings.platform import Platform

RESULTS = Path("results")
# The scenario of a program that is named without one.
PROGRAM_SCENARIO = "smoke/program"
PROGRAM_KEYS = ("program", "workload.program")
SCENARIO_WORDS = (
    "SCENARIO",
    "a scenario file, or a name such as smoke/pingpong; program=FILE alone runs a Python file as "
    "the ranks",
    "+",
)
# Compiled code takes 64 bits, and each run adds its number to the sweep's seed.
SEED_MAX = 2**63 - 1
# Neither placement nor what can be run depends on a cost, so both need no calibration.
ANY_COSTS: Costs = {name: {"median": 1.0} for name in (*CHARGED, T_BLOCK, INTERRUPT)}


def kept_platforms(options: argparse.Namespace, file: str = RUN_FILE) -> dict[str, Platform]:
    """The user's own platforms, by their files, that an interrupted result was made with: it goes
    on with these, whatever the files say now. None if there is no such result.
    """
    path: Path = options.output / file if options.resume else Path()
    return stored_platforms(read_json(path, "result"), path) if os.path.isfile(path) else {}


def add_words(parser: argparse.ArgumentParser, what: str, meaning: str, least: str) -> None:
    """The words of a command: names of `what`, `least` "+" or "*" of them, and settings."""
    parser.add_argument(
        "words",
        nargs=least,
        metavar=f"{what} | KEY=VALUE",
        help=f"{meaning}; and KEY=VALUE as for --set",
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
    raise InputError("name a scenario (shrimpmx list shows them), or give program=FILE")


def add_sweep_options(parser: argparse.ArgumentParser) -> None:
    """Options of whatever runs scenarios."""
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="seed of point order, faults and all else drawn (1)",
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
        raise InputError("--resume needs --output DIR, the result to go on with")


def default_output(name: str) -> Path:
    """A fresh directory under ./results for what is called `name`."""
    stem = stem_of(name)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = RESULTS / f"{stem}-{stamp}"
    number = 1
    while os.path.exists(path):
        number += 1
        path = RESULTS / f"{stem}-{stamp}-{number}"
    return path


def stem_of(name: str) -> str:
    """A scenario's name as that of a directory."""
    return name.replace("/", "-")


def varying_axes(scenario: Scenario) -> list[str]:
    """The axes that tell one run from another."""
    return [name for name, values in scenario.sweep.items() if len(values) > 1]


def bar_for(
    name: str, scenario: Scenario, before: int = 0, whole: int = 0, begun_s: float | None = None
) -> Quiet:
    """What shows a scenario's sweep; the rest as those of Lines."""
    return progress_for(name, varying_axes(scenario), before, whole, begun_s)


def costs_for(
    points: Iterable[Point], kept: Mapping[str, float] | None, engine: Engine
) -> Costs | None:
    """The costs to emulate platforms with: those that an interrupted result has `kept`, ns by
    name, else this machine's, or of emulated hosts none beside the platform's; None if no point
    emulates a platform.
    """
    if not engine.is_real:
        return {name: {"median": 0.0} for name in needed_costs(points)} or None
    points = list(points)
    check_real_hosts(points)
    if kept is None:
        return machine_costs(points, engine)
    return {name: {"median": ns} for name, ns in kept.items()}


def costs_to_keep(costs: Costs | None) -> dict[str, Any]:
    """What the head of a result says of the costs: {"costs": {name: median, ns}}, or nothing."""
    kept = {name: each["median"] for name, each in (costs or {}).items() if each.get("median")}
    return {"costs": kept} if kept else {}


def executor_for(
    scenario: Scenario,
    costs: Costs | None = None,
    engine: Engine | None = None,
    recording: Recording | None = None,
) -> ClusterExecutor:
    """What runs a scenario's points; the rest as those of ClusterExecutor."""
    return ClusterExecutor(
        engine or chosen_engine(), scenario.policies, costs, scenario.waits, recording
    )


def checked_points(scenario: Scenario) -> list[Point]:
    """A scenario's points, each of which could be run on some machine; InputError if not."""
    points = scenario.points()
    check_points(points, ANY_COSTS)
    check_claims(points)
    return points


def check_claims(points: Iterable[Point]) -> None:
    """InputError if a value of a user's own platform is calibrated by what is no claim."""
    profiles = [(point, point.parameters.platform.profile) for point in points]
    own = {each.shown["platform"]: one for each, one in profiles if isinstance(one, Platform)}
    named = [
        (given, key, name)
        for given, platform in own.items()
        for key, entry in platform.entries()
        for name in entry.calibrated_by
    ]
    if not named:
        return
    from shrimpmx.papers.known import PAPERS  # others start without it

    claims = [claim.id for known in PAPERS.values() for claim in known]
    for given, key, name in named:
        if name not in claims:
            raise InputError(
                f"platform {given}: {key} is calibrated by {name!r}, which is no claim of "
                "shrimpmx reproduce --list; name a figure of your own in its source"
                f"{did_you_mean(name, claims)}"
            )


def check_possible(document: Mapping[str, Any]) -> None:
    """NotHereError with the first reason if no point of a result could be measured here."""
    reasons = [point.get("impossible") for point in document["points"]]
    if reasons and all(reasons):
        raise NotHereError(str(reasons[0]))


def sweep_of(
    scenario: Scenario,
    executor: ClusterExecutor,
    output: Path,
    progress: Quiet | None,
    costs: Costs | None,
    engine: Engine,
    *,
    settings: Sequence[str],
    seed: int,
    command: Sequence[str],
    resume: bool = False,
    elsewhere: bool = False,
) -> Sweep:
    """The sweep of a scenario, ready to run into `output`, by the executor with these; `settings`
    have changed the scenario, `command` has the first words of the one that makes it, and
    `elsewhere`: other machines make its real runs.
    """
    own: dict[str, Any] = {
        "tracer": executor.timeline,
        "dilation_of": lambda point: executor.emulated(point).dilation,
    }
    if not engine.is_real:
        own |= UNDISTURBED
    elif elsewhere:
        own = {"dilation_of": None, "environment": software}
    engine.onlooker = progress
    return Sweep(
        scenario,
        executor,
        seed=seed,
        output=output,
        resume=resume,
        changes=settings,
        progress=progress,
        made_with={
            "command": _repeating(command, settings, seed, engine),
            **costs_to_keep(costs),
        },
        engine=engine.describe(),
        cpus=engine.cpus(),
        **own,
    )


def without_deadline(settings: Iterable[str]) -> list[str]:
    """The settings that decide what is measured: a result may go on with another deadline."""
    return [each for each in settings if not is_deadline(each.partition("=")[0].strip())]


def settings_to_go_on(
    options: argparse.Namespace, points: Iterable[Point], error: BaseException
) -> list[str]:
    """The settings to go on with after an error: with twice the deadline if that was the reason."""
    if not isinstance(error, DeadlineError) or isinstance(error, StandstillError):
        return list(options.settings)
    longest = max(point.parameters.cluster.deadline_s for point in points)
    raised = f"deadline_s={min(2 * longest, DEADLINE_MAX_S):g}"
    return [*without_deadline(options.settings), raised]


def resume_command(
    command: Sequence[str],
    options: argparse.Namespace,
    settings: Iterable[str],
    output: Path,
    more: Sequence[str] = (),
) -> str:
    """The command line that goes on with an interrupted result, to be pasted into a shell."""
    words = [*_program(), *_repeated(command, settings, options.seed)]
    words += ["--output", str(output), "--resume"]
    words += ["--json", str(options.json)] if options.json else []
    return shlex.join([*words, *more])


def _repeating(command: Sequence[str], settings: Iterable[str], seed: int, engine: Engine) -> str:
    """The command line that makes a result once more, on whatever makes its runs."""
    words = _repeated(command, settings, seed)
    return shlex.join(["shrimpmx", *words, *([] if engine.is_real else ["--engine", engine.name])])


def _repeated(command: Sequence[str], settings: Iterable[str], seed: int) -> list[str]:
    """A command with settings and seed, which decide what comes out."""
    words = [*command]
    for setting in settings:
        words += ["--set", setting]
    return [*words, "--seed", str(seed)]


def _program() -> list[str]:
    """How this program can be started again from the same shell."""
    started = sys.argv[0]
    if Path(started).name != "shrimpmx":
        return [sys.executable, "-P", "-m", "shrimpmx"]
    found = shutil.which("shrimpmx")
    same = found is not None and Path(found).resolve() == Path(started).resolve()
    return ["shrimpmx" if same else started]


def say_how_to_go_on(
    done: int, total: int, output: Path, command: str, error: BaseException
) -> None:
    """What is kept of a result that `error` interrupted, and the command that goes on with it.
    Nothing of one that this machine could not begin.
    """
    if isinstance(error, MachineError) and not done:
        return
    late = isinstance(error, DeadlineError)
    told = f"what each process did at the end is in {output / LOG_FILE}\n" if late else ""
    tell(f"{told}{done} of {total} runs are kept in {output}; {going_on(output, command)}")


def going_on(output: Path, command: str) -> str:
    """The next command after an interrupt: `command`, or the one that writes the page of a result
    that was complete by then.
    """
    directory = ResultDirectory(output)
    return directory.page_advice() if directory.is_complete() else f"go on with:\n  {command}"
