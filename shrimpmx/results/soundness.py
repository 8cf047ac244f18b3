"""Whether a stored result has the shape that reports, verdicts and plots rely on.

A result is a file, and files get damaged or edited: each check gives one sentence about the first
flaw, so that nothing behind it has to look again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from shrimpmx.results.runs import STATES

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


def _are_parameters(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("platform", ""))


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


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_disturbance(value: Any) -> bool:
    return isinstance(value, bool) or _is_count(value)


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_count, value))


def _are_figures(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_number, value.values()))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_are_figures, value.values()))


def are_costs(value: Any) -> bool:
    """Whether they are what a result was made with: this machine's costs, ns by name."""
    return isinstance(value, dict) and all(map(_is_positive, value.values()))


def _is_state(value: Any) -> bool:
    return isinstance(value, str) and value in STATES


def _are_states(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_state, value))


def _are_distances(value: Any) -> bool:
    return isinstance(value, list) and all(each is None or is_number(each) for each in value)


def _is_placement(value: Any) -> bool:
    """Whether it has the parts that say what limits times of such a placement."""
    if not isinstance(value, dict):
        return False
    processes = value.get("processes", ())
    return isinstance(processes, list | tuple) and all(
        isinstance(process, dict) and _is_count(process.get("cpu")) for process in processes
    )


def _are_repeats(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(part, dict) and _is_state(part.get("state")) and _is_count(part.get("count"))
        for part in value
    )


COSTS_WORDS = "an object of costs in ns"
_RUN: dict[str, tuple[_Check, str]] = {
    "scenario": (_is_text, "a name"),
    "title": (_is_text, "a text"),
    "source": (_is_text, "a text"),
    "shows": (_is_text, "a text"),
    "environment": (_is_object, "an object"),
    "parameters": (_is_object, "an object"),
    "set": (_are_texts, "a list of settings"),
    "seed": (_is_seed, "a whole number from 0 on"),
    "costs": (are_costs, COSTS_WORDS),
    "layout": (_is_object, "an object"),
}
_LAYOUT: dict[str, tuple[_Check, str]] = {
    "rows": (_is_optional_text, "an axis"),
    "columns": (_is_optional_text, "an axis"),
    "axes": (_are_texts, "a list of axes"),
}
_POINT: dict[str, tuple[_Check, str]] = {
    "params": (_are_parameters, "an object of parameters"),
    "metrics": (_is_object, "an object"),
    "counters": (_is_table, "an object of counters by agent"),
    "accounts": (_is_table, "an object of figures by process"),
    "usage": (_is_table, "an object of figures by process"),
    "per_message": (_is_table, "an object of counters by agent"),
    "host_costs_ns": (_are_figures, "an object of costs in ns"),
    "state": (_is_state, "a state of the CPUs"),
    "states": (_are_states, "a list of states of the CPUs"),
    "limits": (_are_texts, "a list of reasons"),
    "disturbed": (_is_disturbance, "a count, or of one run a yes or no"),
    "steered": (_are_counts, "a list of nodes"),
    "time_dilation": (_is_positive, "a number above 0"),
    "impossible": (_is_text, "a reason"),
}
# What a single run has beside that, or in another form than a point.
_SINGLE: dict[str, tuple[_Check, str]] = {
    "cache_line_round_trip_ns": (_are_distances, "a list of times"),
    "placement": (_is_placement, "a placement of processes on CPUs"),
    "mode": (_is_text, "a mode"),
}
_SINGLE_KEYS = (*_SINGLE, "params", "metrics", "counters", "accounts", "usage", "state")
_METRIC: dict[str, tuple[_Check, str]] = {
    "unavailable": (_is_text, "a reason"),
    "samples": (_are_numbers, "a list of numbers"),
    "unit": (_is_text, "a unit"),
    "scale": (_is_positive, "a number above 0"),
    "median": (is_number, "a number"),
    "ci95": (_is_interval, "two numbers"),
    "repeats": (_are_repeats, "a list of states and counts"),
    "state": (_is_state, "a state of the CPUs"),
    "scaled": (_is_object, "an object"),
}


def run_flaw(run: Mapping[str, Any]) -> str | None:
    """What is wrong with the head of a result, in a few words; None if it is sound."""
    flaw = _flaw(run, _RUN, "")
    return flaw or _flaw(run.get("layout", {}), _LAYOUT, "layout's ")


def place_flaw(run: Mapping[str, Any]) -> str | None:
    """Whether each point of a result has a value of each axis; `run` is sound otherwise."""
    for axis in run.get("layout", {}).get("axes", ()):
        if any(axis not in point["params"] for point in run["points"]):
            return f"a point has no {axis!r}, which is an axis"
    return None


def point_flaw(point: Mapping[str, Any]) -> str | None:
    """What is wrong with a point, in a few words; None if it is sound."""
    flaw = _flaw(point, _POINT, "a point's ")
    if flaw:
        return flaw
    found = (_metric_flaw(name, metric) for name, metric in point["metrics"].items())
    return next((flaw for flaw in found if flaw), None) or _states_flaw(point)


def single_run_flaw(run: Mapping[str, Any]) -> str | None:
    """What is wrong with what is kept of one run of a sweep; None if it can be merged."""
    missing = next((key for key in _SINGLE_KEYS if key not in run), None)
    if missing is not None:
        return f"{missing!r} is missing"
    flaw = _flaw(run, _SINGLE, "a run's ") or point_flaw(run)
    empty = [] if flaw else [name for name, m in run["metrics"].items() if m.get("samples") == []]
    return f"metric {empty[0]!r} has no samples" if empty else flaw


def _states_flaw(point: Mapping[str, Any]) -> str | None:
    """Whether the metrics' repeats are of runs whose states the point has."""
    for name, metric in point["metrics"].items():
        repeats = [part["state"] for part in metric.get("repeats", ())]
        states = point.get("states", [])
        if any(repeats.count(state) > states.count(state) for state in repeats):
            return f"metric {name!r} has repeats of other states than the point's 'states'"
    return None


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
    flaw = _flaw(metric.get("scaled", {}), _METRIC, f"{owner}scaled ")
    if not flaw and "scaled" in metric and not {"median", "scale"} <= metric["scaled"].keys():
        return f"metric {name!r}: 'scaled' has no median or no scale"
    return flaw


def _flaw(
    values: Mapping[str, Any], checks: Mapping[str, tuple[_Check, str]], owner: str
) -> str | None:
    for key, (check, wanted) in checks.items():
        if key in values and not check(values[key]):
            return f"{owner}{key!r} is not {wanted}"
    return None
