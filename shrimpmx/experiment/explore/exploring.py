"""An exploration of a program's settings, from the question to the result that is kept."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.cluster.launch import Launch, check_command
from shrimpmx.cluster.spec import FOREVER_S
from shrimpmx.errors import AgentError, InputError, NotHereError
from shrimpmx.experiment.clusters import never_joined
from shrimpmx.experiment.engines import check_real_hosts
from shrimpmx.experiment.execute import (
    ClusterExecutor,
    check_possible,
    checked_points,
    executor_for,
)
from shrimpmx.experiment.explore.draws import best_under_draws, rivals_of, words_of
from shrimpmx.experiment.explore.exploration import Exploration
from shrimpmx.experiment.explore.findings import Findings
from shrimpmx.experiment.explore.grid import setting_name
from shrimpmx.experiment.explore.pace import Pace, SimulatedPace
from shrimpmx.experiment.explore.question import Question
from shrimpmx.experiment.explore.race import RUNS_MOST, SETTLED
from shrimpmx.experiment.explore.words import counted_words, rests_on, rests_on_simulated, texts_of
from shrimpmx.experiment.machine_costs import costs_for, costs_to_keep
from shrimpmx.experiment.measuring import UNDISTURBED
from shrimpmx.experiment.platform import check_draws
from shrimpmx.experiment.platform_files import kept_platforms
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.program_executor import SILENCE_S, ProgramExecutor
from shrimpmx.experiment.progress_bar import BudgetBar, Lines
from shrimpmx.mpi.library import library_path
from shrimpmx.native.streams import on_terminal
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.result import PRINTED_FILE, RESUME_OR_ANOTHER, ResultDirectory

BUDGET_S = 300.0


class Exploring:
    """Answers a question with the runs of an engine, and keeps them and the answer in `output`,
    where it goes on with what lies there to `resume`.

    InputError for a question that cannot be asked; NotHereError if the engine can run no setting.
    """

    def __init__(
        self, question: Question, engine: Engine, output: Path, *, resume: bool = False
    ) -> None:
        self._question, self._engine, self.output = question, engine, output
        self._resume, self._directory = resume, ResultDirectory(output)
        path = self._directory.run_path
        self.scenario = question.scenario(kept_platforms(path, resume=resume))
        self.points = checked_points(self.scenario)
        printed = str((output / PRINTED_FILE).absolute())
        self._launch = Launch(dict(question.environment), question.wdir, stdout=printed)
        check_command(question.program.words, self._launch)
        library_path()
        if engine.is_real:
            check_real_hosts(self.points)
        else:
            self._check_simulated()
        if question.draws:
            if engine.is_real:
                raise InputError("--draws works on simulated hosts only: add --engine simulated")
            check_draws(question.draws, [self.points[0].parameters])
        self._wins: dict[str, int] = {}
        self.pace = self._pace()
        self._processes = 0
        self._exploration: Exploration | None = None

    def _check_simulated(self) -> None:
        """NotHereError if simulated hosts can run none of the settings."""
        from shrimpmx.simulation.engine import check_simulated

        costs = costs_for(self.points, None, self._engine)
        runner = executor_for(self.scenario, costs=costs, engine=self._engine)
        reasons = []
        for point in self.points:
            try:
                check_simulated(runner.spec_of(point, 1))
            except NotHereError as error:
                reasons.append(error)
        if len(reasons) == len(self.points):
            raise reasons[0]

    def _pace(self) -> Pace:
        """How long it may take."""
        asked = self._question
        timeout_s = FOREVER_S if asked.timeout is None else asked.timeout
        if self._engine.is_real:
            return Pace(BUDGET_S if asked.budget is None else asked.budget, timeout_s)
        return SimulatedPace(len(self.points), asked.runs or SETTLED, timeout_s, asked.budget)

    @contextlib.contextmanager
    def opened(self, advice: str = RESUME_OR_ANOTHER) -> Iterator[None]:
        """Have the directory of the result for this process alone; `advice` where it is taken."""
        with self._directory.beginning(self._resume, advice) as resume:
            kept = self._directory.load_run().get("costs") if resume else None
            costs = costs_for(self.points, kept, self._engine)
            runner = executor_for(self.scenario, costs=costs, engine=self._engine)
            self._processes = len(runner.placement_of(self.points[0]).processes)
            made_with = {"command": self._question.command(), **costs_to_keep(costs)}
            self._exploration = self._made(runner, resume, made_with)
            yield

    def run(self) -> None:
        """Run settings until it is settled which are best, or the budget is spent."""
        with run_log(self.output):
            self.exploration.run()
            findings, draws = self.exploration.findings(), self._question.draws
            if draws and findings is not None and not self.exploration.shortage():
                self._wins = best_under_draws(findings, draws, self.scenario.metrics, self._again)

    def _again(self, point: Point) -> Outcome:
        timeout_s = FOREVER_S if self._question.timeout is None else self._question.timeout
        return self._execute(point, self._question.seed, timeout_s)

    @property
    def exploration(self) -> Exploration:
        """What runs them, while it is open."""
        assert self._exploration is not None
        return self._exploration

    def _made(
        self, runner: ClusterExecutor, resume: bool, made_with: dict[str, Any]
    ) -> Exploration:
        asked, engine, pace = self._question, self._engine, self.pace
        axes = self.scenario.varying_axes
        engine.onlooker = progress = (
            BudgetBar("explore", axes, pace.budget, pace.clock)
            if on_terminal()
            else Lines("explore", axes, whole=None)
        )
        program = ProgramExecutor(engine, runner, [], FOREVER_S, SILENCE_S, "")

        def execute(point: Point, seed: int, limit_s: float) -> Outcome:
            run = f"{setting_name(self.scenario, point)}, run {seed - asked.seed + 1}"
            program.launches = [replace(self._launch, heading=run)] * max(
                asked.program.ranks, asked.program.slots
            )
            program.deadline_s = limit_s
            outcome = program(point, seed)
            if program.spec and program.result and program.result.absent:
                raise never_joined(program.spec)
            return outcome

        self._execute = execute
        own = {"engine": engine.describe(), "cpus": engine.cpus()}
        return Exploration(
            self.scenario,
            execute,
            asked.objective,
            pace,
            most=asked.runs or (RUNS_MOST if engine.is_real else SETTLED),
            seed=asked.seed,
            output=self.output,
            resume=resume,
            progress=progress,
            changes=asked.program.settings,
            made_with=made_with,
            dilation_of=lambda point: runner.emulated(point).dilation,
            working_directory=self._launch.directory,
            own=own if engine.is_real else {**own, **UNDISTURBED},
        )

    def resume_command(self, more: Sequence[str] = ()) -> str:
        """The command line that goes on with this exploration, with `more` options."""
        return self._question.command(["--resume", "--output", str(self.output), *more])

    def keep(self) -> tuple[Findings | None, dict[str, Any]]:
        """Keep what was found with the runs, and return both: None if no setting has run to its
        end. What a budget that was too short has found is returned, but not kept.
        """
        exploration = self.exploration
        findings = exploration.findings()
        complete = not exploration.race.pending()
        document = {**(exploration.sweep.last_document or {}), "complete": complete}
        found: dict[str, Any] = {} if findings is None else findings.as_dict()
        if findings is not None and not exploration.shortage():
            best = findings.settings[findings.best].point
            repeat = self._question.repeating(self.scenario, best)
            found |= {
                "program": shlex.join(self._question.program.words),
                "setting": self._question.setting(self.scenario, best),
                "repeat": repeat,
                "texts": self._texts(findings, document, repeat),
            }
            if self._wins:
                best_name = findings.settings[findings.best].name
                rivals = len(rivals_of(findings))
                words = words_of(self._wins, best_name, rivals, self._question.draws)
                found["draws"] = {"count": self._question.draws, "best": dict(self._wins)}
                found["texts"] = [*found["texts"], ("Under other costs", list(words))]
            document["explore"] = found
        self._directory.finish(document, complete=complete)
        return findings, {**document, "explore": found}

    def check(self, findings: Findings | None, document: dict[str, Any]) -> None:
        """InputError if the budget was too short; PlacementError or AgentError if no setting could
        be measured.
        """
        if shortage := self.exploration.shortage():
            raise InputError(shortage)
        if findings is None:
            check_possible(document)
            reason = document["points"][0]["failed"]
            raise AgentError(f"the program failed under every setting: {reason}")

    def _texts(
        self, findings: Findings, document: dict[str, Any], repeat: str
    ) -> Sequence[tuple[str, list[str]]]:
        """What is said below the settings."""
        parameters = self.points[0].parameters
        computes = self._engine.is_real or parameters.cluster.compute != "none"
        counted = counted_words(findings, computes=computes)
        if not self._engine.is_real:
            costs: Counter[str] = Counter()
            for point in document["points"]:
                costs |= Counter(point.get("host_costs_ns", {}))  # the most of each
            lines = rests_on_simulated(
                parameters.platform.name, parameters.cluster.compute, parameters.host.cores, costs
            )
            return texts_of(findings, repeat, [counted, *lines])
        limits = dict.fromkeys(limit for p in document["points"] for limit in p["limits"])
        cpus = len(parameters.cluster.cpus or os.sched_getaffinity(0))
        dilation = document["points"][0].get("time_dilation", 1.0)
        lines = rests_on(self._processes, cpus, dilation, list(limits))
        return texts_of(findings, repeat, [counted, *lines], crowded=self._processes > cpus)
