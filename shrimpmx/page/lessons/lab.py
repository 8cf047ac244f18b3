"""A lab: the page of a lesson, a scenario or a program, whose runs are made on demand."""

from __future__ import annotations

import json
import re
import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from shrimpmx.cluster.launch import Launch, check_command
from shrimpmx.cluster.nics.kind import kind_of
from shrimpmx.errors import InputError
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.program import Program, cores_of, limits_of
from shrimpmx.experiment.program_sweep import command_line, program_scenario
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.mpi.library import library_path
from shrimpmx.page.lessons.compute import (
    LessonRun,
    Repeat,
    repeated_run,
    run_of,
    settings_under,
    with_cost,
)
from shrimpmx.page.lessons.lesson import Lesson, Rule, Slider
from shrimpmx.page.lessons.write import page_with, told_of
from shrimpmx.results.words import value_words
from shrimpmx.settings.assignments import split_setting
from shrimpmx.settings.names import parameter_name

# Runs that are kept for another look, and how long a program may take (ours).
KEPT = 200
PROGRAM_S = 60.0
NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,9})?")
# How a parameter's name ends, a unit for readers, and how much of the parameter one of it is.
UNITS = (("_ns", "µs", 1000), ("_us", "µs", 1), ("_usecs", "µs", 1), ("_bytes", "B", 1))
RULE_AXES = ("coalescing", "wait")
# What is compared where nothing is given, and which timers.
COALESCING, RX_USECS = ("disabled", "timeout", "open-mx"), (10, 30, 75)


class Lab:
    """Makes the runs of a lesson: of `base`, the scenario that it is of. `repeat`: the command that
    repeats one; None: that of the lesson's scenario.
    """

    def __init__(self, lesson: Lesson, base: Scenario, repeat: Repeat | None = None) -> None:
        self.lesson = lesson
        self._base, self._repeat = base, repeat
        self._kept: OrderedDict[str, LessonRun] = OrderedDict()

    def page(self) -> bytes:
        """Its page, after the runs that it shows first. InputError or AgentError if they fail."""
        chosen = {slider.parameter: str(_start(slider)) for slider in self.lesson.sliders}
        for rule in self.lesson.first:
            self.answer({**chosen, "rule": str(rule)})
        return page_with(self.lesson, {}, exact=[_exact(each) for each in self.lesson.sliders])

    def answer(self, asked: Mapping[str, str]) -> bytes:
        """The run under the numbers of a rule and of each slider, of its value or, where all are
        numbers, any: the length of what is told of it in 4 bytes, little-endian, that, in JSON, and
        its trace. InputError for a number that cannot be used, AgentError if the run fails.
        """
        names = [slider.parameter for slider in self.lesson.sliders]
        if set(asked) != {*names, "rule"}:
            wanted = ", ".join([*names, "rule"])
            raise InputError(f"a run takes one number for each of {wanted}, and no other")
        rule = self.lesson.rules[_index(asked["rule"], len(self.lesson.rules), "rule")]
        own = {each.parameter: _value(each, asked[each.parameter]) for each in self.lesson.sliders}
        settings = settings_under(self.lesson, rule, own)
        run = self._run(settings)
        if self.lesson.pure:
            pure = (
                settings_under(self.lesson, self.lesson.rules[at], own) for at in self.lesson.pure
            )
            run = with_cost(run, [self._run(each) for each in pure])
        told = json.dumps(told_of(run)).encode()
        return struct.pack("<I", len(told)) + told + run.trace

    def _run(self, settings: Mapping[str, object]) -> LessonRun:
        key = repr(settings)
        if key not in self._kept:
            self._kept[key] = run_of(self.lesson, self._base, settings, self._repeat, PROGRAM_S)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]


def lab_of_lesson(lesson: Lesson, settings: Sequence[str]) -> Lab:
    """The lab of a lesson. InputError for settings: it has its own."""
    for setting in settings:
        raise InputError(
            f"a lesson sets its own parameters: leave {setting} out, or name the scenario "
            f"{lesson.scenario} instead of the lesson"
        )
    return Lab(lesson, load_scenario(find_scenario(lesson.scenario)).on(real=False))


def lab_of_scenario(name: str, settings: Sequence[str]) -> Lab:
    """The lab of a scenario under settings, whose axes are sliders. InputError if it cannot be
    used.
    """
    declared = load_scenario(find_scenario(name)).on(real=False)
    scenario = declared.changed(settings)
    lesson = _lesson_of(scenario, name)

    def repeat(given: Sequence[str]) -> str:
        return repeated_run(name, [*_kept_beside(settings, given), *given])

    return Lab(lesson, scenario, repeat)


