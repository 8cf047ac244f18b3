"""What a validation found, as lines for a terminal or a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shrimpmx.experiment.validation.comparison import (
    COUNTS_WITHIN,
    TIMES_WITHIN,
    Compared,
    accuracy,
    reversed_pairs,
)
from shrimpmx.results.words import number_words

# Of a table with a line for each metric of each point, behind the point's parameters: words, then
# figures.
WORD_HEADS = ("metric", "on")
FIGURE_HEADS = ("real", "95 % interval", "simulated", "ratio", "95 % interval")
# Of a table with a line for each kind of points. How far off a time has to be to be counted there.
FAR_OFF = 0.10
KIND_HEADS = (
    "kind of points",
    "points",
    f"counts within {100 * COUNTS_WITHIN:.0f} %",
    "median error of times",
    f"more than {100 * FAR_OFF:.0f} % off",
    "largest error",
    "orders reversed",
)


def row_words(row: Compared) -> tuple[str, ...]:
    """A line below these heads."""
    return (
        f"{row.metric}, {row.unit}",
        row.model,
        number_words(row.real),
        " to ".join(map(number_words, row.real_ci95 or ())),
        number_words(row.simulated),
        "—" if row.ratio is None else f"{row.ratio:.2f}",
        " to ".join(f"{end:.2f}" for end in row.ratio_ci95 or ()),
    )


def kind_rows(rows: Sequence[Compared], axis: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Lines below KIND_HEADS, all points last; `axis`: what each family compares."""
    for name in (*dict.fromkeys(row.family for row in rows), ""):
        kind = [row for row in rows if name in ("", row.family)]
        found = accuracy(kind)
        errors = [row.error for row in kind if row.kind == "time"]
        certain, reversed_words = reversed_pairs(kind, dict(axis))
        yield (
            name or "all",
            str(found["points"]),
            f"{found['counts_within']} of {found['counts']}",
            f"{100 * found['median_error']:.1f} %" if errors else "—",
            f"{sum(error > FAR_OFF for error in errors)} of {len(errors)}",
            f"{100 * max(errors):.0f} %" if errors else "—",
            f"{len(reversed_words)} of {certain}",
        )


def failure_lines(failed: Sequence[dict[str, Any]]) -> list[str]:
    """Which points are left out since a run of them failed, and why."""
    return [
        f"failed, and left out: {each['family']} "
        + ", ".join(f"{name} {value}" for name, value in each["params"].items())
        + f": {each['reason']}"
        for each in failed
    ]


def summary_lines(found: dict[str, Any]) -> list[str]:
    """What came out in all, and how undisturbed it was."""
    lines = [
        f"{found['points']} points",
        f"counts: {found['counts_within']} of {found['counts']} within {COUNTS_WITHIN:.0%}; "
        f"without zeros and frames per message, {found['timed_counts_within']} of "
        f"{found['timed_counts']}",
    ]
    if found["certain_counts"]:
        lines.append(
            f"certain counts, on which real runs agree within {COUNTS_WITHIN:.0%}: "
            f"{found['certain_counts_within']} of {found['certain_counts']}"
        )
    if found["median_error"] is not None:
        lines.append(
            f"times: the median of {found['times']} errors is {found['median_error']:.1%} "
            f"(aim: {TIMES_WITHIN:.0%})"
        )
    if again := found.get("real_again"):
        error = again["median_error"]
        lines.append(
            f"baseline: two sets of real runs, at {again['points']} points, agree within "
            f"{COUNTS_WITHIN:.0%} on {again['counts_within']} of {again['counts']} counts and "
            f"{again['certain_counts_within']} of {again['certain_counts']} certain ones"
            + ("" if error is None else f", their times within {error:.1%} in the median")
        )
    for name, each in found["families"].items():
        error = each["median_error"]
        lines.append(
            f"  {name}: {each['points']} points, counts {each['counts_within']} of "
            f"{each['counts']}" + ("" if error is None else f", times {error:.1%}")
        )
    orders = found["orders_reversed"]
    lines.append(f"orders: {len(orders)} of {found['orders_certain']} certain ones reversed")
    lines += [f"  reversed: {words}" for words in orders]
    if found["left_aside"]:
        aside = ", ".join(f"{count} {state}" for state, count in found["left_aside"].items())
        lines.append(
            f"real runs excluded, since the calibration has the CPUs {found['state']}: {aside}; "
            f"points not compared, for want of other runs: {found['not_compared']}"
        )
    if found["disturbed"] + found["retaken"]:
        causes = ", ".join(f"{name} {count}" for name, count in found["disturbances"].items())
        lines.append(
            f"real runs disturbed from outside: {found['disturbed']} kept, {found['retaken']} "
            f"repeated ({causes})"
        )
    return lines
