"""Runs, explorations and fits in a notebook or a script."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.cluster.launch import Launch, check_command
from shrimpmx.cluster.spec import FOREVER_S
from shrimpmx.errors import DeadlineError, InputError, late_words
from shrimpmx.experiment.clusters import Clusters
from shrimpmx.experiment.doubts import tell_doubts
from shrimpmx.experiment.engines import REAL, check_real_hosts, chosen_engine
from shrimpmx.experiment.execute import check_possible, checked_points, executor_for, sweep_of
from shrimpmx.experiment.explore.exploring import Exploring
from shrimpmx.experiment.explore.question import ALL, Question
from shrimpmx.experiment.explore.question import OPTIONS as EXPLORE_OPTIONS
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.machine_costs import costs_for
from shrimpmx.experiment.program import OPTIONS, RUNS_MAX, Program
from shrimpmx.experiment.program_executor import SILENCE_S, ProgramExecutor, program_costs
from shrimpmx.experiment.program_sweep import command_line, program_sweep
from shrimpmx.experiment.progress_bar import progress_for
from shrimpmx.experiment.recording import Recording
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.mpi.library import library_path
from shrimpmx.native.files import write_whole
from shrimpmx.notebook.results import Explored, Fitted, Result
from shrimpmx.papers.registry import check_claims
from shrimpmx.results.result import (
    CAPTURES,
    PRINTED_FILE,
    TRACES,
    ResultDirectory,
    default_output,
)
from shrimpmx.settings.names import own_name

# Of mpirun() and explore(), by the parameters that they set, where those have other names.
ARGUMENTS = {
    "ranks": "n",
    "workload": "program",
    "arguments": "program",
    "deadline_s": "timeout",
    "repeats": "runs",
    "rx_queues": "placement",
    "irq_binding": "placement",
}
EngineName = Literal["forked", "simulated"]
Names = str | type | Sequence[str | type]
# Parameters that take classes.
OWN = ("coalescing", "wait")


def load(path: str | os.PathLike[str]) -> Result:
    """The result in a directory, or of a run.json. InputError if it is missing or damaged."""
    return Result(Path(path))


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    engine: EngineName = "forked",
    seed: int = 1,
    trace: bool = False,
    output: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Result:
    """What `shrimpmx run` does, without printing: the result of a scenario, which is kept too.

    `scenario` is one, a file, or a name such as "smoke/pingpong". `settings` are those of --set:
    a list gives an axis its values; coalescing and wait take classes of your own, too. `output` is
    a new or an empty directory, by default one below ./results. Raises InputError, MachineError
    and AgentError.
    """
    hosts = chosen_engine(engine)
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a number of at least 0, not {seed!r}")
    name = scenario.name if isinstance(scenario, Scenario) else os.fspath(scenario)
    declared = scenario if isinstance(scenario, Scenario) else load_scenario(find_scenario(name))
    own, changes = _own_classes(settings), _settings_of(settings)
    placed = None if isinstance(scenario, Scenario) else _placed(settings)
    changed = declared.on(real=hosts.is_real).with_own(**own).changed(changes)
    points = checked_points(changed)
    check_claims(points)
    if hosts.is_real:
        check_real_hosts(points)
    tell_doubts(points, changes, hosts, changed.policies)
    place = Path(output) if output is not None else default_output(changed.name)
    with ResultDirectory(place).beginning(resume=False, advice="give another output"):
        costs = costs_for(points, None, hosts)
        sweep = sweep_of(
            changed,
            executor_for(changed, costs, hosts, Recording(place / TRACES if trace else None)),
            place,
            progress_for(changed.name, changed.varying_axes),
            costs,
            hosts,
            settings=changes if placed is None else _settings_of(placed),
            seed=seed,
            command=[] if placed is None else ["run", name],
        )
        with run_log(place, forks=sweep.forks):
            check_possible(sweep.run())
    return Result(place)


def mpirun(
    program: str | Sequence[str],
    n: int,
    *,
    nodes: int | None = None,
    engine: EngineName = "forked",
    map_by: Literal["slot", "node", "core"] = "slot",
    bind_to: Literal["core", "none"] = "core",
    environment: Mapping[str, str] | None = None,
    wdir: str | os.PathLike[str] = "",
    runs: int = 1,
    timeout: float | None = None,
    silence: float = SILENCE_S,
    trace: bool = False,
    capture: bool = False,
    output: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Result:
    """What `shrimpmx mpirun` does, without printing: the result of `runs` of a program, which is
    kept too, with what its ranks printed.

    `program` is a command line, or its words: "python ring.py"; it reads nothing. `n` ranks of it
    run. `environment` adds to this process's variables; the rest is as the command's options and
    --set. Raises InputError, MachineError, DeadlineError and, if a rank fails, RankEndedError.
    """
    words = _words_of(program, n, timeout, settings, OPTIONS)
    changes = _settings_of(_in_files(settings))
    _check_numbers(runs, silence)
    hosts = chosen_engine(engine, timeout)
    started = Program(words, n, nodes, tuple(changes), map_by, bind_to, hosts.is_real)
    point, policies, waits = started.point()
    check_claims([point])
    launch = Launch(dict(environment or {}), os.fspath(wdir))
    check_command(words, launch)
    library_path()
    tell_doubts([point], changes, hosts, policies)
    place = Path(output) if output is not None else default_output("mpirun")
    with ResultDirectory(place).beginning(
        resume=False, advice="give another output", goes_on=False
    ):
        launch = replace(launch, stdout=str((place / PRINTED_FILE).absolute()))
        executor = ProgramExecutor(
            hosts,
            Clusters(hosts, policies, program_costs(point, hosts), waits),
            [launch] * n,
            FOREVER_S if timeout is None else timeout,
            silence,
            "",
            Recording(place / TRACES if trace else None, place / CAPTURES if capture else None),
        )
        hosts.place(executor.spec_of(point, 1))
        bar = progress_for("mpirun", [])
        own = ["mpirun", *(["--runs", str(runs)] if runs > 1 else []), "--stdin", "none"]
        command = command_line(own, started, changes, launch, timeout)
        sweep = program_sweep(
            point, executor, (policies, waits), place, changes, command, runs, bar
        )
        with run_log(place), _advising_time():
            sweep.run()
    return Result(place)


def explore(
    program: str | Sequence[str],
    n: int,
    *,
    nodes: int | None = None,
    engine: EngineName = "forked",
    coalescing: Names = ALL["coalescing"],
    placement: Names = ALL["placement"],
    wait: Names = ALL["wait"],
    objective: Literal["time", "cpu", "interrupts"] = "time",
    budget: float | None = None,
    runs: int | None = None,
    seed: int = 1,
    map_by: Literal["slot", "node", "core"] = "slot",
    bind_to: Literal["core", "none"] = "core",
    environment: Mapping[str, str] | None = None,
    wdir: str | os.PathLike[str] = "",
    timeout: float | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    **settings: Any,
) -> Explored:
    """What `shrimpmx explore` does, without printing: which setting suits a program.

    `program`, `n` and `environment` are as those of mpirun(), and the others as the command's
    options; `objective` is its --for. `settings` are those of --set: a list of values is explored,
    too. Raises InputError, also for a budget too short to compare settings, MachineError,
    DeadlineError and, if the program fails under every setting, its error.
    """
    words = _words_of(program, n, timeout, settings, EXPLORE_OPTIONS)
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a number of at least 0, not {seed!r}")
    if resume and output is None:
        raise InputError("resume=True needs output=PATH, the result to continue")
    question = Question(
        Program(words, n, nodes, tuple(_settings_of(settings)), map_by, bind_to, engine == REAL),
        coalescing=_names(coalescing),
        placement=_names(placement),
        wait=_names(wait),
        objective=objective,
        budget=budget,
        runs=runs,
        seed=seed,
        timeout=timeout,
        environment=dict(environment or {}),
        wdir=os.fspath(wdir),
        prefix="",
    )
    hosts = chosen_engine(engine, timeout)
    place = Path(output) if output is not None else default_output("explore")
    exploring = Exploring(question, hosts, place, resume=resume)
    check_claims(exploring.points)
    with exploring.opened("give another output, or resume=True"):
        with _advising_time():
            exploring.run()
        exploring.check(*exploring.keep())
    return Explored(place)


def fit(
    measurements: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    platform: str | os.PathLike[str] = "myri10g-2009",
    vary: Sequence[str] = (),
    topology: str | os.PathLike[str] | None = None,
    folds: int = 0,
    seed: int = 1,
    workers: int | None = None,
    **settings: Any,
) -> Fitted:
    """What `shrimpmx fit` does, without printing: the costs of hosts that explain measurements.

    `measurements` is a file, or several, `output` the platform's, a .toml, beside which its page
    is written; the rest is as the command's options, `settings` as --set. InputError for bad input:
    nothing is written.
    """
    # Loaded here: runs need none of it.
    from shrimpmx.experiment.fit.fitting import Asked, fitted
    from shrimpmx.page.fits import published_of
    from shrimpmx.page.page import page_of_published

    files = [measurements] if isinstance(measurements, str | os.PathLike) else measurements
    asked = Asked(
        [Path(file) for file in files],
        Path(output),
        os.fspath(platform),
        ",".join(vary),
        None if topology is None else Path(topology),
        _settings_of(settings),
        folds,
        seed,
        len(os.sched_getaffinity(0)) if workers is None else workers,
        prefix="",
        output_option="output=",
        recipe_option="shrimpmx fit --recipe",
    )
    found, target, forget = fitted(asked)
    document = found.document()
    write_whole(target.with_suffix(".html"), page_of_published([published_of(document)]))
    forget()
    return Fitted(target, document)


@contextlib.contextmanager
def _advising_time() -> Iterator[None]:
    """What ends by its timeout says so as the argument of a script."""
    try:
        yield
    except DeadlineError as error:
        sentence = late_words(error, "give a longer timeout if it needs it")
        raise type(error)(sentence) from error


def _check_numbers(runs: int, silence: float) -> None:
    if not isinstance(runs, int) or not 1 <= runs <= RUNS_MAX:
        raise InputError(f"runs must be 1 to {RUNS_MAX}, not {runs!r}")
    if not 0 <= silence <= FOREVER_S:
        raise InputError(f"silence must be 0 seconds or more, not {silence!r}")


def _words_of(
    program: str | Sequence[str],
    n: int,
    timeout: float | None,
    settings: Mapping[str, Any],
    others: Mapping[str, str],
) -> tuple[str, ...]:
    """The words of a program. InputError for arguments of its runs that cannot be used, and for
    settings among the `others`, for which there are arguments.
    """
    try:
        words = tuple(shlex.split(program) if isinstance(program, str) else map(str, program))
    except ValueError as error:
        raise InputError(f"the program {program!r} cannot be read: {error}") from None
    if not words:
        raise InputError('name the program to run, as in shrimpmx.mpirun("python ring.py", 2)')
    if not isinstance(n, int) or n < 1:
        raise InputError(f"n must be a number of at least 1, not {n!r}")
    if timeout is not None and not 0 < timeout <= FOREVER_S:
        raise InputError(f"timeout must be more than 0 seconds, not {timeout!r}")
    for name in settings:
        if own_name(name) in others:
            argument = ARGUMENTS.get(own_name(name), own_name(name))
            raise InputError(f"{name} is set by the argument {argument}, not as a setting")
    return words


def _own_classes(settings: Mapping[str, Any]) -> dict[str, dict[str, type]]:
    """The classes among the values of some settings, by parameter and name."""
    return {
        name: {each.__name__: each for each in _each(value) if isinstance(each, type)}
        for name, value in settings.items()
        if name in OWN
    }


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _placed(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings as a command line can have them, if it can."""
    try:
        return _in_files(settings)
    except InputError:
        return None


def _in_files(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the place of each class, FILE:CLASS, where other programs find it too.
    InputError for a class of no module's file.
    """
    return {
        name: [_in_file(each) for each in _each(value)]
        if any(isinstance(each, type) for each in _each(value))
        else value
        for name, value in settings.items()
    }


def _in_file(value: Any) -> Any:
    if not isinstance(value, type):
        return value
    file = getattr(sys.modules.get(value.__module__), "__file__", None)
    inner = value.__qualname__ != value.__name__
    if value.__module__ == "__main__" or file is None or inner:
        raise InputError(
            f"programs can only use a class at the top level of an imported file: move "
            f"{value.__name__} into a module beside this one (from a notebook by %%writefile), and "
            "import it"
        )
    return f"{file}:{value.__name__}"


def _settings_of(settings: Mapping[str, Any]) -> list[str]:
    """As words of the command line."""
    return [f"{key}={_setting(value)}" for key, value in settings.items()]


def _setting(value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, list | tuple):
        return ",".join(map(_setting, value))
    if isinstance(value, type):
        return value.__name__
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names(given: Names) -> tuple[str, ...]:
    return tuple(str(_in_file(each)) for each in _each(given))
