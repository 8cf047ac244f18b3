"""Runs and results in a notebook or a script: a result has its report, a data frame, figures."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shrimpmx.cli.engines import ENGINES, check_real_hosts, chosen_engine, tell_doubts
from shrimpmx.cli.mpi_executor import ProgramExecutor
from shrimpmx.cli.mpi_options import OPTIONS, SILENCE_S
from shrimpmx.cli.mpi_scenario import command_line, program_sweep
from shrimpmx.cli.mpirun import program_costs
from shrimpmx.cli.progress import progress_for
from shrimpmx.cli.sweeping import (
    bar_for,
    check_possible,
    checked_points,
    costs_for,
    default_output,
    executor_for,
    sweep_of,
)
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.cluster.launch import Launch, check_command
from shrimpmx.cluster.spec import FOREVER_S
from shrimpmx.errors import DeadlineError, InputError, MachineError, did_you_mean, late_words
from shrimpmx.experiment.clusters import Clusters
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.program import RUNS_MAX, Program
from shrimpmx.experiment.recording import Recording
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.mpi.library import library_path
from shrimpmx.papers.charts import charts_of, why_empty
from shrimpmx.results.result import CAPTURES, PRINTED_FILE, TRACES, ResultDirectory, load_result
from shrimpmx.results.tidy import columns_of, rows_of
from shrimpmx.settings.names import own_name
from shrimpmx.show.plot.draw import Picture, picture_of

if TYPE_CHECKING:
    from pandas import DataFrame

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
# A notebook is one page, in which each result that it shows has a name.
_shown = itertools.count(1)


class Result:
    """A stored result. `document` is its run.json, checked; Jupyter shows its tables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document: dict[str, Any] = load_result(path)

    def to_pandas(self) -> DataFrame:
        """A row per sample, with the columns of `shrimpmx export`. MachineError without pandas."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise MachineError(
                "pandas is not installed: pip install pandas, or use shrimpmx export --csv"
            ) from None
        return DataFrame(list(rows_of(self.document)), columns=columns_of(self.document))

    @property
    def printed(self) -> str:
        """The output of a program's ranks, where kept: see mpirun()."""
        path = self.path / PRINTED_FILE
        return path.read_text(errors="replace") if path.is_file() else ""

    def figure(self, number: int = 0) -> Picture:
        """A picture of `shrimpmx plot`, from number 0 on; the last ones are of percentiles, where
        there are samples enough.

        InputError if there is no such picture.
        """
        charts = charts_of(self.document)
        if not charts:
            raise InputError(f"{self.path} has nothing to draw: {why_empty(self.document)}")
        if not 0 <= number < len(charts):
            raise InputError(f"{self.path} has pictures 0 to {len(charts) - 1}, not {number}")
        return picture_of(charts[number])

    def __repr__(self) -> str:
        return f"Result({str(self.path)!r})"

    def _repr_html_(self) -> str:
        # Templates load slowly.
        from shrimpmx.page.page import fragment_of

        return fragment_of(self.document, self.path, f"shrimpmx{next(_shown)}")


def load(path: str | os.PathLike[str]) -> Result:
    """The result in a directory, or of a run.json. InputError if it is missing or damaged."""
    return Result(Path(path))


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    engine: EngineName = "forked",
    seed: int = 1,
    output: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Result:
    """What `shrimpmx run` does, without printing: the result of a scenario, which is kept too.

    `scenario` is one, a file, or a name such as "smoke/pingpong". `settings` are those of --set:
    a list gives an axis its values. `output` is a new or an empty directory, by default one below
    ./results. Raises InputError, MachineError and AgentError.
    """
    hosts = engine_of(engine)
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a number of at least 0, not {seed!r}")
    name = scenario.name if isinstance(scenario, Scenario) else os.fspath(scenario)
    declared = scenario if isinstance(scenario, Scenario) else load_scenario(find_scenario(name))
    changes = settings_of(settings)
    changed = declared.on(real=hosts.is_real).changed(changes)
    points = checked_points(changed)
    if hosts.is_real:
        check_real_hosts(points)
    tell_doubts(points, changes, hosts, changed.policies)
    place = Path(output) if output is not None else default_output(changed.name)
    with ResultDirectory(place).beginning(resume=False, advice="give another output"):
        costs = costs_for(points, None, hosts)
        sweep = sweep_of(
            changed,
            executor_for(changed, costs, hosts),
            place,
            bar_for(changed.name, changed),
            costs,
            hosts,
            settings=changes,
            seed=seed,
            command=["run", name],
        )
        with run_log(place):
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
    run. `environment` adds to this process's variables; the rest is as the command's
    options. `settings`: as --set takes them. Raises InputError, MachineError, DeadlineError
    and, if a rank fails, RankEndedError with its exit code.
    """
    words, changes = words_of(program, n, timeout, settings, OPTIONS), settings_of(settings)
    _check_numbers(runs, silence)
    hosts = engine_of(engine, timeout)
    started = Program(words, n, nodes, tuple(changes), map_by, bind_to, hosts.is_real)
    point, policies, waits = started.point()
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
        bar = progress_for("mpirun", [], 0, 0, None)
        own = ["mpirun", *(["--runs", str(runs)] if runs > 1 else []), "--stdin", "none"]
        command = command_line(own, started, changes, launch, timeout)
        sweep = program_sweep(
            point, executor, (policies, waits), place, changes, command, runs, bar
        )
        with run_log(place), advising_time():
            sweep.run()
    return Result(place)


@contextlib.contextmanager
def advising_time() -> Iterator[None]:
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


def words_of(
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


def engine_of(name: str, limit_s: float | None = None) -> Engine:
    """The engine of that name; `limit_s` as that of chosen_engine."""
    if name not in ENGINES:
        hint = did_you_mean(name, ENGINES)
        raise InputError(f"engine is one of {', '.join(ENGINES)}, not {name!r}{hint}")
    return chosen_engine(name, limit_s)


def settings_of(settings: Mapping[str, Any]) -> list[str]:
    """As words of the command line."""
    return [f"{key}={_setting(value)}" for key, value in settings.items()]


def _setting(value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, list | tuple):
        return ",".join(map(_setting, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
