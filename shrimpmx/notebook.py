"""Runs and results in a notebook or a script: a result has its report, a data frame, figures."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.commands.engines import ENGINES, check_real_hosts, chosen_engine
from shrimpmx.commands.sweeping import (
    bar_for,
    check_possible,
    checked_points,
    costs_for,
    default_output,
    executor_for,
    sweep_of,
)
from shrimpmx.errors import InputError, MachineError
from shrimpmx.papers.charts import charts_of
from shrimpmx.report.plot.draw import figure_of
from shrimpmx.results.result import ResultDirectory, load_result
from shrimpmx.results.tidy import columns_of, rows_of
from shrimpmx.study.loading import find_scenario, load_scenario
from shrimpmx.study.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

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

    def figure(self, number: int = 0) -> Figure:
        """A picture of `shrimpmx plot`, from number 0 on; the last ones are of percentiles, where
        there are samples enough.

        InputError if there is no such picture.
        """
        charts = charts_of(self.document)
        if not charts:
            raise InputError(f"{self.path} has nothing to draw: no point of it has a figure")
        if not 0 <= number < len(charts):
            raise InputError(f"{self.path} has pictures 0 to {len(charts) - 1}, not {number}")
        return figure_of(charts[number])

    def __repr__(self) -> str:
        return f"Result({str(self.path)!r})"

    def _repr_html_(self) -> str:
        # Templates load slowly.
        from shrimpmx.page.page import fragment_of

        return fragment_of(self.document, f"shrimpmx{next(_shown)}")


def load(path: str | os.PathLike[str]) -> Result:
    """The result in a directory, or of a run.json. InputError if it is missing or damaged."""
    return Result(Path(path))


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    engine: Literal["forked", "simulated"] = "forked",
    seed: int = 1,
    output: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Result:
    """What `shrimpmx run` does, without printing: the result of a scenario, which is kept too.

    `scenario` is one, a file, or a name such as "smoke/pingpong". `settings` are those of --set:
    a list gives an axis its values. `output` is a new or an empty directory, by default one below
    ./results. Raises InputError, MachineError and AgentError.
    """
    if engine not in ENGINES:
        raise InputError(f"engine is one of {', '.join(ENGINES)}, not {engine!r}")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a number of at least 0, not {seed!r}")
    name = scenario.name if isinstance(scenario, Scenario) else os.fspath(scenario)
    declared = scenario if isinstance(scenario, Scenario) else load_scenario(find_scenario(name))
    changes = [f"{key}={_setting(value)}" for key, value in settings.items()]
    hosts = chosen_engine(engine)
    changed = declared.on(real=hosts.is_real).changed(changes)
    points = checked_points(changed)
    if hosts.is_real:
        check_real_hosts(points)
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


def _setting(value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, list | tuple):
        return ",".join(map(_setting, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
