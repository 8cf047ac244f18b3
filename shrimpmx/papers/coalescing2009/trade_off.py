"""The trade-off map: every coalescing strategy by latency, interrupts and host CPU time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shrimpmx.results.expectation_kinds import Place
from shrimpmx.show.plot.chart import MapPanel, Spot, Value
from shrimpmx.show.plot.panels import note_missing, panel_title, style_of
from shrimpmx.show.plot.reading import NOT_RUN, Result, metric_label

# Metrics that may stand for each of the three figures; the first that a result has is taken.
LATENCY = ("half_round_trip", "transfer", "round_trip")
INTERRUPTS = ("interrupts_per_message", "interrupts_per_packet")
HOST_CPU = ("host_cpu_per_message", "cpu_per_message", "handler_cpu_per_packet")


def trade_off(result: Result) -> tuple[Sequence[MapPanel], int] | None:
    """A map for each value of the other axes; None if the result lacks one of the two figures."""
    x, y, size = (_first(result, names) for names in (LATENCY, INTERRUPTS, HOST_CPU))
    if not result.has("coalescing") or x is None or y is None:
        return None
    others = [axis for axis in result.axes if axis != "coalescing"]
    places = [place for place in result.places(others) if result.find(place)]
    panels = [_map(result, place, (x, y, size)) for place in places]
    sizes = [spot.size for panel in panels for spot in panel.spots if spot.size is not None]
    largest = max(sizes, default=0.0)
    return [replace(panel, largest=largest) for panel in panels], min(3, len(panels))


def _first(result: Result, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in result.metrics), None)


def _map(result: Result, place: Place, metrics: tuple[str, str, str | None]) -> MapPanel:
    x_metric, y_metric, size_metric = metrics
    spots: list[Spot] = []
    reasons: dict[str, dict[str, int]] = {}
    for index, name in enumerate(result.axes["coalescing"]):
        point = result.find({**place, "coalescing": name})
        found = {metric: result.value(point, metric) for metric in metrics if metric}
        for metric, value in found.items():
            if isinstance(value, str) and value != NOT_RUN:
                counts = reasons.setdefault(metric, {})
                counts[value] = counts.get(value, 0) + 1
        x, y = found[x_metric], found[y_metric]
        size = found.get(size_metric or "")
        if isinstance(x, Value) and isinstance(y, Value):
            area = size.y if isinstance(size, Value) else None
            spots.append(Spot(str(name), x, y, area, style_of("coalescing", name, index)))
    for metric, counts in reasons.items():
        note_missing(result, metric, counts)
    missing = "; ".join(reason for counts in reasons.values() for reason in counts)
    return MapPanel(
        title=panel_title("", place),
        x_label=metric_label(x_metric),
        y_label=metric_label(y_metric),
        size_label=metric_label(size_metric) if size_metric else "",
        spots=tuple(spots),
        log_y=all(spot.y.y > 0 for spot in spots),
        reason="" if spots else missing or NOT_RUN,
    )
