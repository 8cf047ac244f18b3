"""A fit in tables and sentences: costs, figures by group, and predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from shrimpmx.costs.table import COSTS
from shrimpmx.results.words import number_words

Document = Mapping[str, Any]
Rows = tuple[tuple[str, ...], ...]

COST_HEADS = ("cost", "before", "fitted", "95 % interval", "")
FIGURE_HEADS = ("group", "settings", "metric", "measured", "simulated", "ratio", "95 % interval")
OPEN = "left open by the data"
# The model's own deviation from which on a platform is of no use (ours).
POOR = 0.3


def cost_rows(document: Document) -> Rows:
    """Each cost with its interval, and whether the data tell it; by COST_HEADS."""
    return tuple(
        (
            f"{one['name']}, {_unit(one['name'])}",
            number_words(one["begun_with"]),
            number_words(one["value"]),
            _interval(one),
            "" if one["determined"] else OPEN,
        )
        for one in document["costs"]
    )


def figure_rows(figures: Sequence[Document]) -> Rows:
    """Each figure, measured and simulated; by FIGURE_HEADS."""
    return tuple(
        (
            one["group"],
            " ".join(f"{name}={value}" for name, value in one["settings"].items()),
            one["metric"],
            number_words(one["measured"]),
            number_words(one["simulated"]),
            f"{one['simulated'] / one['measured']:.2f}",
            _interval(one),
        )
        for one in figures
    )


def table_of(title: str, heads: Sequence[str], rows: Rows) -> Table:
    """Rows under their heads; figures to the right."""
    table = Table(title=title, title_justify="left", box=None)
    for head in heads:
        is_word = head in ("cost", "group", "settings", "metric", "")
        table.add_column(
            head, justify="left" if is_word else "right", no_wrap=not is_word, overflow="fold"
        )
    for row in rows:
        table.add_row(*row)
    return table


def sentences(document: Document) -> Iterator[str]:
    """Notes for the reader, and first whether the hosts explain the measurements."""
    if document["model_deviation"] > POOR:
        yield (
            "these hosts do not explain the measurements: look for figures far from the simulated "
            "ones, and for costs or settings that are missing, before you use the platform"
        )
    yield (
        "apart from measurement uncertainty, measured and simulated figures differ by "
        f"{document['model_deviation']:.1%} ({document['simulated_runs']} simulated runs)"
    )
    for one, other, correlation in document["trade_offs"]:
        sense = "more of one for less of the other" if correlation < 0 else "only their ratio"
        yield f"{one} and {other} trade off: {sense} explains the data as well"
    yield from _next_lines(document.get("next", ()))
    found = document["held_out"]
    if not found:
        yield "one group only: none was left out, so the fit's predictions are unchecked"
        return
    yield (
        f"each group left out and predicted: {found['inside_interval95']} of {found['figures']} "
        "figures lie in their 95 % interval"
    )
    errors = {}
    for name, each in found.items():
        if isinstance(each, dict):
            errors[name] = each["median_error"]
            yield (
                f"{name}: median error {each['median_error']:.1%}, {each['orders_kept']} of "
                f"{each['orders']} orders of settings kept"
            )
    best = min(errors, key=lambda name: errors[name])
    if best != next(iter(errors)):
        yield f"{best} predicts these groups better than the fitted hosts: use it for such figures"


def _next_lines(steps: Sequence[Document]) -> Iterator[str]:
    """Which command would tell the costs that are open, the most of them first."""
    by_command: dict[str, list[str]] = {}
    for one in steps:
        gain = f" by {one['gain']:.0%}" if one["command"] else ""
        by_command.setdefault(one["command"], []).append(f"{one['cost']}{gain}")
    for command, costs in sorted(by_command.items(), key=lambda each: (not each[0], -len(each[1]))):
        if command:
            yield f"next: measure {command}; it narrows {', '.join(costs)}"
        else:
            yield f"no run of the recipe's kind narrows {', '.join(costs)}"


def _unit(key: str) -> str:
    """Of a cost by its key in a platform; times of hardware are in ns."""
    name = key.partition(".")[2]
    return COSTS[name].unit if name in COSTS else "ns"


def _interval(one: Document) -> str:
    return " to ".join(map(number_words, one["interval95"]))
