"""The settings as a picture: run time, CPU time and interrupts."""

from __future__ import annotations

from shrimpmx.report.plot.chart import Chart, MapPanel, Spot, Value
from shrimpmx.results.statistics import Summary
from shrimpmx.study.explore.findings import Findings, Setting
from shrimpmx.study.explore.words import SECONDS, WISHES

# Styles of a spot: the recommended one, the frontier, all others.
BEST, FRONTIER, OTHER = 1, 0, 7


def chart_of(findings: Findings, program: str) -> Chart:
    """A spot for each setting; those of the frontier have their names beside them."""
    spots = sorted(
        (_spot(each, findings) for each in findings.usable), key=lambda spot: bool(spot.label)
    )
    panel = MapPanel(
        title="named: the frontier, of which no other setting is better in everything",
        x_label="run time, s",
        y_label="CPU time of the ranks, s",
        size_label="interrupts",
        spots=tuple(spots),
        largest=max((spot.size or 0.0 for spot in spots), default=0.0),
        log_y=False,
    )
    best = findings.settings[findings.best].name
    caption = f"For {WISHES[findings.objective]}: {best}. Bars: 95 % intervals."
    return Chart("frontier", f"Which setting suits {program}?", (panel,), caption=(caption,))


def _spot(setting: Setting, findings: Findings) -> Spot:
    on_frontier = setting.index in findings.frontier
    style = BEST if setting.index == findings.best else FRONTIER if on_frontier else OTHER
    named = on_frontier or style == BEST
    return Spot(
        label=setting.name if named else "",
        x=_seconds(setting.summary("time")),
        y=_seconds(setting.summary("cpu")),
        size=setting.summary("interrupts").median,
        style=style,
    )


def _seconds(summary: Summary) -> Value:
    return Value(summary.median / SECONDS, summary.low / SECONDS, summary.high / SECONDS)
