"""The runs of a lesson: every combination of its sliders and rules, traced, on simulated hosts."""

from __future__ import annotations

import functools
import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from shrimpmx.experiment.engines import SIMULATED, chosen_engine
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.machine_costs import costs_for
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.page.lessons.lesson import Lesson, Rule
from shrimpmx.page.lessons.why import why
from shrimpmx.page.packed_trace import columns_of
from shrimpmx.results.metrics import METRICS, Outcome
from shrimpmx.show.timeline import Timeline

SEED = 1
# More would make a page of a long stream too large.
PLAYED_RECORDS = 2500
MESSAGE_ENDS = ("isend", "received")
Settings = Mapping[str, object]


@dataclass(frozen=True)
class LessonRun:
    """One run: its trace in columns, its figures by metric, and the command that repeats it.
    A figure that it cannot give is None.
    """

    trace: bytes
    figures: tuple[float | None, ...]
    command: str


def settings_of(lesson: Lesson) -> Iterator[tuple[Rule, Settings]]:
    """The settings of each combination, the rule changing fastest; those that a rule ignores are
    the slider's first.
    """
    values = [slider.values for slider in lesson.sliders]
    for chosen in itertools.product(*values):
        for rule in lesson.rules:
            own = {
                slider.parameter: slider.values[slider.start]
                if slider.parameter in rule.ignores
                else value
                for slider, value in zip(lesson.sliders, chosen, strict=True)
            }
            settings = {**lesson.settings, **own, **rule.settings}
            for where, changed in lesson.adjusted:
                if where.items() <= settings.items():
                    settings.update(changed)
            yield rule, settings


def runs_of(
    lesson: Lesson, progress: Callable[[int, int], None]
) -> tuple[list[LessonRun], list[int]]:
    """The different runs of a lesson, and of each combination the number of its run."""
    numbers: dict[tuple[tuple[str, object], ...], int] = {}
    places = [
        numbers.setdefault(tuple(settings.items()), len(numbers))
        for _, settings in settings_of(lesson)
    ]
    base = load_scenario(find_scenario(lesson.scenario)).on(real=False)
    found = []
    for settings in map(dict, numbers):
        found.append(run_of(lesson, base, settings))
        progress(len(found), len(numbers))
    return found, places


def run_of(lesson: Lesson, base: Scenario, settings: Settings) -> LessonRun:
    """The run of a lesson's scenario, `base`, with settings of all its axes. InputError if it
    cannot be made.
    """
    given = [f"{name}={value}" for name, value in settings.items()]
    [point] = base.changed(given).points()
    engine = chosen_engine(SIMULATED)
    executor = ClusterExecutor(engine, costs=costs_for([point], None, engine))
    outcome, timeline = executor.traced(point, SEED)
    waiting = str(point.parameters.wait.strategy)
    words = [word for each in given for word in ("--set", each)]
    command = ["shrimpmx", "run", lesson.scenario, "--engine", "simulated", *words]
    return LessonRun(
        columns_of(_trimmed(timeline), functools.partial(why, waiting=waiting)),
        tuple(_figure(lesson, name, settings, outcome) for name in lesson.metrics),
        shlex.join([*command, "--set", "repeats=1"]),
    )


def _figure(lesson: Lesson, name: str, settings: Settings, outcome: Outcome) -> float | None:
    parameter, value = lesson.metrics_where.get(name, (None, None))
    if parameter is not None and settings[parameter] != value:
        return None
    metric = METRICS[name]
    found = metric.compute(outcome)
    return (
        None if isinstance(found, str) else float(np.median(found)) * metric.scale(outcome.dilation)
    )


def _trimmed(timeline: Timeline) -> Timeline:
    """From the first message to the last one, or as much as is played."""
    times = [record.time_ns for record in timeline.records if record.kind in MESSAGE_ENDS]
    if not times:
        return timeline
    kept = [record for record in timeline.records if times[0] <= record.time_ns <= times[-1]]
    played = {id(record) for record in kept[:PLAYED_RECORDS]}
    # A packet that arrives behind the end would be taken for a lost one.
    for flight in timeline.flights():
        if flight.sent and flight.arrived and id(flight.arrived) not in played:
            played.discard(id(flight.sent))
    return replace(timeline, records=[record for record in kept if id(record) in played])
