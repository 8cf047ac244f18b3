"""What an exploration found: settings, their frontier, the recommended one and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shrimpmx.results.statistics import Summary, summarise
from shrimpmx.study.explore.advice import ORDINARY, Advice, advice_of, advice_on_marks
from shrimpmx.study.explore.choice import OBJECTIVES, frontier, ranked
from shrimpmx.study.explore.measured import FIGURES, Comparison, Measured
from shrimpmx.study.point import Point

# "As good as" in words on how sure a choice is: within 5 % of the best (ours).
NEAR = 1.05


@dataclass(frozen=True)
class Setting:
    """A setting by its name, and what its runs gave."""

    index: int
    name: str
    point: Point
    measured: Measured

    def summary(self, figure: str) -> Summary:
        """Median and interval of a figure over the runs."""
        return summarise(self.measured.samples[figure])


@dataclass(frozen=True)
class Findings:
    """Of all settings that have run, by number.

    `best` is the recommended one; `tied` are the finalists that cannot be told apart by the
    objective, with it; `early` the others of which that holds: they were dropped after few runs;
    `as_good` are those of the tied between which the other figures decided. `chance`, 0 to 1: how
    likely one of the tied has the least figure of all; `near`: how likely the recommended one has
    at most 5 % more than that; None if no setting ran twice. `ordinary` is the best one that a
    NIC without marks can have, if that is another. `next_step`: what would tell tied settings
    apart. `is_exact`: settings ran again, and none gave another figure.
    """

    objective: str
    settings: Mapping[int, Setting]
    frontier: Sequence[int]
    best: int
    tied: Sequence[int]
    early: Sequence[int]
    as_good: Sequence[int]
    chance: float | None
    near: float | None
    ordinary: int | None
    next_step: str
    is_exact: bool

    @property
    def usable(self) -> list[Setting]:
        """Settings with figures."""
        return [each for each in self.settings.values() if each.measured.usable]

    @property
    def failed(self) -> list[Setting]:
        """Settings under which the program failed."""
        return [each for each in self.settings.values() if each.measured.failed]

    def advice(self, *, crowded: bool = False) -> list[Advice]:
        """The recommended setting as commands; of one that needs marks the best one without them,
        and that as a comment. `crowded`: CPUs were fewer than processes.
        """
        best = self.settings[self.best]
        if self.ordinary is None:
            return advice_of(best.point, crowded=crowded)
        ordinary = advice_of(self.settings[self.ordinary].point, crowded=crowded)
        return [*ordinary, advice_on_marks(best.point, best.name)]

    def as_dict(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "objective": self.objective,
            "recommended": self._named([self.best])[0],
            "parameters": self.settings[self.best].point.shown,
            "tied": self._named(self.tied),
            "as_good": self._named(self.as_good),
            "tied_early": self._named(self.early),
            "frontier": self._named(self.frontier),
            "chance_that_best_is_tied": self.chance,
            "chance_within_5_percent": self.near,
            "ordinary": None if self.ordinary is None else self._named([self.ordinary])[0],
            "settings": [_setting_dict(each) for each in self.settings.values()],
            "commands": [command for advice in self.advice() for command in advice.commands],
        }

    def _named(self, indices: Sequence[int]) -> list[str]:
        return [self.settings[index].name for index in indices]


def _setting_dict(setting: Setting) -> dict[str, Any]:
    found: dict[str, Any] = {"name": setting.name, "runs": setting.measured.runs}
    if setting.measured.failed:
        return {**found, "failed": setting.measured.failed}
    for figure, metric in FIGURES.items():
        summary = setting.summary(figure)
        found[metric] = {"median": summary.median, "ci95": [summary.low, summary.high]}
    return found


def findings_of(
    points: Sequence[Point],
    measured: Callable[[int], Measured],
    name: Callable[[Point], str],
    finalists: Sequence[int],
    objective: str,
    next_step: str,
    is_exact: bool,
) -> Findings:
    """The findings of an exploration; `finalists`, best first, must not be empty; `next_step` and
    `is_exact` as those of Findings.
    """
    settings = {
        point.index: Setting(point.index, name(point), point, measured(point.index))
        for point in points
    }
    settings = {i: s for i, s in settings.items() if s.measured.runs or s.measured.failed}
    usable = {i: s.measured for i, s in settings.items() if s.measured.usable}
    figures, best = OBJECTIVES[objective], finalists[0]
    last = Comparison({index: usable[index] for index in finalists}, figures[0])
    compared = Comparison(usable, figures[0])
    tied = last.tied()
    return Findings(
        objective=objective,
        settings=settings,
        frontier=frontier(usable),
        best=best,
        tied=[index for index in finalists if index in tied],
        as_good=last.as_good(),
        early=[i for i in compared.tied() if i not in finalists],
        chance=compared.chance(tied) if compared.known else None,
        near=compared.chance([best], NEAR) if compared.known else None,
        ordinary=_ordinary(settings, usable, finalists, figures),
        next_step=next_step,
        is_exact=is_exact,
    )


def _ordinary(
    settings: Mapping[int, Setting],
    usable: Mapping[int, Measured],
    finalists: Sequence[int],
    figures: Sequence[str],
) -> int | None:
    """The best setting that needs no marks: of the finalists, else of all."""

    def is_ordinary(index: int) -> bool:
        return settings[index].point.parameters.nic.coalescing in ORDINARY

    if is_ordinary(finalists[0]):
        return None
    for index in finalists:
        if is_ordinary(index):
            return index
    others = {index: each for index, each in usable.items() if is_ordinary(index)}
    return next(iter(ranked(others, figures)), None)
