"""Which axes a result has, and which are rows and columns: the same in tables and in charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
