"""The tipping point: which way to wait wins at which costs of a reschedule and an interrupt."""

from __future__ import annotations

from collections.abc import Sequence

from shrimpmx.results.expectation_kinds import Place
from shrimpmx.show.plot.chart import GridCell, GridPanel, Value
from shrimpmx.show.plot.panels import note_missing
from shrimpmx.show.plot.reading import NOT_RUN, Result
from shrimpmx.show.plot.style import short_words
from shrimpmx.show.tipping import INTERRUPT, METRIC, RESCHEDULE, tipping_lines

# What is compared, over what: the pure one that the paper prefers with its best, and the two that
# change places first.
COMPARED = ((("block",), "spin-block"), (("sched",), "block"))


def tipping_point(result: Result) -> tuple[Sequence[GridPanel], int] | None:
    """A grid of both costs for each comparison, and where they tip below it; None if the result
    has other axes.
    """
    if set(result.axes) != {RESCHEDULE, INTERRUPT, "wait"} or METRIC not in result.metrics:
        return None
    waits = result.axes["wait"]
    compared = [
        (overs, under) for overs, under in COMPARED if {*overs, under} <= {str(w) for w in waits}
    ]
    panels = [_grid(result, overs, under) for overs, under in compared]
    result.notes.update(dict.fromkeys(tipping_lines(result.points)))
    return (panels, len(panels)) if panels else None


def _grid(result: Result, overs: Sequence[str], under: str) -> GridPanel:
    cells: list[GridCell] = []
    reasons: dict[str, int] = {}
    for column, interrupt in enumerate(result.axes[INTERRUPT]):
        for row, reschedule in enumerate(result.axes[RESCHEDULE]):
            place = {INTERRUPT: interrupt, RESCHEDULE: reschedule}
            ratio = _ratio(result, place, overs, under)
            if isinstance(ratio, Value):
                words = f"{_winner(result, place)}\n{short_words(ratio.y)}"
                cells.append(GridCell(column, row, ratio.y, words))
            elif ratio != NOT_RUN:
                reasons[ratio] = reasons.get(ratio, 0) + 1
    note_missing(result, METRIC, reasons)
    return GridPanel(
        title=f"{_words(overs)} against {under}: the best of all, and that ratio",
        x_label="time of an interrupt, µs",
        y_label="added for each reschedule, µs",
        value_label=f"wall time of {_words(overs)} / that of {under}",
        columns=_microseconds(result, INTERRUPT),
        rows=_microseconds(result, RESCHEDULE),
        cells=tuple(cells),
        reason="" if cells else "; ".join(reasons) or NOT_RUN,
    )


def _ratio(result: Result, place: Place, overs: Sequence[str], under: str) -> Value | str:
    """The wall time of the best of `overs` by that of `under`."""
    best = min(overs, key=lambda wait: _time(result, place, wait))
    points = [result.find({**place, "wait": wait}) for wait in (best, under)]
    found = result.ratio(points[0], points[1], METRIC)
    return "no time passed" if isinstance(found, Value) and found.y <= 0 else found


def _time(result: Result, place: Place, wait: str) -> float:
    found = result.value(result.find({**place, "wait": wait}), METRIC)
    return found.y if isinstance(found, Value) else float("inf")


def _winner(result: Result, place: Place) -> str:
    """The strategy of least wall time, of all that were run there."""
    return str(min(result.axes["wait"], key=lambda wait: _time(result, place, wait)))


def _words(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"the better of {' and '.join(names)}"


def _microseconds(result: Result, axis: str) -> tuple[str, ...]:
    return tuple(f"{value / 1000:g}" for value in result.axes[axis])
