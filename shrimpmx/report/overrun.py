"""Which figures of a result are those of a receiver whose rings overran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shrimpmx.report.axis_layout import axis_layout
from shrimpmx.report.limited import where
from shrimpmx.results.metric import total

# Counters of packets that found a ring full, and the parameter of its size.
FULL_RINGS = {"rx_drop_ring_full": "rx_ring_entries", "unexp_eventq_full": "event_ring_entries"}


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
                f"{sum(dropped)} packets found a ring full ({parameter}), and those of messages "
                f"came again by resends only: {where(points, measured, axes)}; "
                "`shrimpmx counters` shows how many are sent again"
            )
    return notes
