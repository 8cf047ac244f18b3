"""Panels of lines and bars."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shrimpmx.report.plot.chart import Panel, Series, Value
from shrimpmx.report.plot.look import begin, look_of, plain, plain_figures, short_words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Follows a figure of another distance of the CPUs than most have.
STAR = "*"
# Above so many bars their figures would stand in each other's way.
BARS_WITH_FIGURES = 16
# How much of a horizontal axis a letter needs, and a line of words aslant.
LETTER_SHARE, ASLANT_SHARE = 0.02, 0.055
# Room above the highest bar or point, as a share of the axis.
HEADROOM = 0.08
# Letters of a place at a horizontal axis, in all and in a line.
PLACE_LETTERS, PLACE_LINE = 80, 14


def draw_panel(axes: Axes, panel: Panel, handles: dict[str, Artist]) -> None:
    """Draw a panel into `axes`; `handles` gets what its legend needs."""
    if not begin(axes, panel, panel.axis.label):
        return
    if panel.log:
        axes.set_yscale("log")
    draw = _draw_lines if panel.axis.kind == "lines" else _draw_bars
    draw(axes, panel, handles)
    if panel.baseline is not None:
        axes.axhline(panel.baseline, color="#777777", linewidth=0.8, zorder=1)
    _name_places(axes, panel)
    _name_groups(axes, panel)
    plain_figures(axes.yaxis)
    if not panel.log:
        low, high = axes.get_ylim()
        axes.set_ylim(min(0.0, low), high + HEADROOM * (high - min(0.0, low)))


def _name_places(axes: Axes, panel: Panel) -> None:
    """The places' words at the axis, aslant where they would touch each other."""
    positions = panel.axis.positions
    words = [
        textwrap.fill(plain(word[:PLACE_LETTERS]), PLACE_LINE, break_on_hyphens=False)
        for word in panel.axis.words
    ]
    if panel.axis.kind == "bars":
        axes.grid(visible=False, axis="x")
        axes.set_xlim(min(positions) - 0.6, max(positions) + 0.6)
    left, right = axes.get_xlim()
    aslant = _touch(positions, words, right - left)
    axes.set_xticks(positions, _thinned(positions, words) if aslant else words)
    if aslant:
        for label in axes.get_xticklabels():
            label.set(rotation=40, horizontalalignment="right", rotation_mode="anchor")


def _name_groups(axes: Axes, panel: Panel) -> None:
    """What groups of places are called, above them: below stand the places' own words."""
    if not panel.axis.groups:
        return
    above = axes.secondary_xaxis("top")
    above.set_xticks(
        [middle for _, middle in panel.axis.groups],
        [plain(words) for words, _ in panel.axis.groups],
    )
    above.tick_params(length=0)
    above.spines["top"].set_visible(False)


def _touch(positions: Sequence[float], words: Sequence[str], length: float) -> bool:
    """Whether words that lie flat below an axis of that length would touch each other."""
    letters = [max(map(len, word.split("\n"))) for word in words]
    order = sorted(range(len(words)), key=lambda i: positions[i])
    return any(
        positions[right] - positions[left]
        < LETTER_SHARE * length * (letters[left] + letters[right] + 1) / 2
        for left, right in itertools.pairwise(order)
    )


def _thinned(positions: Sequence[float], words: Sequence[str]) -> list[str]:
    """The words, without those for which there is no room beside the one before."""
    least = ASLANT_SHARE * (max(positions) - min(positions))
    shown, last = [""] * len(words), -math.inf
    for index in sorted(range(len(words)), key=lambda i: positions[i]):
        if positions[index] - last >= least:
            shown[index], last = words[index], positions[index]
    return shown


