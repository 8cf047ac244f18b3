"""The settings as a picture: run time, CPU time and interrupts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shrimpmx.experiment.explore.words import WISHES, unit_of
from shrimpmx.show.plot.chart import Chart, MapPanel, Spot, Value

# Styles of a spot: the recommended one, the frontier, all others.
BEST, FRONTIER, OTHER = 1, 0, 7

Kept = Mapping[str, Any]


def chart_of(found: Kept) -> Chart:
    """A spot for each setting; those of the frontier have numbers, and their names below. `found`
    is the dictionary of Findings.as_dict, with the command line of the `program`.
    """
    usable = [each for each in found["settings"] if "failed" not in each]
    unit, scale = unit_of(each["time"]["median"] for each in usable)
    spots = sorted(
        (_spot(each, found, scale) for each in usable), key=lambda spot: bool(spot.label)
    )
    panel = MapPanel(
        title="numbered: the frontier, which no other setting beats",
        x_label=f"run time, {unit}",
        y_label=f"CPU time of ranks and handlers, {unit}",
        size_label="interrupts",
        spots=tuple(spots),
        largest=max((spot.size or 0.0 for spot in spots), default=0.0),
        log_y=False,
    )
    best = found["recommended"]
    bars = "Figures are exact." if found["exact"] else "Bars: 95 % intervals."
    caption = f"For {WISHES[found['objective']]}, orange: {best}. {bars}"
    return Chart("frontier", title_of(found["program"]), (panel,), caption=(caption,))


def title_of(program: str) -> str:
    """The question to which the command line of a program led."""
    words = shlex.join(Path(word).name for word in shlex.split(program))
    return f"Which setting suits {words}?"


def _spot(setting: Kept, found: Kept, scale: float) -> Spot:
    name, best = setting["name"], setting["name"] == found["recommended"]
    on_frontier = name in found["frontier"]
    return Spot(
        label=name if on_frontier or best else "",
        x=_scaled(setting["time"], scale),
        y=_scaled(setting["cpu"], scale),
        size=setting["interrupts"]["median"],
        style=BEST if best else FRONTIER if on_frontier else OTHER,
    )


def _scaled(figure: Kept, scale: float) -> Value:
    low, high = figure["ci95"]
    return Value(figure["median"] / scale, low / scale, high / scale)
