"""A metric of a result as tables of words: the same in a terminal and on a page."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shrimpmx.results.metrics import METRICS, shown_figures
from shrimpmx.results.words import (
    axis_title,
    heading_words,
    place_words,
    titled,
    unit_words,
    value_words,
)
from shrimpmx.show.axis_layout import AxisLayout, PointIndex, axis_layout
from shrimpmx.show.cells import cell_words, is_unusual, tail_title, tail_words, usual_state
from shrimpmx.show.notes import is_limited

Document = Mapping[str, Any]
PointData = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A figure in words; `best`: it is the best one of its row."""

    words: str
    best: bool = False


@dataclass(frozen=True)
class MetricTable:
    """One table: `corner` is what the rows' headings tell, '' if rows have none."""

    title: str
    corner: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]

    def words(self) -> list[str]:
        """What stands in its cells."""
        return [cell.words for _, cells in self.rows for cell in cells]


def in_one(tables: Sequence[MetricTable]) -> list[MetricTable]:
    """Tables of a single figure each as one, with a row for each; others as they are."""
    single = all(not t.corner and len(t.rows) == len(t.headings) == 1 for t in tables)
    if not single or len(tables) < 2:
        return list(tables)
    rows = tuple((table.title, table.rows[0][1]) for table in tables)
    return [MetricTable("Figures", "metric", ("figure",), rows)]


def metric_tables(document: Document, metric: str, between: str = " ") -> Iterator[MetricTable]:
    """The tables of one metric: rows and columns as the scenario says, one table for each value of
    the other axes; none if the metric is available nowhere. `between` stands between the two parts
    of a cell.
    """
    index = PointIndex(document["points"])
    usual = usual_state(document)
    layout = axis_layout(document)
    for values in itertools.product(*(layout.axes[axis] for axis in layout.others)):
        place = dict(zip(layout.others, values, strict=True))
        chosen = index.find(place)
        found = [point["metrics"].get(metric, {}) for point in chosen]
        for figure, least, what in (
            ("median", "samples", ""),
            ("p99", "p99", f", {tail_title(found)}"),
        ):
            if any(least in each for each in found):
                rows = tuple(_rows(metric, chosen, layout, usual, figure, between))
                yield MetricTable(
                    _title(metric, place, what),
                    axis_title(layout.rows) if layout.rows else "",
                    tuple(_headings(metric, layout)),
                    rows,
                )


def _headings(metric: str, layout: AxisLayout) -> Iterable[str]:
    if not layout.columns:
        return [unit_of(metric)]
    return [heading_words(layout.columns, value) for value in layout.axes[layout.columns]]


def _rows(
    metric: str,
    points: Sequence[PointData],
    layout: AxisLayout,
    usual: str | None,
    figure: str,
    between: str,
) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """Heading and cells of each row that the sweep has a point of."""
    axes, rows, columns = layout.axes, layout.rows, layout.columns
    index = PointIndex(points)
    for row in axes[rows] if rows else [None]:
        cells = []
        for value in axes[columns] if columns else [None]:
            where = {rows: row} if rows else {}
            where |= {columns: value} if columns else {}
            found = index.find({str(k): v for k, v in where.items()})
            cells.append(found[0] if found else None)
        if any(point and point["metrics"].get(metric) for point in cells):
            heading = value_words(rows, row) if rows else ""
            yield heading, tuple(_cells(metric, cells, usual, figure, between))


def unit_of(metric: str) -> str:
    """The unit of a metric as people write it; '' of an unknown one."""
    unit = METRICS[metric].unit if metric in METRICS else ""
    return unit_words(unit)


def _title(metric: str, place: Mapping[str, Any], what: str = "") -> str:
    known = METRICS.get(metric)
    parts = [titled((known.title if known else metric) + what, unit_of(metric))]
    parts += [place_words(axis, value) for axis, value in place.items()]
    if known and known.better:
        parts.append(f"{known.better} is better")
    return " — ".join(parts)


def _cells(
    metric: str,
    points: Sequence[PointData | None],
    usual: str | None,
    figure: str,
    between: str,
) -> list[Cell]:
    """The cells of a row, the best figure marked; one of another state is no rival, nor one that
    is limited.
    """
    found = [point and point["metrics"].get(metric) for point in points]
    limited = [point is not None and is_limited(point, metric) for point in points]
    words_of = cell_words if figure == "median" else tail_words
    marked = zip(found, limited, strict=True)
    words = [words_of(each, usual, mark, between) for each, mark in marked]
    rivals = {
        index: shown_figures(each)[figure]
        for index, (each, mark) in enumerate(zip(found, limited, strict=True))
        if each is not None and figure in each and not mark and not is_unusual(each, usual)
    }
    better = METRICS[metric].better if metric in METRICS else ""
    if len(rivals) < 2 or not better:
        return [Cell(word) for word in words]
    best = (max if better == "higher" else min)(rivals.values())
    return [Cell(word, rivals.get(index) == best) for index, word in enumerate(words)]
