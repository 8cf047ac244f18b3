"""Tasks share a CPU by the CPU time that each has had, as in Linux 2.6.23 to 6.5 (CFS)."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

NICE_0_WEIGHT = 1024
# Of nice values by Linux: each step is about a tenth of the CPU.
WEIGHTS = {0: NICE_0_WEIGHT, 19: 15}


class Weighted(Protocol):
    """What shares a CPU."""

    weight: int


Item = TypeVar("Item", bound=Weighted)


class FairQueue(Generic[Item]):
    """Those that want the CPU. The one that has had the least comes first, by weighted time.

    Who comes anew, or has slept, is set back no further than to the least of the others.
    """

    def __init__(self) -> None:
        self._waiting: list[Item] = []
        self._had: dict[Item, float] = {}  # virtual run time, ns
        self._least = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, item: Item) -> None:
        """It wants the CPU."""
        self._had[item] = max(self._had.get(item, 0.0), self._least)
        self._waiting.append(item)

    def take(self) -> Item:
        """The one whose turn it is."""
        item = min(self._waiting, key=lambda each: self._had[each])
        self._waiting.remove(item)
        self._least = max(self._least, self._had[item])
        return item

    def charge(self, item: Item, ran_ns: int, weight: int) -> None:
        """It has had the CPU for so long."""
        self._had[item] = self._had.get(item, 0.0) + ran_ns * NICE_0_WEIGHT / weight

    def precedes(self, waking: Item, running: Item, granularity_ns: int) -> bool:
        """Whether one that wakes takes the CPU from the running one at once."""
        ahead = self._had.get(running, 0.0) - self._had[waking]
        return ahead > granularity_ns * NICE_0_WEIGHT / waking.weight
