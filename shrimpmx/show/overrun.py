"""Which figures of a result hold resends: since rings overran, or without any loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shrimpmx.results.metric import total
from shrimpmx.show.axis_layout import axis_layout
from shrimpmx.show.limited import where

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
        f"{count} message{'s' * (count > 1)} sent again without a loss, probably as an interrupt "
        "or the rank's poll came later than resend_delay_ns: "
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
                f"{sum(dropped)} packets found a ring full ({parameter}), and those of messages "
                f"came again by resends only: {where(points, measured, axes)}; "
                "`shrimpmx counters` shows how many are sent again"
            )
    return notes
