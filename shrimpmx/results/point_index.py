"""Points found by where they are: a sweep of thousands would otherwise be gone through for each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

PointData = Mapping[str, Any]


class PointIndex:
    """Some points; `find` gives those at a place, as `matching` does, in the same order."""

    def __init__(self, points: Iterable[PointData]) -> None:
        self._points = list(points)
        # By the parameters that a place has, and then by their values.
        self._found: dict[tuple[str, ...], dict[Hashable, list[PointData]]] = {}

    def find(self, place: Mapping[str, Any]) -> list[PointData]:
        """The points whose parameters have the values of `place`."""
        names = tuple(sorted(place))
        if names not in self._found:
            index: dict[Hashable, list[PointData]] = {}
            for point in self._points:
                index.setdefault(_key(point["params"], names), []).append(point)
            self._found[names] = index
        return self._found[names].get(_key(place, names), [])


def _key(values: Mapping[str, Any], names: Iterable[str]) -> Hashable:
    return tuple(_hashable(values.get(name)) for name in names)


def _hashable(value: Any) -> Hashable:
    """A value of JSON as one that equals another where the values do."""
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    if isinstance(value, Mapping):
        return frozenset((name, _hashable(each)) for name, each in value.items())
    plain: Hashable = value
    return plain
