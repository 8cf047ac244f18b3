"""The bar of `shrimpmx validate`: each point of each turn, by its kind."""

from __future__ import annotations

from typing import Any

from shrimpmx.experiment.progress import Quiet
from shrimpmx.experiment.validation.families import FAMILIES
from shrimpmx.experiment.validation.running import Pair, Validation


class Pairs(Validation):
    """A validation of the first point of each kind, which takes no runs."""

    def __init__(self, *families: Any) -> None:
        points = [(family, family.points()[0]) for family in families]
        self.pairs = [Pair(family, point, point) for family, point in points]
        self.taken: list[tuple[Any, ...]] = []

    def take(self, pair: Any, number: int, engines: Any = ()) -> None:
        self.taken.append((pair.family.name, number, *engines))

    def lacking(self, count: int) -> list[Any]:
        """The first point, until it has been taken once more than it was to be."""
        return self.pairs[:1] if len(self.taken) == count * len(self.pairs) else []


class Drawn(Quiet):
    """A bar that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told = list[Any]()

    def begin(self, total: int, done: int) -> None:
        self.told.append((total, done))

    def running(self, plan: Any, position: str) -> None:
        self.told.append((plan.point.shown["size_bytes"], position))

    def end(self) -> None:
        self.told.append("end")


def test_the_bar_tells_each_point_by_its_kind() -> None:
    found, drawn = Pairs(FAMILIES[0], FAMILIES[1]), Drawn()
    found.take_turns(2, drawn)
    names = [family.name for family in FAMILIES[:2]]
    turns = [(name, turn) for turn in range(2) for name in names]
    assert found.taken == [*turns, (names[0], 2, "real")]
    assert found.axes == ["size_bytes", "coalescing"]
    assert drawn.told == [
        (4, 0),
        *[(0, f"{name} in turn {turn} of 2") for turn in (1, 2) for name in names],
        (0, f"{names[0]} again"),
        "end",
    ]
