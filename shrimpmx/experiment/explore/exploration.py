"""An exploration: a sweep whose next run is chosen by those before it, within a time budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shrimpmx.errors import (
    AgentError,
    DeadlineError,
    InputError,
    InterruptedRunError,
    PointFailedError,
    RunCutError,
)
from shrimpmx.experiment.explore.findings import Findings, findings_of
from shrimpmx.experiment.explore.grid import place_of, setting_name
from shrimpmx.experiment.explore.measured import Measured, measured_of
from shrimpmx.experiment.explore.pace import Pace
from shrimpmx.experiment.explore.race import RUNS_MOST, TRIED_LEAST, Race, spread
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress import Progress
from shrimpmx.experiment.run_data import RunData
from shrimpmx.experiment.scenario import RunPlan, Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.runs import ANY

# A program that failed under so many settings, and ran under none, fails everywhere (ours).
FAILURES = 2

# Runs a point with a seed; gives up after so many seconds by a DeadlineError.
Execute = Callable[[Point, int, float], Outcome]


class Exploration:
    """Runs the settings of `scenario`, one point each, as a race of them.

    Each run is kept at once, as those of any sweep. `pace` says how long all of it may take, `most`
    how many runs of one setting; the program starts in `working_directory`. `own`: what else a
    Sweep of an engine's runs needs.
    """

    def __init__(
        self,
        scenario: Scenario,
        execute: Execute,
        objective: str,
        pace: Pace,
        *,
        most: int = RUNS_MOST,
        seed: int = 1,
        output: Path | None = None,
        resume: bool = False,
        progress: Progress | None = None,
        changes: Sequence[str] = (),
        made_with: Mapping[str, Any] | None = None,
        dilation_of: Callable[[Point], float] = lambda point: 1.0,
        working_directory: str = "",
        own: Mapping[str, Any] | None = None,
    ) -> None:
        self._execute = execute
        self._objective = objective
        self._pace, self._most = pace, most
        self._failure: AgentError | None = None
        # By setting: the limit that its run reached before any other had ended, s.
        self._given_up_s: dict[int, float] = {}
        # By setting: its runs when it was last asked for, and what they came to.
        self._measured: dict[int, tuple[list[RunData], Measured]] = {}
        self.sweep = Sweep(
            scenario,
            self._run,
            seed=seed,
            output=output,
            resume=resume,
            progress=progress,
            retries=0,  # so would these, and each setting runs several times
            changes=changes,
            made_with=made_with or {},
            dilation_of=dilation_of,
            order=self._plans,
            working_directory=working_directory,
            completes=False,  # its findings do
            clock=pace.real_clock,
            # Real ones without a probe: two processes that would cost time of the budget.
            **{"prober": lambda _cpus: (ANY, None), **(own or {})},
        )
        places = {point.index: place_of(scenario, point) for point in self.sweep.points}
        self.race = Race(
            spread(places, seed),
            self.measured,
            objective,
            pace.budget,
            pace.clock,
            seed,
            most,
            tries_all=pace.tries_all,
        )

    def run(self) -> dict[str, Any]:
        """Run settings until the budget is spent or the best one is settled; the result.

        Raises the error of a program that fails everywhere, and InputError if no run ends.
        """
        return self.sweep.run()

    def measured(self, index: int) -> Measured:
        """The runs of a setting so far."""
        runs = self.sweep.runs_of(self.sweep.points[index])
        if index not in self._measured or self._measured[index][0] != runs:
            self._measured[index] = runs, measured_of(runs)
        return self._measured[index][1]

    def findings(self) -> Findings | None:
        """What was found so far; None if no setting has run to its end."""
        scenario = self.sweep.scenario
        return findings_of(
            self.sweep.points,
            self.measured,
            lambda point: setting_name(scenario, point),
            self._objective,
            self._next_step(),
            self._rest(),
        )

    def _next_step(self) -> str:
        """What would tell settings apart that this exploration cannot."""
        if self.race.spent:
            return self._pace.next_step
        if self._most < RUNS_MOST:
            return "raise --runs"
        return f"explore these alone; no setting runs more than {RUNS_MOST} times at once"

    def _rest(self) -> str:
        """What runs the settings that this exploration has not run; "" if it has run all."""
        pending = len(self.race.pending())
        if not pending:
            return ""
        # Where no run has ended each may need the whole budget.
        wanted_s = self.race.wanted_s() or pending * self._pace.budget
        place = "" if self.sweep.output is None else f" --output {self.sweep.output}"
        return f"--resume{place} --budget {math.ceil(wanted_s)}"

    def shortage(self) -> str:
        """That the budget did not suffice to compare any settings; "" if it did."""
        count = len(self.sweep.points)
        tried = count - len(self.race.pending())
        if tried >= min(TRIED_LEAST, count):
            return ""
        ran = f"only {tried} of {count} settings has run" if tried else f"none of {count} has run"
        return (
            f"a budget of {self._pace.budget:g} s is too short to compare settings: {ran}; to run "
            f"the others repeat the command with {self._rest()}"
        )

    def _plans(self, sweep: Sweep) -> Iterator[RunPlan]:
        self._recall(sweep)
        for index in self.race:
            point, repeats = sweep.points[index], sweep.scenario.repeats
            number = len(sweep.runs_of(point))
            yield RunPlan(point.index * repeats + number, point, number)
            self._end_if_all_fail()
        self._check_any_ended()

    def _recall(self, sweep: Sweep) -> None:
        """Learn from the runs that an interrupted exploration has kept how long they take."""
        for point in sweep.points:
            for run in sweep.runs_of(point):
                took = self._pace.recalled(run)
                if took is not None:
                    self.race.note(point.index, took)

    def _end_if_all_fail(self) -> None:
        found = {index: self.measured(index) for index in self.race.settings}
        # A run that may only have had too little time is no sign that all others fail.
        failures = sum(bool(found[index].failed) for index in found.keys() - self._given_up_s)
        if self._failure is None or self._any_usable():
            return
        if self._failure.at_start or failures >= min(FAILURES, len(found)):
            raise self._failure

    def _check_any_ended(self) -> None:
        if self._given_up_s and self._failure is None and not self._any_usable():
            raise InputError(
                f"no run ended within {max(self._given_up_s.values()):.0f} s, with a budget of "
                f"{self._pace.budget:g} s: raise --budget, explore fewer settings, or let the "
                "program do less"
            )

    def _any_usable(self) -> bool:
        return bool(self.race.usable())

    def _run(self, point: Point, seed: int) -> Outcome:
        limit = self._pace.limit(self.race.left_s, len(self.race.pending()))
        begin = self._pace.clock()
        try:
            outcome = self._execute(point, seed, limit.seconds)
        except InterruptedRunError:
            raise
        except DeadlineError as error:
            self._pace.given_up()
            if limit.seconds == self._pace.timeout_s:
                self._failure = error
            elif self._pace.fastest_s is None:
                self._given_up_s[point.index] = limit.seconds
            if not limit.reason:
                raise RunCutError(str(error)) from error
            raise PointFailedError(limit.reason) from error
        except AgentError as error:
            self._pace.given_up()
            self._failure = error
            raise PointFailedError(str(error)) from error
        self.race.note(point.index, self._pace.done(outcome, begin))
        return outcome
