"""A race of settings: which one runs next, until it is settled or the budget is spent."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from shrimpmx.experiment.explore.measured import (
    AGAIN_LEAST,
    OBJECTIVES,
    Comparison,
    Measured,
    all_exact,
    believed,
)

# Runs of settings after which it may be settled which are best; and the most of one (ours).
SETTLED, RUNS_MOST = 5, 50
# The one with the least median has run so often at the end, whatever the budget.
LEADER_RUNS = 2
# A recommendation is one of so many settings at least.
TRIED_LEAST = 2
# The share of a budget that first runs may take where it is too short for all of them (ours).
FIRST_SHARE = 2 / 3
# Settings that have not run may take so many times as long as the mean of the others (ours).
SPARE = 1.5


class Race:
    """Chooses among settings by a run of each, in their order, and more runs of those that may be
    best.

    A setting is out as long as it is surely worse than the best one (Comparison.contenders); all
    others run in turn, until it is settled, each has run as often as the `most`, or the budget is
    spent (racing, Maron and Moore 1994; what is sure, and the rules below, are ours). Where the
    budget is too short for first runs of all and more of the best, first runs end early. The leader
    never ends with a single run. Settings whose figures are exact run once, but for the leader
    of a program, whose second run shows whether the program itself draws.

    Iteration gives the setting that is to run now; the caller runs it before it goes on, and says
    by `note` what that took; `measured` tells what all its runs gave, also those from before, which
    the caller notes as well. No run begins that would probably end behind `budget_s`, by the run of
    the same setting before it or the mean one, but for the leader's second. `tries_all`: first runs
    are made whatever is left of the budget.
    """

    def __init__(
        self,
        settings: Sequence[int],
        measured: Callable[[int], Measured],
        objective: str,
        budget_s: float,
        clock: Callable[[], float] = time.monotonic,
        seed: int = 1,
        most: int = RUNS_MOST,
        tries_all: bool = False,
    ) -> None:
        self.settings = list(settings)
        self.measured = measured
        self._figure = OBJECTIVES[objective][0]
        self._clock = clock
        self._most = most
        self._budget_s = budget_s
        self._tries_all = tries_all
        self._end: float | None = None
        self._random = random.Random(seed)
        self._took_s: dict[int, float] = {}
        # Whether a run was left out since too little of the budget was left for it.
        self.spent = False

    @property
    def is_exact(self) -> bool:
        """Whether no further run would give another figure."""
        return all_exact(self.usable().values())

    @property
    def left_s(self) -> float:
        """What is left of the budget, which is spent from the first run on."""
        return self._budget_s if self._end is None else max(0.0, self._end - self._clock())

    @property
    def run_s(self) -> float:
        """What a run takes, in the mean; 0 if none has ended."""
        return sum(self._took_s.values()) / len(self._took_s) if self._took_s else 0.0

    def note(self, index: int, took_s: float) -> None:
        """What a run of a setting that did not fail took, from the start of its processes on."""
        self._took_s[index] = took_s

    def pending(self) -> list[int]:
        """The settings that have not run."""
        found = ((index, self.measured(index)) for index in self.settings)
        return [index for index, each in found if not (each.runs or each.failed)]

    def usable(self) -> dict[int, Measured]:
        """The settings that have figures."""
        found = {index: self.measured(index) for index in self.settings}
        return believed({index: each for index, each in found.items() if each.usable})

    def wanted_s(self) -> float:
        """A budget that suffices for first runs of all settings that have not run, which may take
        longer than those that have.
        """
        return len(self.pending()) * SPARE * self.run_s / FIRST_SHARE

    def __iter__(self) -> Iterator[int]:
        self._end = self._clock() + self._budget_s
        yield from self._first_runs()
        if len(self.settings) - len(self.pending()) < min(TRIED_LEAST, len(self.settings)):
            return
        yield from self._leader_again()
        while not self.is_exact:
            before = self._runs()
            contenders = self._contenders()
            yield from self._lap(contenders)
            yield from self._leader_again()
            if self._runs() == before:
                return

    def _first_runs(self) -> Iterator[int]:
        tried = len(self.settings) - len(self.pending())
        for index in self.pending():
            # One more run of the best is to come.
            wanted_s = 2 * self.run_s
            if tried >= TRIED_LEAST:
                wanted_s = max(wanted_s, self.run_s + (1 - FIRST_SHARE) * self._budget_s)
            is_short = self.left_s == 0 or (wanted_s > self.left_s and not self._tries_all)
            if is_short and tried > 0:
                self.spent = True
                return
            yield index
            tried += 1

    def _leader_again(self) -> Iterator[int]:
        """The leader has to show its figure twice, even if that takes longer than the budget."""
        while usable := self.usable():
            leader = min(usable, key=lambda index: usable[index].median(self._figure))
            runs = usable[leader].runs
            is_sure = usable[leader].exact and not usable[leader].is_program
            if is_sure or runs >= min(LEADER_RUNS, self._most):
                return
            assert self._end is not None
            self._end = max(self._end, self._clock() + 2 * self._expected_s(leader))
            yield leader
            again = self.measured(leader)
            if again.runs == runs and not again.failed:
                return

    def _contenders(self) -> list[int]:
        """Those that run once more: a few of the least medians until the noise is known, then all
        that may be best; none once it is settled which are.
        """
        usable = {
            index: each
            for index, each in self.usable().items()
            if each.runs < self._most and not each.exact
        }
        if not usable:
            return []
        compared = Comparison(self.usable(), self._figure)
        if not compared.known:
            fewest = sorted(usable, key=lambda i: (usable[i].runs, compared.medians[i]))
            return fewest[:AGAIN_LEAST]
        contenders = [index for index in compared.contenders() if index in usable]
        enough = all(usable[index].runs >= SETTLED for index in contenders)
        return [] if enough and compared.are_alike(contenders) else contenders

    def _lap(self, settings: Sequence[int]) -> Iterator[int]:
        """Each of them, as far as the budget goes: in random order, or else the best first."""
        order = list(settings)
        self._random.shuffle(order)
        if sum(map(self._expected_s, order)) > self.left_s:
            order.sort(key=lambda index: self.measured(index).median(self._figure))
        for index in order:
            if self._expected_s(index) > self.left_s or self.left_s == 0:
                self.spent = True
                continue
            yield index

    def _expected_s(self, index: int) -> float:
        return self._took_s.get(index, self.run_s)

    def _runs(self) -> int:
        return sum(self.measured(index).runs for index in self.settings)


# Where a setting is, an entry for each axis.
Place = tuple[Any, ...]


def spread(places: Mapping[int, Place], seed: int = 1) -> list[int]:
    """The settings, each as far as possible from those before it (greedy maximin, Gonzalez 1985).

    Ties go to the one whose values have come least often so far, then by lot. The distance of two
    settings is the number of axes on which they differ; numbers that lie closer differ by less.
    """
    order = list(places)
    random.Random(seed).shuffle(order)
    lengths = _lengths(list(places.values()))
    nearest = dict.fromkeys(order, float("inf"))
    total = dict.fromkeys(order, 0.0)
    found: list[int] = []
    while nearest:
        index = max(nearest, key=lambda each: (nearest[each], total[each]))
        del nearest[index]
        found.append(index)
        for other in nearest:
            distance = _distance(places[index], places[other], lengths)
            nearest[other] = min(nearest[other], distance)
            total[other] += distance
    return found


def _lengths(places: Sequence[Place]) -> list[float]:
    """The length of each axis of numbers; 0 of others."""
    lengths = []
    for values in zip(*places, strict=True):
        numbers = [value for value in values if _is_number(value)]
        lengths.append(max(numbers) - min(numbers) if len(numbers) == len(values) else 0.0)
    return lengths


def _distance(one: Place, other: Place, lengths: Sequence[float]) -> float:
    return sum(
        abs(a - b) / length if length else float(a != b)
        for a, b, length in zip(one, other, lengths, strict=True)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
