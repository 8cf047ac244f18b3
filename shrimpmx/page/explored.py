"""What an exploration found, from what its result has kept: settings, the recommended one, why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from shrimpmx.errors import InputError
from shrimpmx.experiment.explore.picture import chart_of
from shrimpmx.experiment.explore.words import FRONTIER, TYPED, alike_words, unit_of
from shrimpmx.results.words import number_words
from shrimpmx.show.plot.draw import Figure, figures_of

# The key of an exploration in its result.
KEY = "explore"
RECOMMENDED, ON_FRONTIER = "recommended", "frontier"
TIMES = ("time", "CPU time", "of ranks", "of handlers")


class _Measured(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    median: float
    ci95: tuple[float, float]


class _Setting(BaseModel):
    name: str
    runs: int
    failed: str = ""
    time: _Measured | None = None
    cpu: _Measured | None = None
    run_cpu_time: _Measured | None = None
    run_handler_cpu_time: _Measured | None = None
    interrupts: _Measured | None = None

    @model_validator(mode="after")
    def _has_figures(self) -> Self:
        if not self.failed and None in self.figures():
            raise ValueError("neither figures nor a reason")
        return self

    def figures(self) -> tuple[_Measured | None, ...]:
        """In the order of the table."""
        return self.time, self.cpu, self.run_cpu_time, self.run_handler_cpu_time, self.interrupts


class _Found(BaseModel):
    program: str
    objective: str = Field(pattern="^(time|cpu|interrupts)$")
    recommended: str
    contenders: tuple[str, ...]
    exact: bool
    frontier: tuple[str, ...]
    settings: tuple[_Setting, ...]
    texts: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Text:
    """Lines under a title, of which `typed` ones are for a shell."""

    title: str
    lines: tuple[str, ...]
    typed: bool


@dataclass(frozen=True)
class Explored:
    """The question; headings, rows and legend of the table of settings, the recommended one first;
    the map of them; `failed` settings with their reasons; and texts.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str
    figures: tuple[Figure, ...]
    failed: tuple[str, ...]
    texts: tuple[Text, ...]


def explored_in(document: Mapping[str, Any], path: Path) -> Explored | None:
    """What the exploration of a result in `path` found; None if it is of none. InputError if that
    is damaged.
    """
    kept = document.get(KEY)
    if kept is None:
        return None
    try:
        found = _Found.model_validate(kept)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(f"result {path} is damaged: {KEY}.{place}") from None
    usable = [each for each in found.settings if not each.failed]
    usable.sort(key=lambda each: _place(each, found))
    chart = chart_of(kept)
    legend = alike_words(found.objective, exact=found.exact)
    unit, scale = unit_of(each.time.median for each in usable if each.time is not None)
    return Explored(
        chart.title,
        ("", "setting", *(f"{each}, {unit}" for each in TIMES), "interrupts", "runs"),
        tuple(_row(each, found, scale) for each in usable),
        f"{legend}; {ON_FRONTIER}: {FRONTIER}",
        tuple(figures_of([chart])),
        tuple(f"{each.name}: {each.failed}" for each in found.settings if each.failed),
        tuple(Text(title, lines, title in TYPED) for title, lines in found.texts),
    )


def _place(setting: _Setting, found: _Found) -> tuple[bool, bool, float]:
    """In the table: the recommended one, those about as good, the others."""
    objective = {"time": setting.time, "cpu": setting.cpu, "interrupts": setting.interrupts}
    asked = objective[found.objective]
    is_other = setting.name not in found.contenders
    return setting.name != found.recommended, is_other, asked.median if asked else 0.0


def _row(setting: _Setting, found: _Found, scale: float) -> tuple[str, ...]:
    def time_words(value: float) -> str:
        return number_words(value / scale)

    marks = [RECOMMENDED] if setting.name == found.recommended else []
    if setting.name in found.contenders and not marks:
        marks.append(alike_words(found.objective, exact=found.exact).partition(":")[0])
    marks += [ON_FRONTIER] if setting.name in found.frontier else []
    *times, interrupts = setting.figures()
    return (
        ", ".join(marks),
        setting.name,
        *(_words(each, time_words) for each in times),
        _words(interrupts, "{:,.0f}".format),
        str(setting.runs),
    )


def _words(figure: _Measured | None, words: Callable[[float], str]) -> str:
    """A median with its interval."""
    if figure is None:
        return "—"
    low, high = map(words, figure.ci95)
    return words(figure.median) + (f" [{low}, {high}]" if low != high else "")
