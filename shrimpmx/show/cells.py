"""Figures as the cells of a table, and the line that explains their signs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from shrimpmx.results.metrics import shown_figures
from shrimpmx.results.runs import ANY, is_exact, main_state, runs_of
from shrimpmx.results.statistics import PERCENTILES, Summary
from shrimpmx.results.words import number_words
from shrimpmx.show.notes import MARK

# Follows a figure that has no interval.
ONE_SAMPLE = "°"
# What a table's legend says of each sign that occurs in it.
LEGEND = {
    "±": "± half of the 95 % interval",
    r"\[-?\d": "[low, high] the 95 % interval, where it is lopsided",
    ONE_SAMPLE: f"{ONE_SAMPLE} one figure from a single run: no interval",
    r"\*": "* measured at another distance of the CPUs than most",
    "—": "— no figure",
    r"\b(near|far|mixed)\b": (
        "near, far: distance of the CPUs, by a cache line's round trip; mixed: it changed meanwhile"
    ),
}


def legend(texts: Iterable[str]) -> str:
    """One line on those signs that occur in `texts`; '' if none does."""
    whole = "\n".join(texts)
    return "; ".join(words for sign, words in LEGEND.items() if re.search(sign, whole))


def summary_of(metric: Mapping[str, Any]) -> Summary | None:
    """Median and interval of a metric of a point, or None if it is not available."""
    if "unavailable" in metric:
        return None
    shown = shown_figures(metric)
    low, high = shown["ci95"]
    count = sum(run.size for run in runs_of(metric, metric.get("state")))
    return Summary(shown["median"], low, high, count, is_exact(metric))


def cell_words(
    metric: Mapping[str, Any] | None,
    usual_state: str | None = None,
    limited: bool = False,
    between: str = " ",
) -> str:
    """A table cell: the median and its 95 % interval, if that is more than nothing.

    The interval is ± half of its width, or [low, high], `between` before it, where that would
    misstate it. A degree sign follows the only figure of a single run, a star what was measured in
    another state of the CPUs than the usual one, a mark of its own a time that is `limited`: that
    the placement does not allow.
    """
    summary = summary_of(metric) if metric is not None else None
    if metric is None or summary is None:
        return "—"
    return figure_words(summary, _marks(metric, usual_state, limited), between)


def figure_words(summary: Summary, marks: str = "", between: str = " ") -> str:
    """A median with its interval and its `marks`, as in a cell."""
    words = number_words(summary.median)
    decimals = len(words.partition(".")[2])
    least = max(0.005 * abs(summary.median), 0.5 * 10**-decimals)
    if summary.half_width < least:
        return words + ONE_SAMPLE * (summary.count == 1 and not summary.exact) + marks
    if summary.is_lopsided:
        ends = f"[{number_words(summary.low)}, {number_words(summary.high)}]"
        return f"{words}{marks}{between}{ends}"
    return f"{words} ±{summary.half_width:,.{decimals}f}{marks}"


def tail_words(
    metric: Mapping[str, Any] | None,
    usual_state: str | None = None,
    limited: bool = False,
    between: str = " ",
) -> str:
    """A cell of the percentiles and the longest of a metric's samples, `between` the last two."""
    shown = shown_figures(metric) if metric is not None else {}
    if metric is None or "max" not in shown:
        return "—"
    *first, longest = [number_words(shown[name]) for name in (*PERCENTILES, "max") if name in shown]
    return f"{' / '.join(first)} /{between}{longest}" + _marks(metric, usual_state, limited)


def tail_title(metrics: Iterable[Mapping[str, Any]]) -> str:
    """What such cells hold, of these metrics: "p99 / p99.9 / max"."""
    found = {name for metric in metrics for name in shown_figures(metric)}
    return " / ".join(name for name in (*PERCENTILES, "max") if name in found)


def _marks(metric: Mapping[str, Any], usual_state: str | None, limited: bool) -> str:
    return "*" * is_unusual(metric, usual_state) + MARK * limited


def is_unusual(metric: Mapping[str, Any], usual_state: str | None) -> bool:
    """Whether a figure was measured in another state of the CPUs than the usual one."""
    return usual_state is not None and metric.get("state", ANY) not in (ANY, usual_state)


def usual_state(document: Mapping[str, Any]) -> str | None:
    """The state that most points' times were taken in; None for a result without states.

    Where the distance is no matter there is none to be another one.
    """
    states = [point.get("state", ANY) for point in document["points"]]
    distances = [state for state in states if state != ANY]
    return main_state(distances) if distances else None
