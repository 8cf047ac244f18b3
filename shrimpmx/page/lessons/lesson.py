"""What a lesson is: sliders over a scenario, rules to compare, and questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Slider:
    """A parameter with its values, in `words` for readers; `start`: the one shown first."""

    parameter: str
    label: str
    values: tuple[object, ...]
    words: tuple[str, ...]
    start: int = 0


@dataclass(frozen=True)
class Rule:
    """Settings that are compared; those of sliders in `ignores` have no effect under it."""

    label: str
    settings: Mapping[str, object]
    ignores: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Question:
    """A question with its answers; `right` is the number of the right one, `because` says why."""

    text: str
    answers: tuple[str, ...]
    right: int
    because: str


@dataclass(frozen=True)
class Lesson:
    """A lesson. `scenario` with `settings` is what runs; `text` are its paragraphs, `tries` what to
    look at first. The figures below the lanes are `metrics`, those of `metrics_where` of runs with
    that setting only. `first`: the rules shown first. `adjusted`: settings of the runs that have
    some others. `pure`: the rules between which hindsight chooses, by number, first the one
    that delays no message; with these there are the costs of waits, too.
    """

    name: str
    title: str
    scenario: str
    settings: Mapping[str, object]
    text: tuple[str, ...]
    tries: tuple[str, ...]
    sliders: tuple[Slider, ...]
    rules: tuple[Rule, ...]
    first: tuple[int, int]
    metrics: tuple[str, ...]
    questions: tuple[Question, ...]
    metrics_where: Mapping[str, tuple[str, object]] = field(default_factory=dict)
    pure: tuple[int, ...] = ()
    adjusted: tuple[tuple[Mapping[str, object], Mapping[str, object]], ...] = ()
