"""Nightly tests: each is in one part of them, and what a run of the suite keeps is spread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.nights import due, part_of_nights

WEEK = 7


class Case:
    """A test as collected, with its marker."""

    path = Path("test_it.py")

    def __init__(self, name: str, **marker: Any) -> None:
        self.name, self.nodeid = name, f"test_it.py::{name}"
        self.originalname = name.partition("[")[0]
        self.marker = pytest.mark.nightly("a reason", **marker).mark if marker else None

    def get_closest_marker(self, name: str) -> Any:
        assert name == "nightly"
        return self.marker


def names(cases: Any) -> list[str]:
    return sorted(case.nodeid.partition("::")[2] for case in cases)


@pytest.mark.parametrize("text", ["7/7", "-1/7", "1", "a/b", "0/0", ""])
def test_a_part_is_one_of_several(text: str) -> None:
    with pytest.raises(ValueError, match=r"part|literal|unpack"):
        part_of_nights(text)


@pytest.mark.parametrize("but", [0, 1, 2, 5, 12, 20])
def test_a_week_runs_what_the_suite_leaves_once(but: int) -> None:
    cases: list[Any] = [Case(f"test_some[{number}]", but=but) for number in range(12)]
    daily = due(cases, None)
    nights = [due(cases, (part, WEEK)) for part in range(WEEK)]
    assert len(daily) == min(but, 12)
    assert names(case for some in (daily, *nights) for case in some) == names(cases)


def test_engines_that_take_turns_are_both_kept() -> None:
    cases: list[Any] = [
        Case(f"test_some[{number}-{engine}]", but=2)
        for number in range(4)
        for engine in ("forked", "simulated")
    ]
    assert names(due(cases, None)) == ["test_some[0-forked]", "test_some[2-simulated]"]


def test_a_group_is_in_one_part() -> None:
    cases: list[Any] = [Case(f"test_page[{number}]", group="a page") for number in range(30)]
    others: list[Any] = [Case("test_daily")]
    assert due(cases + others, None) == set(others)
    assert sorted(len(due(cases + others, (part, WEEK))) for part in range(WEEK)) == [0] * 6 + [30]
