"""The bar of `shrimpmx validate`: each point of each turn, by its kind."""

from __future__ import annotations

from typing import Any

import pytest

from shrimpmx.cli import validate
from shrimpmx.experiment.progress import Quiet
from shrimpmx.experiment.validation.families import FAMILIES


class Pairs:
    """A validation of the first point of each kind, which takes no runs."""

    def __init__(self, *families: Any) -> None:
        points = [(family, family.points()[0]) for family in families]
        self.pairs = [Pair(family, point) for family, point in points]
        self.taken: list[tuple[Any, ...]] = []

    def take(self, pair: Any, number: int, engines: Any = ()) -> None:
        self.taken.append((pair.family.name, number, *engines))

    def lacking(self, count: int) -> list[Any]:
        """The first point, until it has been taken once more than it was to be."""
        return self.pairs[:1] if len(self.taken) == count * len(self.pairs) else []


class Pair:
    def __init__(self, family: Any, real: Any) -> None:
        self.family, self.real = family, real


class Drawn(Quiet):
    """A bar that keeps what it is told."""

    def __init__(self, _name: str, axes: list[str]) -> None:
        super().__init__()
        self.axes, self.told = axes, list[Any]()
        LAST.append(self)

    def begin(self, total: int, done: int) -> None:
        self.told.append((total, done))

    def running(self, plan: Any, position: str) -> None:
        self.told.append((plan.point.shown["size_bytes"], position))

    def end(self) -> None:
        self.told.append("end")


LAST: list[Drawn] = []


def test_the_bar_tells_each_point_by_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "progress_for", Drawn)
    found: Any = Pairs(FAMILIES[0], FAMILIES[1])
    validate._take_turns(found, 2)
    names = [family.name for family in FAMILIES[:2]]
    turns = [(name, turn) for turn in range(2) for name in names]
    assert found.taken == [*turns, (names[0], 2, "real")]
    assert LAST[-1].axes == ["size_bytes", "coalescing"]
    assert LAST[-1].told == [
        (4, 0),
        *[(0, f"{name} in turn {turn} of 2") for turn in (1, 2) for name in names],
        (0, f"{names[0]} again"),
        "end",
    ]
