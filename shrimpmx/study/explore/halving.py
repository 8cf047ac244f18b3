"""Successive halving: which setting runs next, until the time budget is spent."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence

from shrimpmx.study.explore.choice import OBJECTIVES, ranked
from shrimpmx.study.explore.measured import Comparison, Measured

# So many settings are halved no more: they run in turn, as long as they are close (ours).
FINALISTS = 3
# Runs of the best setting after which it may be called settled; and the most of one (ours).
SETTLED, RUNS_MOST = 5, 50


class Halving:
    """Chooses among settings by few runs of all of them and many of the best.

    Every setting runs once. Then the better half goes on, in rounds that share the time that is
    left: the fewer settings, the more often each runs. The last few run in turn while they cannot
    be told apart. Those to be compared run alternately, each lap in another order. A setting that
    has failed runs no more, and none is left behind because of one run whose figure may be noise.
    Where a lap of second runs gives no other figure than the first ones, nothing varies, and it
    ends (Jamieson and Talwalkar 2016; these three rules and those of the end are ours).

    Iteration gives the setting that is to run now; the caller runs it before it goes on, and
    says by `note` what that took; `measured` tells what all its runs gave, also those from before,
    which the caller notes as well. No run begins that would probably end behind `budget_s`, by the
    run of the same setting before it or the mean one; and none of a setting that has run so often
    as the `most`.
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
    ) -> None:
        self.settings = list(settings)
        self.measured = measured
        self.objective = objective
        self._clock = clock
        self._most = most
        self._budget_s = budget_s
        self._end: float | None = None
        self._random = random.Random(seed)
        self._took_s: dict[int, float] = {}
        # Whether a run was left out since too little of the budget was left for it.
        self.spent = False

    @property
    def is_exact(self) -> bool:
        """Whether settings ran again, and none of them gave another figure than before."""
        again = [each for each in self._usable(self.settings).values() if each.runs > 1]
        return bool(again) and not any(each.varies for each in again)

    @property
    def left_s(self) -> float:
        """What is left of the budget, which is spent from the first run on."""
        return self._budget_s if self._end is None else max(0.0, self._end - self._clock())

    def note(self, index: int, took_s: float) -> None:
        """What a run of a setting that did not fail took, from the start of its processes on."""
        self._took_s[index] = took_s

    def pending(self) -> list[int]:
        """The settings that have not run."""
        found = ((index, self.measured(index)) for index in self.settings)
        return [index for index, each in found if not (each.runs or each.failed)]

    def finalists(self) -> list[int]:
        """Those with the most runs of all, best first; empty if none is usable."""
        usable = self._usable(self.settings)
        most = max((each.runs for each in usable.values()), default=0)
        # Beside one that was alone in the last lap stand those of the laps before it.
        last = {i: each for i, each in usable.items() if 2 * each.runs >= most}
        return ranked(last, OBJECTIVES[self.objective])

    def __iter__(self) -> Iterator[int]:
        self._end = self._clock() + self._budget_s
        yield from self._lap(self.pending())
        alive = self._ranked(self.settings)
        while len(alive) > FINALISTS and not self.pending():
            alive = alive[: math.ceil(len(alive) / 2)]
            for _ in range(self._laps(alive)):
                before = self._runs(alive)
                yield from self._lap(alive)
                if self._runs(alive) == before or self.is_exact:
                    return
            again = self._doubtful(alive)
            yield from self._lap(again)
            alive = self._ranked([*alive, *again])[: len(alive)]
        while not self.pending():
            again = self._doubtful(alive)
            before = self._runs(self.settings)
            yield from self._lap([*self._close(alive), *again])
            if self._runs(self.settings) == before or self.is_exact:
                return
            alive += again

    def _lap(self, settings: Sequence[int]) -> Iterator[int]:
        """Each of them that may run once more, in random order."""
        order = list(settings)
        self._random.shuffle(order)
        for index in order:
            each = self.measured(index)
            if each.failed or each.runs >= self._most:
                continue
            if self._expected_s(index) > self.left_s or self.left_s == 0:
                self.spent = True
                continue
            yield index

    def _laps(self, alive: Sequence[int]) -> int:
        """How often each of them runs in a round: its share of the time that is left; once where
        nothing tells how long a run takes.
        """
        rounds = 1 + math.ceil(math.log2(max(1.0, len(alive) / FINALISTS)))
        lap_s = sum(map(self._expected_s, alive))
        return max(1, int(self.left_s / rounds / lap_s) if lap_s > 0 else 1)

    def _close(self, alive: Sequence[int]) -> list[int]:
        """Those that run once more: all that cannot be told apart from the best; none once it is
        settled that only one is the best.
        """
        usable = self._usable(alive)
        if not usable:
            return []
        compared = Comparison(usable, OBJECTIVES[self.objective][0])
        least = usable[compared.leader].runs
        tied = compared.tied()
        if least >= SETTLED and len(tied) == 1:
            return []
        return tied if least >= SETTLED else list(usable)

    def _doubtful(self, alive: Sequence[int]) -> list[int]:
        """Those left behind after a single run that, by the noise of all, could be the best."""
        usable = self._usable(self.settings)
        if not usable:
            return []
        tied = Comparison(usable, OBJECTIVES[self.objective][0]).tied()
        return [index for index in tied if usable[index].runs == 1 and index not in alive]

    def _expected_s(self, index: int) -> float:
        took = self._took_s
        mean = sum(took.values()) / len(took) if took else 0.0
        return took.get(index, mean)

    def _runs(self, settings: Sequence[int]) -> int:
        return sum(self.measured(index).runs for index in settings)

    def _usable(self, settings: Sequence[int]) -> dict[int, Measured]:
        found = {index: self.measured(index) for index in settings}
        return {index: each for index, each in found.items() if each.usable}

    def _ranked(self, settings: Sequence[int]) -> list[int]:
        return ranked(self._usable(settings), OBJECTIVES[self.objective])
