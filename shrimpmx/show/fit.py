"""A fit in tables and sentences: its costs, its figures by group, and what it predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from shrimpmx.results.words import number_words

Document = Mapping[str, Any]


def costs_table(document: Document) -> Table:
    """Each cost with its interval, and whether the data tell it."""
    table = Table(title="Costs", title_justify="left", box=None)
    table.add_column("cost", no_wrap=True)
    for head in (f"on {document['base']}", "fitted", "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("")
    for one in document["costs"]:
        table.add_row(
            one["name"],
            number_words(one["begun_with"]),
            number_words(one["value"]),
            _interval(one),
            "" if one["determined"] else "left open by the data",
        )
    return table


def figures_table(document: Document) -> Table:
    """Each figure, measured and simulated."""
    table = Table(title="Figures", title_justify="left", box=None)
    for head in ("group", "settings", "metric"):
        table.add_column(head, overflow="fold")
    for head in ("measured", "simulated", "ratio", "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in document["measurements"]:
        table.add_row(
            one["group"],
            " ".join(f"{name}={value}" for name, value in one["settings"].items()),
            one["metric"],
            number_words(one["measured"]),
            number_words(one["simulated"]),
            f"{one['simulated'] / one['measured']:.2f}",
            _interval(one),
        )
    return table


def sentences(document: Document) -> Iterator[str]:
    """What else a reader has to know."""
    yield (
        f"beyond the measurements' uncertainty figures differ by "
        f"{document['model_deviation']:.1%} from what hosts with these costs give "
        f"({document['simulated_runs']} simulated runs)"
    )
    for one, other, correlation in document["trade_offs"]:
        sense = "more of one for less of the other" if correlation < 0 else "only their ratio"
        yield f"{one} and {other} trade off: {sense} explains the data as well"
    found = document["held_out"]
    if not found:
        yield "one group only: nothing was left out, so nothing says how well the fit predicts"
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
                f"  {name}: median error {each['median_error']:.1%}, "
                f"{each['orders_kept']} of {each['orders']} orders of settings kept"
            )
    best = min(errors, key=lambda name: errors[name])
    if best != next(iter(errors)):
        yield f"{best} predicts these groups better than the fitted hosts: use it for such figures"


def _interval(one: Mapping[str, Any]) -> str:
    return " to ".join(map(number_words, one["interval95"]))
