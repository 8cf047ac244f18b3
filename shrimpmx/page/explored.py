"""What an exploration found, from what its result has kept: settings, the recommended one, why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shrimpmx.experiment.explore.kept import Kept, KeptSetting, Measured, kept_in
from shrimpmx.experiment.explore.picture import title_of
from shrimpmx.experiment.explore.words import FRONTIER, TYPED, alike_words, unit_of
from shrimpmx.results.words import number_words

RECOMMENDED, ON_FRONTIER = "recommended", "frontier"
TIMES = ("time", "CPU time", "of ranks", "of handlers")


@dataclass(frozen=True)
class Text:
    """Lines under a title, of which `typed` ones are for a shell."""

    title: str
    lines: tuple[str, ...]
    typed: bool


@dataclass(frozen=True)
class Explored:
    """The question; headings, rows and legend of the table of settings, the recommended one first;
    `failed` settings with their reasons; and texts.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str
    failed: tuple[str, ...]
    texts: tuple[Text, ...]


def explored_in(document: Mapping[str, Any], path: Path) -> Explored | None:
    """What the exploration of a result in `path` found; None if it is of none. InputError if that
    is damaged.
    """
    found = kept_in(document, f"result {path}")
    if found is None:
        return None
    usable = [each for each in found.settings if not each.failed]
    usable.sort(key=lambda each: _place(each, found))
    legend = alike_words(found.objective, exact=found.exact)
    unit, scale = unit_of(each.time.median for each in usable if each.time is not None)
    return Explored(
        title_of(found.program),
        ("", "setting", *(f"{each}, {unit}" for each in TIMES), "interrupts", "runs"),
        tuple(_row(each, found, scale) for each in usable),
        f"{legend}; {ON_FRONTIER}: {FRONTIER}",
        tuple(f"{each.name}: {each.failed}" for each in found.settings if each.failed),
        tuple(Text(title, lines, title in TYPED) for title, lines in found.texts),
    )


def _place(setting: KeptSetting, found: Kept) -> tuple[bool, bool, float]:
    """In the table: the recommended one, those about as good, the others."""
    objective = {"time": setting.time, "cpu": setting.cpu, "interrupts": setting.interrupts}
    asked = objective[found.objective]
    is_other = setting.name not in found.contenders
    return setting.name != found.recommended, is_other, asked.median if asked else 0.0


def _row(setting: KeptSetting, found: Kept, scale: float) -> tuple[str, ...]:
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


def _words(figure: Measured | None, words: Callable[[float], str]) -> str:
    """A median with its interval."""
    if figure is None:
        return "—"
    low, high = map(words, figure.ci95)
    return words(figure.median) + (f" [{low}, {high}]" if low != high else "")
