"""What an exploration found: settings, their frontier, the recommended one and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shrimpmx.experiment.explore.advice import ORDINARY, Advice, advice_of, advice_on_marks
from shrimpmx.experiment.explore.measured import (
    FIGURES,
    OBJECTIVES,
    PARTS,
    SHARE,
    Comparison,
    Measured,
    all_exact,
    believed,
    deciding,
    frontier,
    ranked,
)
from shrimpmx.experiment.point import Point
from shrimpmx.results.statistics import Summary, summarise

# "As good as" in words on how sure a choice is: within 5 % of the best (ours).
NEAR = 1.05
# Whose figure may be chance is not recommended where others ran more often.
RECOMMENDED_RUNS = 2


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
    """Of all settings that have run, by number; there were `count` to run.

    `best` is the recommended one; `contenders`, with it in front and then by medians, are those
    that are not surely worse than the one with the least figure; `as_good` are those of them
    between which the other figures decided, in the end `decided_by`, "" if all tie. `chance`, 0 to
    1: how likely a contender has the least figure of all; `near`: how likely the recommended one
    has at most 5 % more than that; None where the noise is not known. `ordinary` is the best one
    that a NIC without marks can have, if that is another. `next_step`: what would tell contenders
    apart; `rest`: the command's options that run the settings that have not run. `is_exact`: no
    further run would give another figure.
    """

    objective: str
    count: int
    settings: Mapping[int, Setting]
    frontier: Sequence[int]
    best: int
    contenders: Sequence[int]
    as_good: Sequence[int]
    decided_by: str
    chance: float | None
    near: float | None
    ordinary: int | None
    next_step: str
    rest: str
    is_exact: bool

    @property
    def usable(self) -> list[Setting]:
        """Settings with figures."""
        return [each for each in self.settings.values() if each.measured.usable]

    @property
    def failed(self) -> list[Setting]:
        """Settings under which the program failed."""
        return [each for each in self.settings.values() if each.measured.failed]

    @property
    def marked(self) -> bool:
        """Whether figures are of sections that the program marks, and not of all its work."""
        return self.settings[self.best].measured.marked

    @property
    def share(self) -> float:
        """The share of a whole run, %, that figures refer to; of the recommended setting."""
        return self.settings[self.best].measured.median(SHARE)

    def ratio(self, index: int) -> float:
        """What was asked for, as so many times the least."""
        least = min(each.measured.median(self.objective) for each in self.usable)
        figure = self.settings[index].measured.median(self.objective)
        return figure / least if least > 0 else float(figure > 0) + 1.0

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
            "contenders": self._named(self.contenders),
            "as_good": self._named(self.as_good),
            "frontier": self._named(self.frontier),
            "chance_that_best_is_contender": self.chance,
            "chance_within_5_percent": self.near,
            "ordinary": None if self.ordinary is None else self._named([self.ordinary])[0],
            "exact": self.is_exact,
            "counted": "sections" if self.marked else "work",
            "share_of_run_percent": self.share,
            "settings_to_run": self.count,
            "settings": [_setting_dict(each) for each in self.settings.values()],
            "commands": [command for advice in self.advice() for command in advice.commands],
        }

    def _named(self, indices: Sequence[int]) -> list[str]:
        return [self.settings[index].name for index in indices]


def _setting_dict(setting: Setting) -> dict[str, Any]:
    found: dict[str, Any] = {"name": setting.name, "runs": setting.measured.runs}
    if setting.measured.failed:
        return {**found, "failed": setting.measured.failed}
    for figure in (*FIGURES, *PARTS):
        summary = setting.summary(figure)
        found[figure] = {"median": summary.median, "ci95": [summary.low, summary.high]}
    return found


def findings_of(
    points: Sequence[Point],
    measured: Callable[[int], Measured],
    name: Callable[[Point], str],
    objective: str,
    next_step: str,
    rest: str,
) -> Findings | None:
    """The findings of an exploration, `next_step` and `rest` as those of Findings; None if no
    setting has figures.
    """
    settings = {
        point.index: Setting(point.index, name(point), point, measured(point.index))
        for point in points
    }
    settings = {i: s for i, s in settings.items() if s.measured.runs or s.measured.failed}
    usable = believed({i: s.measured for i, s in settings.items() if s.measured.usable})
    if not usable:
        return None
    figures = OBJECTIVES[objective]
    compared = Comparison(usable, figures[0])
    firm = {i: e for i, e in usable.items() if _is_firm(e)}
    order = _order(usable, figures)
    is_exact = all_exact(usable.values())
    contenders = sorted(
        compared.contenders(), key=lambda index: (index != order[0], compared.medians[index])
    )
    is_known = compared.known and not is_exact
    return Findings(
        objective=objective,
        count=len(points),
        settings=settings,
        frontier=frontier(usable, order),
        best=order[0],
        contenders=contenders,
        as_good=Comparison(firm or usable, figures[0]).as_good(),
        decided_by=deciding(firm or usable, figures),
        chance=compared.chance(contenders) if is_known else None,
        near=compared.chance([order[0]], NEAR) if is_known else None,
        ordinary=_ordinary(settings, usable, order[0], figures),
        next_step=next_step,
        rest=rest,
        is_exact=is_exact,
    )


def _is_firm(setting: Measured) -> bool:
    return setting.exact or setting.runs >= RECOMMENDED_RUNS


def _order(usable: Mapping[int, Measured], figures: Sequence[str]) -> list[int]:
    """The settings, best first; those that ran once come last."""
    firm = {index: each for index, each in usable.items() if _is_firm(each)}
    single = {index: each for index, each in usable.items() if index not in firm}
    return ranked(firm, figures) + ranked(single, figures)


def _ordinary(
    settings: Mapping[int, Setting],
    usable: Mapping[int, Measured],
    best: int,
    figures: Sequence[str],
) -> int | None:
    """The best setting without marks, by the same rule; None if `best` is one, or there is none."""
    without = {
        index: each
        for index, each in usable.items()
        if settings[index].point.parameters.nic.coalescing in ORDINARY
    }
    if best in without or not without:
        return None
    return _order(without, figures)[0]
