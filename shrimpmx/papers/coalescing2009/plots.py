"""The coalescing paper's figures and tables, as panels of our results beside its numbers.

Each takes a result and gives its panels, and how many stand side by side; or None if the axes
were changed so that the figure cannot be drawn from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shrimpmx.papers.coalescing2009 import figures as paper
from shrimpmx.papers.coalescing2009.trade_off import trade_off
from shrimpmx.results.expectation_kinds import Place
from shrimpmx.results.words import place_words
from shrimpmx.show.plot.chart import ONLY, Axis, Panel, Panels, Series, Value
from shrimpmx.show.plot.panels import (
    HERE,
    OWN_COSTS,
    Figure,
    axis_of,
    metric_panel,
    ours_and_paper,
    published_value,
    series_words,
    shown_or_why,
    style_of,
)
from shrimpmx.show.plot.reading import PointData, Result, metric_label, metric_title

_MARK_WORDS = {
    "rndv": "rendezvous",
    "pull-request": "pull requests",
    "pull-reply": "last pull replies",
    "notify": "notify",
}


def fig4(result: Result) -> tuple[Panels, int] | None:
    """Message rate by coalescing: a panel for the platform, and one for this machine's own costs.

    Series: whether cores sleep, and where interrupts go.
    """
    axes = {"platform", "coalescing", "idle", "irq_binding"}
    if set(result.axes) != axes or "message_rate" not in result.metrics:
        return None
    axis = _delays(result)
    panels = [
        replace(_rates(result, platform), axis=axis)
        for platform in result.axes["platform"]
        if result.find({"platform": platform})
    ]
    return panels, len(panels)


def _rates(result: Result, platform: Any) -> Panel:
    """Message rates with a platform, or with none; of the hosts that were run with it."""
    place, series = {"platform": platform}, []
    for axis in ("idle", "irq_binding"):
        here = [v for v in result.axes[axis] if result.find({"platform": platform, axis: v})]
        if len(here) == 1:
            place[axis] = here[0]
        else:
            series.append(axis)
    own = OWN_COSTS if platform == "none" else place_words("platform", platform)
    title = f"{metric_title('message_rate')}, {own}"
    return metric_panel(result, "message_rate", "coalescing", series, place, title)


def by_delay(result: Result) -> tuple[Panels, int] | None:
    """Figure 4 on eight cores: message rate over the coalescing delay, a line for each way that
    cores sleep and interrupts go; without coalescing the delay is 0.
    """
    lines = ["idle", "irq_binding"]
    if set(result.axes) != {"coalescing", "rx_usecs", *lines}:
        return None
    if not {"disabled", "timeout"} <= {*result.axes["coalescing"]}:
        return None
    delays = sorted(result.axes["rx_usecs"])
    timed = [{"coalescing": "timeout", "rx_usecs": delay} for delay in delays]
    spots = [{"coalescing": "disabled"}, *timed]
    words = ("0 µs", *(f"{delay} µs" for delay in delays))
    positions = (0.0, *map(float, delays))
    axis = Axis("coalescing delay", words, positions, "lines")
    return [_over(result, metric, axis, spots, lines) for metric in result.metrics], 3


def _over(
    result: Result, metric: str, axis: Axis, spots: Sequence[Place], lines: Sequence[str]
) -> Panel:
    """A metric at places that no single axis has, with a series for each value of `lines`."""
    series: list[Series] = []
    everything: list[Value | str] = []
    for index, line in enumerate(result.places(lines)):
        points = [result.find({**line, **spot}) for spot in spots]
        ours = [result.value(point, metric) for point in points]
        theirs = [published_value(result, metric, point) for point in points]
        label = ", ".join(series_words(name, value) for name, value in line.items())
        series += ours_and_paper(label, index, ours, theirs)
        everything += ours
    shown, reason = shown_or_why(result, metric, series, everything)
    return Panel(metric_title(metric), axis, metric_label(metric), shown, reason=reason)


def _delays(result: Result) -> Axis:
    """The strategies as the paper names them there: by the coalescing delay."""
    words = []
    for name in result.axes["coalescing"]:
        point = result.find({"coalescing": name})
        delay = result.values(point).get("rx_usecs") if point and name == "timeout" else None
        delay = 0 if name == "disabled" else delay
        words.append(f"{name}, {delay} µs" if delay is not None else str(name))
    return replace(axis_of(result, "coalescing"), label="coalescing, delay", words=tuple(words))


def pingpong(result: Result) -> tuple[Panels, int] | None:
    """Figures 5 and 6: transfer time by size, relative to no coalescing, and as it is."""
    axes = {"coalescing", "size_bytes"}
    if set(result.axes) != axes or "half_round_trip" not in result.metrics:
        return None
    if "disabled" not in result.axes["coalescing"]:
        return None
    panels = [metric_panel(result, name, "size_bytes", ["coalescing"]) for name in result.metrics]
    return [_relative(result, "half_round_trip"), *panels], 3


def _relative(result: Result, metric: str) -> Panel:
    """A metric by that without coalescing, over the sizes."""
    series: list[Series] = []
    everything: list[Value | str] = []
    for index, name in enumerate(result.axes["coalescing"]):
        ours, theirs = [], []
        for size in result.axes["size_bytes"]:
            one = result.find({"coalescing": name, "size_bytes": size})
            plain = result.find({"coalescing": "disabled", "size_bytes": size})
            ours.append(_ratio(result, metric, one, plain))
            theirs.append(_paper_ratio(result, metric, one, plain))
        label, style = series_words("coalescing", name), style_of("coalescing", name, index)
        series += ours_and_paper(label, style, ours, theirs)
        everything += ours
    shown, reason = shown_or_why(result, metric, series, everything)
    return Panel(
        "Transfer time relative to that without coalescing",
        axis_of(result, "size_bytes"),
        "transfer time / transfer time with coalescing disabled",
        shown,
        baseline=1.0,
        reason=reason,
    )


def _ratio(
    result: Result, metric: str, one: PointData | None, plain: PointData | None
) -> Value | str:
    if one is not None and one is plain:
        found = result.value(one, metric)
        return found if isinstance(found, str) else Value(1.0, 1.0, 1.0)
    return result.ratio(one, plain, metric)


def _paper_ratio(
    result: Result, metric: str, one: PointData | None, plain: PointData | None
) -> Value | None:
    if one is None or plain is None or one is plain:
        return None
    over, under = (result.published_at(metric, point) for point in (one, plain))
    if over is None or under is None:
        return None
    ratio = over.value / under.value
    return Value(ratio, ratio, ratio)


def table1(result: Result) -> tuple[Panels, int] | None:
    """Message rates: a panel per size, since they are decades apart; then the other metrics."""
    if set(result.axes) != {"coalescing", "size_bytes"} or "message_rate" not in result.metrics:
        return None
    rates = [
        metric_panel(result, "message_rate", "coalescing", (), {"size_bytes": size})
        for size in result.axes["size_bytes"]
    ]
    others = [
        metric_panel(result, metric, "size_bytes", ["coalescing"], bars=True)
        for metric in result.metrics
        if metric != "message_rate"
    ]
    return [*rates, *others], min(3, len(rates))


def table2(result: Result) -> tuple[Panels, int] | None:
    """Transfer time and interrupts with all marks; what each mark saves."""
    wanted = ("transfer", "interrupts_per_message")
    if set(result.axes) != {"coalescing", "marks"} or not set(wanted) <= set(result.metrics):
        return None
    if paper.ALL_MARKS not in result.axes["marks"]:
        return None
    place = {"marks": paper.ALL_MARKS}
    panels = [
        metric_panel(result, name, "coalescing", (), place, f"{metric_title(name)}, all marks")
        for name in wanted
    ]
    return [*panels, _saved_by_marks(result)], 3


def _saved_by_marks(result: Result) -> Panel:
    """How much longer a message takes where one kind of packet is not marked."""
    full = result.find({"coalescing": "open-mx", "marks": paper.ALL_MARKS})
    ours, theirs = [], []
    for mark in paper.ALL_MARKS:
        others = [other for other in paper.ALL_MARKS if other != mark]
        without = result.find({"coalescing": "open-mx", "marks": others})
        ours.append(result.difference(without, full, "transfer"))
        saved = paper.SAVED_BY_MARK[mark]
        theirs.append(Value(saved, saved, saved))
    shown, reason = shown_or_why(result, "transfer", ours_and_paper(HERE, ONLY, ours, theirs), ours)
    return Panel(
        "Time saved by each mark, with Open-MX coalescing",
        Axis(
            "kind of packet without its mark",
            tuple(_MARK_WORDS[mark] for mark in paper.ALL_MARKS),
            tuple(map(float, range(len(paper.ALL_MARKS)))),
        ),
        "transfer time saved by the mark, µs",
        shown,
        reason=reason,
    )


def table3(result: Result) -> tuple[Panels, int] | None:
    """Every metric by mis-ordering degree: the mark moved, as in the paper, and real reordering."""
    if set(result.axes) != {"coalescing", "mark_early", "overtake"}:
        return None
    panels = [
        metric_panel(
            result,
            metric,
            axis,
            ["coalescing"],
            {other: 0},
            f"{metric_title(metric)}, {words}",
            True,
        )
        for metric in result.metrics
        for axis, other, words in (
            ("mark_early", "overtake", "mark moved (as in the paper)"),
            ("overtake", "mark_early", "packets really reordered"),
        )
    ]
    return panels, 2


FIGURES: dict[str, Figure] = {
    paper.FIG4: fig4,
    paper.CORES: by_delay,
    paper.FIG5: pingpong,
    paper.FIG6: pingpong,
    paper.TABLE1: table1,
    paper.TABLE2: table2,
    paper.TABLE3: table3,
    paper.TRADE_OFF: trade_off,
}
