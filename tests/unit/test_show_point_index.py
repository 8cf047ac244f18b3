"""Points by their place: an index finds what a look at each point finds."""

from __future__ import annotations

from typing import Any

import pytest

from shrimpmx.results.expectation import matching
from shrimpmx.show.axis_layout import PointIndex

VALUES = [0, 1, 1.0, True, None, "", "1", [1, 2], [1, 2.0], [], {"a": [1]}, {"a": [2]}]
POINTS: list[dict[str, Any]] = [
    *({"params": {"a": value, "b": number % 2}} for number, value in enumerate(VALUES)),
    {"params": {"b": 1}},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_it_finds_what_matches(value: Any) -> None:
    index = PointIndex(POINTS)
    for place in ({"a": value}, {"b": value}, {"b": 1, "a": value}, {"c": value}):
        assert index.find(place) == matching(POINTS, place)


def test_no_place_is_everywhere() -> None:
    assert PointIndex(POINTS).find({}) == POINTS
    assert PointIndex([]).find({"a": 1}) == []