def _draw_lines(axes: Axes, panel: Panel, handles: dict[str, Artist]) -> None:
    for series in panel.series:
        indices = sorted(series.values)
        values = [series.values[i] for i in indices]
        look = look_of(series.style)
        drawn = axes.errorbar(
            [panel.axis.positions[i] for i in indices],
            [value.y for value in values],
            yerr=None if series.paper else _errors(series, indices),
            color=look.colour,
            marker=look.marker,
            markersize=8 if series.paper else 5,
            markerfacecolor="none" if series.paper else look.colour,
            linestyle="none" if series.paper else look.line,
            linewidth=1.4,
            capsize=2.5,
            label=plain(series.label),
            zorder=4 if series.paper else 3,
        )
        handles.setdefault(series.label, drawn)  # type: ignore[arg-type]
        _mark_bounds(axes, series, {i: panel.axis.positions[i] for i in indices})
        for i, value in zip(indices, values, strict=True):
            if value.starred:
                _write(axes, STAR, panel.axis.positions[i], value.high)


def _errors(series: Series, indices: Sequence[int]) -> list[list[float]]:
    values = [series.values[i] for i in indices]
    below = [max(0.0, value.y - value.low) for value in values]
    above = [max(0.0, value.high - value.y) for value in values]
    return [below, above]


def _draw_bars(axes: Axes, panel: Panel, handles: dict[str, Artist]) -> None:
    slots = stack_slots(panel.series)
    width = 0.82 / (max(slots, default=0) + 1)
    tops = [slot not in slots[index + 1 :] for index, slot in enumerate(slots)]
    figures = zip(panel.series, tops, strict=True)
    count = sum(len(series.values) for series, top in figures if top)
    heights: dict[tuple[int, int], float] = {}
    for series, slot, top in zip(panel.series, slots, tops, strict=True):
        indices = sorted(series.values)
        offset = (slot - max(slots) / 2) * width
        places = [panel.axis.positions[i] + offset for i in indices]
        below = [heights.get((slot, i), 0.0) for i in indices]
        look = look_of(series.style)
        bars = axes.bar(
            places,
            [series.values[i].y for i in indices],
            width * 0.94,
            below,
            yerr=_errors(series, indices) if top and not series.paper else None,
            error_kw={"capsize": 2.5, "elinewidth": 1.0},
            facecolor="none" if series.paper else look.colour,
            edgecolor=look.colour if series.paper else "white",
            hatch=None if series.paper else look.hatch,
            linestyle="--" if series.paper else "-",
            linewidth=1.3 if series.paper else 0.0,
            label=plain(series.label),
            zorder=3,
        )
        handles.setdefault(series.label, bars)  # type: ignore[arg-type]
        _mark_bounds(axes, series, dict(zip(indices, places, strict=True)))
        for i, place, base in zip(indices, places, below, strict=True):
            if top:
                _write_figure(axes, series.values[i], place, base, count <= BARS_WITH_FIGURES)
        heights |= {(slot, i): b + series.values[i].y for i, b in zip(indices, below, strict=True)}
        for i in series.missing:
            where = (panel.axis.positions[i] + offset, 0.02)
            axes.annotate(
                "n/a", where, xycoords=axes.get_xaxis_transform(), ha="center", fontsize=7
            )


def stack_slots(series: Sequence[Series]) -> list[int]:
    """The number of each series' bar within a group; those of one stack share theirs."""
    found: dict[str, int] = {}
    names = [one.stack or f"{index} alone" for index, one in enumerate(series)]
    return [found.setdefault(name, len(found)) for name in names]


def _write_figure(axes: Axes, value: Value, place: float, base: float, whole: bool) -> None:
    """The figure above a bar; of a stack, whose last part stands on `base`, that of the whole.

    Without room for the `whole` it is its star alone.
    """
    words = ("<" if value.bound else "") + short_words(base + value.y) if whole else ""
    top = base + max(value.y, value.high) if value.y >= 0 else base
    _write(axes, words + STAR * value.starred, place, top)


def _write(axes: Axes, words: str, place: float, top: float) -> None:
    """Words right above a place."""
    if not words:
        return
    axes.annotate(
        words,
        (place, top),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=7,
    )


def _mark_bounds(axes: Axes, series: Series, places: dict[int, float]) -> None:
    """An arrow downwards where the paper says only that its figure is less."""
    for index, place in places.items():
        value = series.values[index]
        if value.bound:
            axes.annotate(
                "",
                (place, value.y * 0.78),
                (place, value.y),
                arrowprops={"arrowstyle": "->", "color": look_of(series.style).colour},
            )
