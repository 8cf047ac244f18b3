"""The samples of a result as a tidy table: one row per sample, one column per parameter, no
value in a heading.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from shrimpmx.native.streams import shown
from shrimpmx.results.metric import shown_figures

# What begins a formula.
_FORMULAS = ("=", "+", "-", "@", "\t")
# Behind the parameters; no parameter has one of these names.
FIGURE_COLUMNS = ("metric", "unit", "run", "state", "sample", "value", "raw")


def columns_of(document: Mapping[str, Any]) -> list[str]:
    """The columns of a result's table: the parameters that its points tell, then the figures'."""
    names = dict.fromkeys(name for point in document["points"] for name in point["params"])
    return [*names, *FIGURE_COLUMNS]


def rows_of(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each sample of each metric of each point; a metric without samples has none.

    `run` counts the runs of the point that gave this metric, `sample` the samples of the run, both
    from 0. `raw` is what was measured, `value` that of the emulated hosts, in `unit`.
    """
    for point in document["points"]:
        for name, metric in point["metrics"].items():
            scale = shown_figures(metric).get("scale", 1.0)
            head = {**point["params"], "metric": name, "unit": metric.get("unit", "")}
            for run, state, number, raw in _samples(metric):
                place = {"run": run, "state": state, "sample": number}
                yield {**head, **place, "value": raw * scale, "raw": raw}


def _samples(metric: Mapping[str, Any]) -> Iterator[tuple[int, str, int, float]]:
    """Run, state of the CPUs, number within the run, and figure of each sample."""
    samples = metric.get("samples", [])
    first = 0
    for run, part in enumerate(
        metric.get("repeats") or [{"state": "unknown", "count": len(samples)}]
    ):
        for number, raw in enumerate(samples[first : first + part["count"]]):
            yield run, part["state"], number, raw
        first += part["count"]


def csv_of(document: Mapping[str, Any]) -> str:
    """The table as CSV (RFC 4180) with a line of headings; a list's values stand between commas.
    Texts are as of shown(), and none is a spreadsheet's formula.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns_of(document), restval="", lineterminator="\r\n")
    writer.writerow({name: _plain(name) for name in writer.fieldnames})
    for row in rows_of(document):
        writer.writerow({name: _plain(value) for name, value in row.items()})
    return text.getvalue()


def _plain(value: Any) -> Any:
    """A value as a cell has it; of a text that a spreadsheet would compute, a quotation."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    if not isinstance(value, str):
        return value
    text = shown(value)
    return f"'{text}" if text.startswith(_FORMULAS) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
