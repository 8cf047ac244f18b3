"""The runs of a lesson: every combination of its sliders and rules, traced, on simulated hosts."""

from __future__ import annotations

import functools
import itertools
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shrimpmx.experiment.engines import SIMULATED, chosen_engine
from shrimpmx.experiment.execute import executor_for
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.machine_costs import costs_for
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.page.lessons.lesson import Lesson, Rule
from shrimpmx.page.lessons.why import why
from shrimpmx.page.packed_trace import columns_of
from shrimpmx.results.metrics import METRICS, Outcome
from shrimpmx.show.cpu_use import CpuUse
from shrimpmx.show.slow_messages import Stages, messages_of
from shrimpmx.show.timeline import Seat, Timeline

SEED = 1
# More would make a page of a long stream too large.
PLAYED_RECORDS = 2500
MESSAGE_ENDS = ("isend", "received")
Settings = Mapping[str, object]
# The command that repeats a run, by its settings as key=value.
Repeat = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class LessonRun:
    """One run: its trace in columns, its figures by metric, and the command that repeats it.
    A figure that it cannot give is None. The last two figures are of a wait for a message, µs: CPU
    time of the receiver, and delay from the last packet in host memory to the program's buffer.
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
            yield rule, settings_under(lesson, rule, own)


def settings_under(lesson: Lesson, rule: Rule, own: Settings) -> dict[str, object]:
    """The settings of a run under a rule, with its `own` values of the sliders."""
    settings = {**lesson.settings, **own, **rule.settings}
    for where, changed in lesson.adjusted:
        if where.items() <= settings.items():
            settings.update(changed)
    return settings


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
    return with_costs(lesson, found, places), places


def with_costs(lesson: Lesson, runs: Sequence[LessonRun], places: Sequence[int]) -> list[LessonRun]:
    """The runs with the costs of their waits, where the lesson has them."""
    found = list(runs)
    if lesson.pure:
        rules = len(lesson.rules)
        for at, place in enumerate(places):
            pure = [runs[places[at - at % rules + rule]] for rule in lesson.pure]
            found[place] = with_cost(runs[place], pure)
    return found


def with_cost(run: LessonRun, pure: Sequence[LessonRun]) -> LessonRun:
    """The run with the cost of a wait, µs, and with that cost by the least of the `pure` runs:
    the receiver's CPU time, and how much later than in the first of them a message is there.
    """
    waits = [(each.figures[-2] or 0.0, each.figures[-1] or 0.0) for each in (run, *pure)]
    prompt = waits[1][1]
    cost, *others = (cpu + delay - prompt for cpu, delay in waits)
    return replace(run, figures=(*run.figures, cost, cost / min(others)))


def run_of(
    lesson: Lesson,
    base: Scenario,
    settings: Settings,
    repeat: Repeat | None = None,
    limit_s: float | None = None,
) -> LessonRun:
    """The run of a lesson's scenario, `base`, with settings of all its axes; `limit_s`: how long
    programs may take. InputError if it cannot be made.
    """
    given = [f"{name}={value}" for name, value in settings.items()]
    changed = base.changed(given)
    [point] = changed.points()
    engine = chosen_engine(SIMULATED, limit_s)
    executor = executor_for(changed, costs_for([point], None, engine), engine)
    outcome, timeline = executor.traced(point, SEED)
    waiting = str(point.parameters.wait.strategy)
    figures = [_figure(lesson, name, settings, outcome) for name in lesson.metrics]
    return LessonRun(
        columns_of(_trimmed(timeline), functools.partial(why, waiting=waiting)),
        (*figures, *_waits(timeline, point.parameters.workload.warmup)),
        repeat(given) if repeat else repeated_run(lesson.scenario, given),
    )


def _waits(timeline: Timeline, warmup: int) -> tuple[float | None, float | None]:
    """CPU time and delay of a wait for a message, µs, of all messages but the first `warmup` ones
    of each pair of ranks; None where the trace does not tell.
    """
    stages, use = Stages(timeline), CpuUse(timeline.switches)
    seen: dict[tuple[Seat, Seat], int] = defaultdict(int)
    # Of each receiver: when the measured messages begin and end.
    begin_ns: dict[int, int] = {}
    end_ns: dict[int, int] = {}
    delays_ns = []
    count = 0
    for message in messages_of(timeline):
        receiver, there_ns = message.received.agent, message.received.time_ns
        pair = message.source, message.destination
        seen[pair] += 1
        if seen[pair] <= warmup:
            begin_ns[receiver] = there_ns
            continue
        begin_ns.setdefault(receiver, timeline.start_ns)
        end_ns[receiver] = there_ns
        count += 1
        in_memory = stages.in_memory(message)
        if in_memory:
            delays_ns.append(there_ns - in_memory.time_ns)
    used_ns = 0
    for receiver, until_ns in end_ns.items():
        name = timeline.name_of(receiver)
        cpu = use.cpu_of(name, until_ns)
        if cpu is None:
            return None, None
        shares = use.shares(cpu, begin_ns[receiver], until_ns)
        used_ns += shares.get(timeline.switches.process_of[name], 0)
    microsecond = 1000 * timeline.dilation
    return (
        used_ns / count / microsecond if count else None,
        sum(delays_ns) / len(delays_ns) / microsecond if delays_ns else None,
    )


def repeated_run(scenario: str, settings: Sequence[str]) -> str:
    """The command that repeats a run of a scenario."""
    words = [word for each in (*settings, "repeats=1") for word in ("--set", each)]
    return shlex.join(["shrimpmx", "run", scenario, "--engine", "simulated", *words])


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
