"""Rows, columns and other axes of a result: as declared, or the best that there is."""

from __future__ import annotations

from typing import Any

import pytest

from shrimpmx.show.axis_layout import axis_layout

# n and wait vary, mode does not.
POINTS = [
    {"params": {"mode": "two-node", "n": n, "wait": wait}}
    for n in (1, 2)
    for wait in ("spin", "block")
]


def laid_out(*points: dict[str, Any], **declared: Any) -> tuple[Any, ...]:
    layout = axis_layout({"points": points or POINTS, "layout": declared})
    return layout.rows, layout.columns, layout.others


def test_axes_are_what_varies_and_what_is_declared() -> None:
    varying = {"n": [1, 2], "wait": ["spin", "block"]}
    assert axis_layout({"points": POINTS}).axes == varying
    with_mode = {"mode": ["two-node"], **varying}
    for declared in ({"rows": "mode"}, {"columns": "mode"}, {"axes": ["mode"]}):
        assert axis_layout({"points": POINTS, "layout": declared}).axes == with_mode


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"rows": "wait", "columns": "n"}, ("wait", "n", [])),
        ({"rows": "wait"}, ("wait", None, ["n"])),
        ({"columns": "n"}, ("wait", "n", [])),
        # Rows need something to compare, if there is any.
        ({"axes": ["mode"]}, ("n", None, ["mode", "wait"])),
        # Axes that the result does not have, or has elsewhere, are none.
        ({"rows": "size_bytes", "columns": "delay_us"}, ("n", None, ["wait"])),
        ({"rows": "n", "columns": "n"}, ("wait", "n", [])),
    ],
)
def test_rows_and_columns(declared: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert laid_out(**declared) == expected


def test_one_point_has_rows_only_if_an_axis_is_declared() -> None:
    point = {"params": {"mode": "two-node", "n": 1}}
    assert laid_out(point) == (None, None, [])
    assert laid_out(point, axes=["n", "mode"]) == ("mode", None, ["n"])
    assert laid_out(point, columns="n") == (None, "n", [])
