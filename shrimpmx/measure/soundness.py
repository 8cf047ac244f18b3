"""Whether a stored result has the shape that reports, verdicts and plots rely on.

A result is a file, and files get damaged or edited: each check gives one sentence about the first
flaw, so that nothing behind it has to look again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

# Beyond any figure that a run can give; sums of such figures still fit a float (ours).
LARGEST = 1e18

_Check = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Whether it is a finite number, and no truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -LARGEST < value < LARGEST and not math.isnan(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_optional_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_number, value))


def _is_interval(value: Any) -> bool:
    return _are_numbers(value) and len(value) == 2


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _is_disturbance(value: Any) -> bool:
    return isinstance(value, bool) or _is_count(value)


def _are_repeats(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(part, dict) and _is_text(part.get("state")) and _is_count(part.get("count"))
        for part in value
    )


_RUN: dict[str, tuple[_Check, str]] = {
    "scenario": (_is_text, "a name"),
    "title": (_is_text, "a text"),
    "source": (_is_text, "a text"),
    "shows": (_is_text, "a text"),
    "environment": (_is_object, "an object"),
    "parameters": (_is_object, "an object"),
    "set": (_are_texts, "a list of settings"),
    "layout": (_is_object, "an object"),
}
_LAYOUT: dict[str, tuple[_Check, str]] = {
    "rows": (_is_optional_text, "an axis"),
    "columns": (_is_optional_text, "an axis"),
    "axes": (_are_texts, "a list of axes"),
}
_POINT: dict[str, tuple[_Check, str]] = {
    "params": (_is_object, "an object"),
    "metrics": (_is_object, "an object"),
    "state": (_is_text, "a state of the CPUs"),
    "states": (_are_texts, "a list of states"),
    "limits": (_are_texts, "a list of reasons"),
    "disturbed": (_is_disturbance, "a count, or of one run a yes or no"),
    "time_dilation": (_is_positive, "a number above 0"),
}
_METRIC: dict[str, tuple[_Check, str]] = {
    "unavailable": (_is_text, "a reason"),
    "samples": (_are_numbers, "a list of numbers"),
    "median": (is_number, "a number"),
    "ci95": (_is_interval, "two numbers"),
    "repeats": (_are_repeats, "a list of states and counts"),
    "state": (_is_text, "a state of the CPUs"),
    "scaled": (_is_object, "an object"),
}


def run_flaw(run: Mapping[str, Any]) -> str | None:
    """What is wrong with the head of a result, in a few words; None if it is sound."""
    flaw = _flaw(run, _RUN, "")
    return flaw or _flaw(run.get("layout", {}), _LAYOUT, "layout's ")


def point_flaw(point: Mapping[str, Any]) -> str | None:
    """What is wrong with a point, in a few words; None if it is sound."""
    flaw = _flaw(point, _POINT, "a point's ")
    if flaw:
        return flaw
    found = (_metric_flaw(name, metric) for name, metric in point["metrics"].items())
    return next((flaw for flaw in found if flaw), None)


def _metric_flaw(name: str, metric: Any) -> str | None:
    if not isinstance(metric, dict) or not ("unavailable" in metric or "samples" in metric):
        return f"metric {name!r} has neither samples nor a reason"
    owner = f"metric {name!r}: "
    flaw = _flaw(metric, _METRIC, owner)
    if flaw:
        return flaw
    for figures in (metric, metric.get("scaled")):
        if figures is not None and ("median" in figures) != ("ci95" in figures):
            return f"metric {name!r} has a median or an interval alone"
    repeats = metric.get("repeats")
    if repeats and sum(part["count"] for part in repeats) != len(metric.get("samples", ())):
        return f"metric {name!r} has other samples than its repeats count"
    return _flaw(metric.get("scaled", {}), _METRIC, f"{owner}scaled ")


def _flaw(
    values: Mapping[str, Any], checks: Mapping[str, tuple[_Check, str]], owner: str
) -> str | None:
    for key, (check, wanted) in checks.items():
        if key in values and not check(values[key]):
            return f"{owner}{key!r} is not {wanted}"
    return None
