"""Tests marked `nightly`: cases of a rule that others show already, and take seconds on real
processes. They run in parts, by their names: all of them once in so many nights.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable

import pytest


def part_of_nights(text: str) -> tuple[int, int]:
    """The part that an option names, NUMBER/PARTS, of which 0 is the first. ValueError if it names
    none.
    """
    number, parts = map(int, text.split("/"))
    if not 0 <= number < parts:
        raise ValueError(f"{text}: a part is 0 to one less than there are")
    return number, parts


def due(items: Iterable[pytest.Item], part: tuple[int, int] | None) -> set[pytest.Item]:
    """The tests of this part of the nightly ones; without a part, those that are none of them.

    `nightly(reason, but=N)` leaves N cases of a test, evenly spread, to each run of the suite.
    Tests of one `group` need each other: they are in one part.
    """
    cases = defaultdict(list)
    for item in items:
        cases[item.path, getattr(item, "originalname", item.name)].append(item)
    found = set()
    for alike in cases.values():
        for number, item in enumerate(alike):
            marker = item.get_closest_marker("nightly")
            kept = marker.kwargs.get("but", 0) if marker else len(alike)
            daily = number in _spread(len(alike), kept)
            if part is None and daily:
                found.add(item)
            elif part is not None and not daily:
                name = marker.kwargs.get("group", item.nodeid) if marker else item.nodeid
                if part_of(name, part[1]) == part[0]:
                    found.add(item)
    return found


def _spread(cases: int, kept: int) -> set[int]:
    """So many cases of all; of two that take turns, such as engines, as many of each."""
    kept = min(kept, cases)
    apart = kept > 0 and cases // kept > 1
    return {case * cases // kept + case % 2 * apart for case in range(kept)}


def part_of(name: str, parts: int) -> int:
    """Which of so many parts the test of this name belongs to, the same everywhere."""
    return zlib.crc32(name.encode()) % parts
