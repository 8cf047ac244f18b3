"""Notes on figures of a result: times that are not those of what it emulates, as its points'
`limits` tell; resends, since rings overran or without any loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shrimpmx.results.expectation_kinds import is_time
from shrimpmx.results.metric import total
from shrimpmx.results.runs import steered_words
from shrimpmx.results.words import place_words, values_words
from shrimpmx.show.axis_layout import axis_layout

# Follows such a time in a table.
MARK = "†"
# Points that are named one by one; more of them are counted.
NAMED_MOST = 6

PointData = Mapping[str, Any]


def is_limited(point: PointData, metric: str) -> bool:
    """Whether a point's figure of a metric is a time that its placement does not allow."""
    return bool(is_time(metric) and _limits(point))


def limit_notes(document: Mapping[str, Any]) -> list[str]:
    """One sentence for each limit, which names the points whose times are marked for it."""
    measured = [point for point in document["points"] if "impossible" not in point]
    limited: dict[str, list[PointData]] = {}
    for point in measured:
        if any("unavailable" not in m for name, m in point["metrics"].items() if is_time(name)):
            for limit in _limits(point):
                limited.setdefault(limit, []).append(point)
    axes = axis_layout(document).axes
    return [
        f"{limit}; times marked {MARK} are not those of the emulated hosts: "
        f"{where(points, measured, axes)}"
        for limit, points in limited.items()
    ]


def _limits(point: PointData) -> list[str]:
    """Those of the placement; steered interrupts concern counts too and have their own note."""
    steered = steered_words(point.get("steered", ()))
    return [limit for limit in point.get("limits", ()) if limit not in steered]


def where(
    some: Sequence[PointData], points: Sequence[PointData], axes: Mapping[str, Sequence[Any]]
) -> str:
    """Which points are meant: all, those with some values of the axes, or each by its place."""
    if len(some) == len(points):
        return "all points" if len(points) > 1 else "the only point"
    values = {
        axis: [value for value in all_values if any(p["params"].get(axis) == value for p in some)]
        for axis, all_values in axes.items()
    }
    telling = {axis: found for axis, found in values.items() if len(found) < len(axes[axis])}
    alike = [p for p in points if all(p["params"].get(a) in found for a, found in telling.items())]
    if len(alike) == len(some):
        return " with ".join(values_words(a, found, axes[a]) for a, found in telling.items())
    if len(some) > NAMED_MOST:
        return f"{len(some)} of {len(points)} points"
    varied = [axis for axis, all_values in axes.items() if len(all_values) > 1]
    places = (", ".join(place_words(a, p["params"].get(a)) for a in varied) for p in some)
    return "; ".join(places)


# Counters of packets that found a ring full, and the parameter of its size.
FULL_RINGS = {"rx_drop_ring_full": "rx_ring_entries", "unexp_eventq_full": "event_ring_entries"}
# What loses a packet, or lets it be dropped.
LOSSES = ("link_lost", "rx_bad_fcs", "rx_bad_frame", *FULL_RINGS)


def resend_notes(document: Mapping[str, Any]) -> list[str]:
    """A sentence on messages that were sent again though nothing was lost, with the points."""
    measured = [point for point in document["points"] if "impossible" not in point]
    resent = [
        0
        if any(total(point["counters"], counter) for counter in LOSSES)
        else total(point["counters"], "resent_messages")
        for point in measured
    ]
    points = [point for point, count in zip(measured, resent, strict=True) if count]
    if not points:
        return []
    count = sum(resent)
    return [
        f"{count} message{'s' * (count > 1)} sent again without a loss, probably because an "
        "interrupt or the rank's poll came later than resend_delay_ns: "
        f"{where(points, measured, axis_layout(document).axes)}"
    ]


def overrun_notes(document: Mapping[str, Any]) -> list[str]:
    """A sentence for each kind of ring that was full, which names the points."""
    measured = [point for point in document["points"] if "impossible" not in point]
    axes = axis_layout(document).axes
    notes = []
    for counter, parameter in FULL_RINGS.items():
        dropped = [total(point["counters"], counter) for point in measured]
        points = [point for point, count in zip(measured, dropped, strict=True) if count]
        if points:
            notes.append(
                f"{sum(dropped)} packets found a ring full ({parameter}): "
                f"{where(points, measured, axes)}; only resends recover messages, "
                "`shrimpmx counters` shows their number"
            )
    return notes
