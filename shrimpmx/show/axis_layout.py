"""Which axes a result has, and which are rows and columns: the same in tables and in charts;
points found by their place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AxisLayout:
    """The axes of a result with their values, in order of appearance.

    `rows` and `columns` are axes, or None for want of one; `others` is the rest of them.
    """

    axes: Mapping[str, list[Any]]
    rows: str | None
    columns: str | None

    @property
    def others(self) -> list[str]:
        """The axes that are neither rows nor columns."""
        return [axis for axis in self.axes if axis not in (self.rows, self.columns)]


def axis_layout(document: Mapping[str, Any]) -> AxisLayout:
    """Rows and columns as the scenario says, where the result has these axes.

    Other rows are the first axis with something to compare, or the first that is left.
    """
    declared = document.get("layout", {})
    rows, columns = declared.get("rows"), declared.get("columns")
    axes = _axes(document["points"], [rows, columns, *declared.get("axes", ())])
    columns = columns if columns in axes else None
    rest = [axis for axis in axes if axis != columns]
    if rows not in rest:
        rows = max(rest, key=lambda axis: len(axes[axis]) > 1, default=None)
    return AxisLayout(axes, rows, columns)


def _axes(points: Sequence[Mapping[str, Any]], declared: Sequence[Any]) -> dict[str, list[Any]]:
    """The parameters that differ between points, and those declared, whatever their values."""
    found: dict[str, list[Any]] = {}
    for point in points:
        for name, value in point["params"].items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return {name: values for name, values in found.items() if len(values) > 1 or name in declared}


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
