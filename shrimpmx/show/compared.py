"""Two results beside each other in words and tables: the same in a terminal and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shrimpmx.results.comparison import VERDICTS, Change, Comparison
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.statistics import Summary, ratio_decimals, ratio_text
from shrimpmx.results.words import axis_title, titled, unit_words, value_words
from shrimpmx.show.cells import figure_words


@dataclass(frozen=True)
class ComparedTable:
    """A metric at each point that both results have. In each row stand `places` words of where,
    then both figures, their ratio, perhaps of how many draws of costs the order is that one, and,
    last, the verdict.
    """

    title: str
    places: int
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def hosts_line(found: Comparison) -> Iterator[str]:
    """Whose times either result has, if these are not the same hosts'."""
    if found.hosts is not None:
        first, second = found.hosts
        yield (
            f"hosts differ: A has {first}, B {second}; compare counts, as times depend on each "
            "one's costs"
        )


def difference_lines(found: Comparison) -> Iterator[str]:
    """How settings, machines and versions differ."""
    for name, one, other in found.settings:
        yield (
            f"setting: {axis_title(name)} is {value_words(name, one)} in A and "
            f"{value_words(name, other)} in B"
        )
    for words in found.conditions:
        yield f"from A to B: {words}"


def compared_tables(found: Comparison) -> Iterator[ComparedTable]:
    """A table for each metric."""
    varied = _varied([place for place, _ in found.points])
    drawn = any(change.draws[1] for _, each in found.points for change in each.values())
    of_draws = ("same order",) if drawn else ()
    headings = (*map(axis_title, varied), "A", "B", "B by A", *of_draws, "verdict")
    for metric in found.metrics():
        known = METRICS.get(metric)
        title = titled(known.title if known else metric, unit_words(known.unit if known else ""))
        rows = tuple(
            (
                *(value_words(name, place.get(name)) for name in varied),
                *_cells(changes[metric], drawn),
            )
            for place, changes in found.points
            if metric in changes
        )
        yield ComparedTable(title, len(varied), headings, rows)


def counted_lines(found: Comparison) -> Iterator[str]:
    """How many verdicts there are of each kind, and points that only one of both has."""
    verdicts = list(found.verdicts())
    counted = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    yield ", ".join(f"{count} {verdict}" for verdict, count in counted.items() if count)
    for letter, count in zip("AB", found.alone, strict=True):
        if count:
            yield f"{letter} alone has {count} point{'s' if count > 1 else ''}, left out here"


def reasons_of(found: Comparison) -> list[str]:
    """Why there is no verdict, or no figure, each reason once."""
    changes = (change for _, each in found.points for change in each.values())
    return list(dict.fromkeys(change.reason for change in changes if change.reason))


def repeating_lines(found: Comparison) -> Iterator[str]:
    """What gives more runs to results that have too few."""
    for letter, command in found.repeating.items():
        yield f"to repeat {letter}: {command}"


def _cells(change: Change, drawn: bool) -> list[str]:
    figures = (figure_words(each) if each else "—" for each in (change.first, change.second))
    kept, draws = change.draws
    of_draws = [f"{kept} of {draws} draws" if draws else "—"] if drawn else []
    ratio = _ratio_words(change.ratio) if change.ratio else "—"
    return [*figures, ratio, *of_draws, change.verdict]


def _ratio_words(ratio: Summary) -> str:
    """With the ends of its interval, if it has one: what decides is whether they are on one side
    of 1.
    """
    decimals = ratio_decimals(ratio)
    median, low, high = (ratio_text(x, decimals) for x in (ratio.median, ratio.low, ratio.high))
    return median + f" [{low}, {high}]" * (ratio.low < ratio.high)


def _varied(places: Sequence[Mapping[str, Any]]) -> list[str]:
    """The parameters that differ between points; none of a single point."""
    names = dict.fromkeys(name for place in places for name in place)
    return [name for name in names if len({repr(place.get(name)) for place in places}) > 1]
