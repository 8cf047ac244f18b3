"""From figures to places along an axis, and the figures that stand at it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

# Marks at an axis, about (ours).
TICKS = 5
# A logarithmic axis of fewer decades has marks between them, too (ours).
FEW_DECADES = 2


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, which lie at the places `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, figure: float) -> float:
        """Where a figure lies; one beyond an end lies at that end."""
        figure = min(max(figure, self.low), self.high)
        if self.log:
            share = math.log(figure / self.low) / math.log(self.high / self.low)
        else:
            share = (figure - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round figures between both ends; a short logarithmic axis has those of a linear one."""
        found = self._within(_decades(self.low, self.high)) if self.log else []
        return found if len(found) > 1 else self._within(_steps(self.low, self.high))

    def _within(self, figures: Iterable[float]) -> list[float]:
        slack = 1e-9 * (self.high - self.low)
        return [each for each in figures if self.low - slack <= each <= self.high + slack]


def scale_of(
    figures: Iterable[float],
    start: float,
    end: float,
    log: bool = False,
    room: float = 0.08,
    zero: bool = True,
) -> Scale:
    """The axis of some figures, with `room` behind the last as a share of it, and before the first
    one, too, unless a linear one begins at `zero`.
    """
    known = list(figures)
    if log:
        known = [figure for figure in known if figure > 0]
        low, high = min(known, default=1.0), max(known, default=10.0)
        factor = max(high / low, 1.5) ** room
        return Scale(low / factor, high * factor, start, end, True)
    low, high = min(known, default=0.0), max(known, default=1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    span = high - low or abs(high) or 1.0
    bottom = low - room * span if low < 0 or not zero else low
    return Scale(bottom, high + room * span, start, end)


def _steps(low: float, high: float) -> list[float]:
    """Multiples of a round step."""
    wished = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(wished))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= wished)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten, not too many of them; where there are few, with figures between."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits = (1, 2, 5) if last - first <= FEW_DECADES else (1,)
    stride = max(1, (last - first) // TICKS)
    powers = range(first, last + 1, stride)
    return [digit * 10.0**power for power in powers for digit in digits]
