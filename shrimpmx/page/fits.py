"""A fit of hosts as part of a page: its document in words and pictures."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from shrimpmx.page.origin import flat, table_of_facts
from shrimpmx.page.published import Published, Table, read_published
from shrimpmx.results.json_file import PACKED
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.words import value_words
from shrimpmx.show.fit import COST_HEADS, FIGURE_HEADS, cost_rows, figure_rows, sentences
from shrimpmx.show.plot.chart import Axis, Chart, Panel, Series, Value
from shrimpmx.show.plot.draw import figures_of

FIT_FILE = "fit.json"
# A document that says so is one, whatever its file is called; it says so at its beginning.
_SAYS = re.compile(rb'\s*\{\s*"schema"\s*:\s*\d+\s*,\s*"kind"\s*:\s*"fit"')
_BEGINNING_BYTES = 256
NORMAL_95 = 1.96


class _Cost(BaseModel):
    name: str
    begun_with: float
    value: float
    interval95: tuple[float, float]
    determined: bool


class _Figure(BaseModel):
    group: str
    settings: dict[str, str]
    metric: str
    measured: float = Field(gt=0)
    uncertainty: float
    simulated: float = Field(gt=0)
    interval95: tuple[float, float]


class _Fit(BaseModel):
    base: str
    simulated_runs: int
    model_deviation: float
    costs: list[_Cost]
    trade_offs: list[tuple[str, str, float]]
    measurements: list[_Figure]
    held_out: dict[str, Any]
    origin: dict[str, Any] = {}
    next: list[dict[str, Any]] = []
    predictions: list[_Figure]


def is_fit(path: Path) -> bool:
    """Whether a file is a fit's document, by its name or its beginning."""
    name = path.name.removesuffix(PACKED)
    if name == FIT_FILE or not name.endswith(".json"):
        return name == FIT_FILE
    reader = gzip.open if path.name.endswith(PACKED) else open
    try:
        with reader(path, "rb") as file:
            return _SAYS.match(file.read(_BEGINNING_BYTES)) is not None
    except (OSError, EOFError, zlib.error):
        return False


def fit_in(path: Path) -> Published:
    """The fit in a file; InputError if it is none."""
    return published_of(read_published(path, "fit", _Fit).model_dump())


def published_of(document: Mapping[str, Any]) -> Published:
    """The part of a page for a fit's document."""
    predictions = figure_rows(document["predictions"])
    held_out = [Table("Each figure, predicted without its group", FIGURE_HEADS, predictions)]
    return Published(
        title="Hosts from measurements",
        made=f"{len(document['measurements'])} figures, begun with {document['base']}",
        lines=tuple(sentences(document)),
        tables=(
            Table("Costs", COST_HEADS, cost_rows(document)),
            Table("Each figure", FIGURE_HEADS, figure_rows(document["measurements"])),
            *(held_out if predictions else ()),
        ),
        origin=tuple(table_of_facts("Where it comes from", flat(document.get("origin", {})))),
        figures=tuple(figures_of(charts_of_fit(document))),
    )


def charts_of_fit(document: Mapping[str, Any]) -> Iterator[Chart]:
    """The figures by metric, fitted, and predicted without their group."""
    for key, what in (("measurements", "fitted"), ("predictions", "predicted without its group")):
        figures = document[key]
        for metric in dict.fromkeys(one["metric"] for one in figures):
            some = [one for one in figures if one["metric"] == metric]
            title = f"{metric}, measured (hollow) and {what}"
            yield Chart(f"{key}-{metric}", title, (_panel(title, metric, some),))


def _panel(title: str, metric: str, figures: Sequence[Mapping[str, Any]]) -> Panel:
    """A line for each group over the sizes of messages, and hollow the measured one."""
    sizes = sorted({_size(one) for one in figures})
    series = []
    for style, group in enumerate(dict.fromkeys(one["group"] for one in figures)):
        some = [one for one in figures if one["group"] == group]
        simulated = {
            sizes.index(_size(one)): Value(one["simulated"], *one["interval95"]) for one in some
        }
        measured = {
            sizes.index(_size(one)): _measured(one["measured"], one["uncertainty"]) for one in some
        }
        series.append(Series(group, simulated, style))
        series.append(Series(f"{group}, measured", measured, style, paper=True))
    axis = Axis(
        "message size",
        tuple(value_words("size_bytes", size) for size in sizes),
        tuple(math.log2(size + 16) for size in sizes),
        "lines",
    )
    return Panel(title, axis, f"{metric}, {METRICS[metric].unit}", tuple(series), log=True)


def _measured(value: float, uncertainty: float) -> Value:
    share = math.exp(NORMAL_95 * uncertainty)
    return Value(value, value / share, value * share)


def _size(figure: Mapping[str, Any]) -> int:
    return int(figure["settings"].get("size_bytes", "0"))
