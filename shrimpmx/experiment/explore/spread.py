"""An order of settings of which every beginning is spread over the grid."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

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