def lab_of_program(words: Sequence[str], ranks: int, settings: Sequence[str]) -> Lab:
    """The lab of an MPI program. InputError if it cannot be used."""
    check_command(words, Launch())
    library_path()
    program = Program(tuple(words), ranks, settings=tuple(settings), real=False)
    given = program_scenario(program, "lab").parameters
    defaults = {"cores": cores_of(ranks, given), "wait": "spin-block", **limits_of(ranks, given)}
    scenario = program_scenario(program, "lab", defaults)
    lesson = _lesson_of(scenario.model_copy(update={"title": " ".join(words)}), "")

    def repeat(given: Sequence[str]) -> str:
        own = [*_kept_beside(settings, given), *given]
        return command_line(["mpirun"], program, own, Launch(), None)

    return Lab(lesson, scenario, repeat)


def _kept_beside(settings: Sequence[str], given: Sequence[str]) -> list[str]:
    """The settings of parameters that are not given once more."""
    names = {split_setting(each)[0] for each in given}
    return [each for each in settings if parameter_name(split_setting(each)[0]) not in {*names, ""}]


def _lesson_of(scenario: Scenario, name: str) -> Lesson:
    """What a scenario shows: its rules are an axis, the other axes are sliders."""
    axes = {axis: scenario.sweep[axis] for axis in scenario.varying_axes}
    compared = next(
        (axis for axis in (scenario.compare, *RULE_AXES) if axis in axes),
        next((axis for axis in axes if not _are_numbers(axes[axis])), None),
    )
    [point, *_] = scenario.points()
    nic = point.parameters.nic
    if compared is not None:
        rules = [Rule(_word(value), {compared: _word(value)}) for value in axes.pop(compared)]
    elif kind_of(nic).interrupts:
        own = str(point.shown.get("coalescing", nic.coalescing))
        names = dict.fromkeys((own, *scenario.policies, *COALESCING))
        rules = [Rule(each, {"coalescing": each}) for each in names]
        if not axes:
            axes["rx_usecs"] = tuple(sorted({*RX_USECS, nic.rx_usecs}))
    else:
        rules = [Rule("as declared", {})]
    return Lesson(
        name="lab",
        title=scenario.title,
        scenario=name,
        settings={},
        text=(scenario.shows,) if scenario.shows else (),
        tries=(),
        sliders=tuple(_slider(axis, values) for axis, values in axes.items()),
        rules=tuple(rules),
        first=(0, min(1, len(rules) - 1)),
        metrics=tuple(scenario.metrics),
        questions=(),
    )


def _slider(axis: str, values: Sequence[Any]) -> Slider:
    if not _are_numbers(values):
        words = tuple(value_words(axis, value) for value in values)
        return Slider(axis, axis, tuple(map(_word, values)), words)
    ordered, (unit, per) = tuple(sorted(values)), _unit(axis)
    return Slider(axis, axis, ordered, tuple(f"{each / per:g} {unit}".strip() for each in ordered))


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _word(value: Any) -> str:
    """A value as --set has it."""
    if isinstance(value, tuple | list):
        return ",".join(map(_word, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _start(slider: Slider) -> Any:
    return slider.values[slider.start] if _are_numbers(slider.values) else slider.start


def _exact(slider: Slider) -> dict[str, Any] | None:
    """How a slider takes any number: the numbers of its values, whether all are `whole`, a unit
    and how much of the parameter one of it is. None: it has values alone.
    """
    if not _are_numbers(slider.values):
        return None
    unit, per = _unit(slider.parameter)
    whole = all(isinstance(each, int) for each in slider.values)
    return {"numbers": slider.values, "whole": whole, "unit": unit, "per": per}


def _unit(parameter: str) -> tuple[str, int]:
    """Its unit for readers, and how much of the parameter one of it is."""
    return next(((unit, per) for end, unit, per in UNITS if parameter.endswith(end)), ("", 1))


def _value(slider: Slider, text: str) -> object:
    """What a number means for a slider: that itself, or one of its values."""
    if not _are_numbers(slider.values):
        return slider.values[_index(text, len(slider.values), slider.parameter)]
    if not NUMBER.fullmatch(text):
        raise InputError(f"{slider.parameter} must be a number, not {text[:40]!r}")
    return float(text) if "." in text else int(text)


def _index(text: str, count: int, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < count):
        raise InputError(f"{name} must be a number from 0 to {count - 1}, not {text[:40]!r}")
    return int(text)
