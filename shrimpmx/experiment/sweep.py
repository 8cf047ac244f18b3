"""Running a sweep: its points in shuffled order, each in fresh processes, each kept at once."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from shrimpmx.bench.probe import probe
from shrimpmx.errors import InputError, RunCutError
from shrimpmx.experiment.measuring import RETRIES, Executor, Measuring, Prober
from shrimpmx.experiment.own_code import code_of, code_of_programs
from shrimpmx.experiment.platform_files import platforms_to_keep
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress import Progress, Quiet
from shrimpmx.experiment.run_data import RunData, made_again, merged
from shrimpmx.experiment.scenario import RunPlan, Scenario, plan_runs
from shrimpmx.native.files import write_whole
from shrimpmx.results.disturbance import HERE, Figures
from shrimpmx.results.environment import (
    check_code,
    environment,
    fewest_cpus,
    machines_of,
    place_among,
)
from shrimpmx.results.expectation import evaluate
from shrimpmx.results.result import ResultDirectory
from shrimpmx.settings.assignments import is_deadline
from shrimpmx.show.timeline import Timeline, heading

# Where timelines lie in a result, and how many lines of one a report prints.
TIMELINES = "timelines"
TIMELINE_LINES = 60

# What must agree for a result to be one of this very sweep.
SAME = ("scenario", "settings", "seed")


class Tracer(Protocol):
    """Runs one point once more, traced, and gives the timeline of one of its messages."""

    def __call__(self, point: Point, seed: int) -> Timeline: ...


# Chooses a sweep's next run each time that it is asked, by those that it has; one that is there is
# made again.
Order = Callable[["Sweep"], Iterable[RunPlan]]
# Makes runs of a sweep beside each other, and gives each one as it is finished.
Beside = Callable[["Sweep", Sequence[RunPlan]], Iterable[tuple[RunPlan, RunData]]]


def every_run(sweep: Sweep) -> Iterable[RunPlan]:
    """The order of a sweep that makes all of its runs: those that are not there yet."""
    return [plan for plan in sweep.plans if plan.index not in sweep.runs]


@dataclass
class Sweep:
    """A scenario with its settings, ready to run. `output` None keeps nothing on disk.

    `changes` are the `--set` that made the scenario what it is: the result tells them, and what
    it was `made_with` beside its parameters. With an `order` not all runs need be made;
    without `completes` its end leaves the result to be resumed. Programs start in the
    `working_directory`. `retries`: how often a run is taken again at most. `engine`: the
    result's word for it, and `cpus` its CPUs; None: as many as runs need. `beside` makes
    the runs, else this process does, one after another. `environment` gives that of
    all runs, None: this machine's. `dilation_of`: what points are dilated by, None: each machine's.
    `figures`: what tells whether something disturbs runs.
    """

    scenario: Scenario
    executor: Executor
    seed: int = 1
    output: Path | None = None
    resume: bool = False
    progress: Progress | None = None
    prober: Prober = probe
    figures: Figures = HERE
    retries: int = RETRIES
    tracer: Tracer | None = None
    dilation_of: Callable[[Point], float] | None = lambda point: 1.0
    changes: Sequence[str] = ()
    made_with: Mapping[str, Any] = field(default_factory=dict)
    order: Order = every_run
    working_directory: str = ""
    completes: bool = True
    clock: Callable[[], float] = time.monotonic
    engine: Mapping[str, Any] = field(default_factory=lambda: {"engine": "forked"})
    cpus: int | None = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    beside: Beside | None = None
    environment: Callable[[], dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        self.points = self.scenario.points()
        self.plans: list[RunPlan] = plan_runs(self.scenario, self.points, self.seed)
        # Now: a machine that cannot stand for a platform says so before anything is kept.
        dilation_of = self.dilation_of
        self._dilations = [dilation_of(point) for point in self.points] if dilation_of else []
        self._code = code_of(self.scenario.code, self.points, self.working_directory)
        self._measure = Measuring(
            self.executor,
            self.scenario.metrics,
            self.prober,
            self.figures,
            self.retries,
            self.clock,
        )
        self._runs: dict[int, RunData] = {}
        self._timelines: list[dict[str, Any]] = []
        self._directory = ResultDirectory(self.output) if self.output else None
        self.last_document: dict[str, Any] | None = None

    @property
    def is_real(self) -> bool:
        """Whether real processes make its runs: simulated ones can be made again."""
        return bool(self.engine["engine"] == "forked")

    @property
    def forks(self) -> bool:
        """Whether processes that this one forks make its runs."""
        return self.is_real or self.beside is not None

    @property
    def runs_done(self) -> int:
        """Runs that are measured and kept."""
        return len(self._runs)

    @property
    def runs(self) -> Mapping[int, RunData]:
        """Those runs, by index."""
        return self._runs

    def forget(self, indices: Iterable[int]) -> None:
        """Keep these runs no longer: they are to be made again."""
        for index in indices:
            del self._runs[index]
            if self._directory:
                self._directory.remove_point(index)

    def kept(self) -> dict[str, Any] | None:
        """The complete result that lies there already; None without one, or if it is incomplete.

        InputError if it is damaged, of another sweep, or incomplete and of another machine or code.
        """
        if self._directory is None or not self._directory.run_path.exists():
            return None
        return self._directory.complete(self._head(), SAME)

    def finished(self) -> dict[int, RunData]:
        """The runs that an interrupted sweep has left, by index.

        InputError if one is damaged, or is none of this sweep's.
        """
        if self._directory is None:
            return {}
        found = self._directory.finished_points()
        for index, run in found.items():
            flaw = self._misfit(index, run)
            if flaw:
                path = self._directory.point_path(index)
                raise InputError(f"point {path} is damaged: {flaw}")
        return found

    def _misfit(self, index: int, run: RunData) -> str | None:
        """Why a run that was kept under `index` is none of this sweep's; None if it is one."""
        if index >= len(self.plans):
            return f"the sweep has only {len(self.plans)} runs"
        point = self.points[index // self.scenario.repeats]
        if run["params"] != json.loads(json.dumps(point.shown)):
            return "its parameters are those of another point"
        if set(run["metrics"]) != set(self.scenario.metrics):
            return "it has other metrics than the scenario"
        return None

    def run(self) -> dict[str, Any]:
        """Run what is not there yet and return the result document.

        A point that this machine or the engine cannot run is kept as not measurable here, with the
        reason.
        An error or an interrupt leaves a result with the finished points behind.
        """
        head = self._head()
        if self._directory:
            self._open(self._directory, head)
        progress = self.progress or Quiet()
        progress.begin(len(self.plans), len(self._runs))
        complete = False
        try:
            if self.beside is None:
                self._run_in_turn(progress)
            else:
                self._run_beside(progress, self.beside)
            self._trace_messages()
            complete = self.completes
        finally:
            try:
                document = self.document(head)
                self.last_document = {**document, "complete": complete}
                if self._directory:
                    document = self._directory.finish(document, complete)
            finally:
                progress.end()
        return document

    def _run_in_turn(self, progress: Progress) -> None:
        for plan in self.order(self):
            again = plan.index in self._runs
            progress.running(plan, self._position(plan))
            if again:
                progress.again("a further run")
            with contextlib.suppress(RunCutError):
                self._keep(plan, self.measured(plan))
            if not again:
                progress.finished(plan)

    def _position(self, plan: RunPlan) -> str:
        """Where a run is in the sweep, in words."""
        point, run = plan.point.index + 1, plan.repeat + 1
        return f"point {point} of {len(self.points)}, run {run} of {self.scenario.repeats}"

    def _run_beside(self, progress: Progress, beside: Beside) -> None:
        for plan, run in beside(self, list(self.order(self))):
            self._keep(plan, run)
            progress.finished(plan)

    def measured(self, plan: RunPlan) -> RunData:
        """One run, made now. InputError as of check_program()."""
        again = self.progress.again if self.progress else None
        run = self._measure(plan.point, self.seed_of(plan), again)
        self.check_program(plan.point)
        return run

    def seed_of(self, plan: RunPlan) -> int:
        """The seed of a run: runs of all compared points draw the same."""
        return self.seed + plan.repeat

    def runs_of(self, point: Point) -> list[RunData]:
        """The runs of a point so far."""
        first = point.index * self.scenario.repeats
        places = range(first, first + self.scenario.repeats)
        return [self._runs[index] for index in places if index in self._runs]

    def document(self, head: Mapping[str, Any]) -> dict[str, Any]:
        """The result with what was measured so far."""
        found = [(point, self.runs_of(point)) for point in self.points]
        points = [merged(point, runs) for point, runs in found if runs]
        machines = machines_of(run for _, run in sorted(self._runs.items()))
        for (_, runs), point in zip([pair for pair in found if pair[1]], points, strict=True):
            if machines:
                point["measured_on"] = place_among(machines, runs[0]["machine"])
        placement: dict[str, Any] = {}
        for _, run in sorted(self._runs.items()):
            if "impossible" not in run:
                placement.setdefault(run["mode"], run["placement"])
        only = len(placement) == 1
        axes = list(self.scenario.sweep)
        cpus = fewest_cpus(machines) if machines else self.cpus
        return {
            "schema": 1,
            **head,
            "placement": next(iter(placement.values())) if only else placement,
            **({"machines": machines} if machines else {}),
            "points": points,
            "sections": list(self.scenario.sections),
            "timelines": self._timelines,
            "expectations": [
                dataclasses.asdict(evaluate(expectation, points, self.seed, axes, cpus))
                for expectation in self.scenario.expectations
            ],
        }

    def _head(self) -> dict[str, Any]:
        base = self.points[0].parameters.model_dump(mode="json")
        return {
            "scenario": self.scenario.name,
            **self.engine,
            "title": self.scenario.title,
            "source": self.scenario.source,
            "shows": self.scenario.shows,
            "layout": {
                "rows": self.scenario.rows,
                "columns": self.scenario.columns,
                "axes": list(self.scenario.sweep),
            },
            "set": list(self.changes),
            "settings": self._settings(),
            "seed": self.seed,
            "parameters": base,
            **self.made_with,
            **platforms_to_keep(self.scenario.platforms),
            "adjusted": self._adjusted(),
            "code": self._code,
            "environment": (self.environment or environment)(),
            "placement": {},
            "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }

    def _settings(self) -> dict[str, Any]:
        """What decides which points there are: a resumed sweep must agree in it."""
        return {
            "points": [point.shown for point in self.points],
            **({} if self.is_real else self.engine),
            "repeats": self.scenario.repeats,
            "time_dilation": self._dilations,
            "metrics": list(self.scenario.metrics),
        }

    def _adjusted(self) -> Any:
        """What is adjusted at some points, as it is stored; a deadline may be another one."""
        changed = (
            (place, {name: value for name, value in changes.items() if not is_deadline(name)})
            for place, changes in self.scenario.adjusted
        )
        return json.loads(json.dumps([pair for pair in changed if pair[1]]))

    def _open(self, directory: ResultDirectory, head: dict[str, Any]) -> None:
        if self.resume:
            directory.check_incomplete(head, SAME)
            self._runs = self.finished()
        else:
            directory.begin(head, self.is_real)

    def _trace_messages(self) -> None:
        """One message of each point that the scenario wants a timeline of, traced and kept."""
        for point in self.scenario.traced_points(self.points) if self.tracer else ():
            if "impossible" in self._runs[point.index * self.scenario.repeats]:
                continue
            assert self.tracer is not None
            timeline = self.tracer(point, self.seed)
            head = heading(self._dilations[point.index])
            text = timeline.text(most=TIMELINE_LINES)
            kept = {"params": point.shown, "heading": head, "text": text}
            if self.output is not None:
                # protobuf loads slowly.
                from shrimpmx.show.perfetto import SUFFIX, write_perfetto

                stem = self.output / TIMELINES / f"point{point.index:04d}"
                opened = stem.with_suffix(SUFFIX)
                write_perfetto(timeline, opened)
                full = f"{head}\n{timeline.text(full=True)}\n"
                write_whole(stem.with_suffix(".txt"), full)
                kept |= {"perfetto": str(opened), "full": f"{stem}.txt"}
            self._timelines.append(kept)

    def check_program(self, point: Point) -> dict[str, str]:
        """The digests of a run's program, which it reads anew. InputError if that was edited since
        the sweep began.
        """
        now = code_of_programs([point], self.working_directory)
        check_code(self.output or self.scenario.name, self._code, {**self._code, **now})
        return now

    def _keep(self, plan: RunPlan, run: RunData) -> None:
        before = self._runs.get(plan.index)
        if before:
            run = made_again(before, run)
        self._runs[plan.index] = run
        if self._directory:
            self._directory.add_point(plan.index, run, self.is_real)
