"""From results of the multiqueue paper's scenarios to its Table I, and to our map of placements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.results import a_document, a_point

from shrimpmx.papers.charts import charts_of
from shrimpmx.papers.multiqueue2010 import figures as paper
from shrimpmx.show.plot.chart import Chart, GridPanel, Panel
from shrimpmx.show.plot.draw import picture_of

NOT_THERE = {"unavailable": "distance SP needs two CPUs of one package that share no cache"}


def chart_of(scenario: str, points: list[dict[str, Any]], rows: str, columns: str) -> Chart:
    (chart,) = charts_of(a_document(scenario, points, rows, columns))
    picture_of(chart)
    return chart


def panels_of(chart: Chart) -> list[Panel]:
    return [panel for panel in chart.panels if isinstance(panel, Panel)]


def figures(panel: Panel, theirs: bool) -> dict[int, float]:
    return {
        place: value.y
        for series in panel.series
        if series.paper == theirs
        for place, value in series.values.items()
    }


def by_binding(metric: str, figure: Callable[[str], Any], **place: Any) -> list[dict[str, Any]]:
    return [
        a_point({**place, **binding}, {metric: figure(name), "handovers_per_packet": 1.0})
        for name, binding in paper.BINDINGS.items()
    ]


def test_table_1_has_the_papers_figures_beside_ours_in_its_order() -> None:
    def ours(name: str) -> Any:
        return NOT_THERE if name in ("SP", "OP") else 10.0 + len(name)

    points = by_binding("mean_half_round_trip", ours)
    chart = chart_of(paper.LATENCY, points, "irq_binding", "distance")
    latency, handovers = panels_of(chart)
    assert latency.axis.words == ("round-robin", "SC", "S$", "SP", "OP", "multiqueue")
    assert figures(latency, theirs=False) == {0: 21, 1: 12, 2: 12, 5: 20}
    assert figures(latency, theirs=True) == dict(enumerate(paper.HALF_ROUND_TRIP.values()))
    assert latency.series[0].missing == (3, 4)
    assert figures(handovers, theirs=True) == {}
    assert any(NOT_THERE["unavailable"] in line for line in chart.caption)


def test_throughput_stands_side_by_side_without_and_with_copy_offload() -> None:
    points = [
        point
        for offload in (False, True)
        for point in by_binding("bandwidth", lambda _: 800.0, copy_offload=offload)
    ]
    chart = chart_of(paper.THROUGHPUT, points, "irq_binding", "distance")
    assert chart.columns == 2
    plain, offloaded = panels_of(chart)[:2]
    assert figures(plain, theirs=True) == dict(enumerate(paper.BANDWIDTH[False].values()))
    assert figures(offloaded, theirs=True) == dict(enumerate(paper.BANDWIDTH[True].values()))


def test_the_map_has_a_place_for_each_pair_of_cores() -> None:
    points = [
        a_point(
            {"irq_binding": irq, "rank_core": core},
            {
                "half_round_trip": NOT_THERE if irq == "1" and core == 0 else 10.0 * (core + 1),
                "events_handed_over": 0.0,
            },
        )
        for irq in ("0", "1")
        for core in (0, 1, 2)
    ]
    chart = chart_of(paper.PLACEMENT, points, "irq_binding", "rank_core")
    (panel,) = chart.panels
    assert isinstance(panel, GridPanel)
    assert (panel.rows, panel.columns) == (("0", "1"), ("0", "1", "2"))
    found = {(cell.row, cell.column): cell.value for cell in panel.cells}
    assert found == {(0, 0): 10, (0, 1): 20, (0, 2): 30, (1, 1): 20, (1, 2): 30}
    # Colours run to both sides of what lies between the best and the worst.
    assert 10 < panel.even < 30
    assert panel.x_label == "core that the process runs on"


def test_steering_shows_what_is_handed_over_first() -> None:
    points = [
        a_point(
            {"move_every": move, "steering": name},
            {"half_round_trip": 12, "flow_moves": 3, "events_handed_over": 75 if move else 0},
        )
        for move in (0, 100)
        for name in ("endpoint", "arfs")
    ]
    chart = chart_of(paper.STEERING, points, "steering", "move_every")
    first, second = panels_of(chart)
    assert (first.title, second.title) == ("Events handed over", "Half round trip")
    assert [series.label for series in first.series] == [
        "processes stay",
        "processes move every 100 round trips",
    ]


def test_the_ledger_has_a_row_of_structures_for_each_number_of_pairs() -> None:
    points = [
        a_point(
            {"pairs": pairs, "size_bytes": size, "irq_binding": binding},
            {"events_handed_over": 87.5, "queue_changes": 0, "pull_handovers": 0.1},
        )
        for pairs in (1, 8)
        for size in (0, 32_768, 1 << 20)
        for binding in ("round-robin", "per-queue")
    ]
    chart = chart_of(paper.LEDGER, points, "size_bytes", "irq_binding")
    assert [panel.title for panel in panels_of(chart)] == [
        "Events handed over, pairs 1",
        "Hand-overs of pull handles per reply, pairs 1",
        "Events handed over, pairs 8",
        "Hand-overs of pull handles per reply, pairs 8",
    ]
    first = panels_of(chart)[0]
    assert (chart.columns, first.axis.kind) == (2, "bars")
    assert [series.label for series in first.series] == [
        "interrupts to all cores in turn",
        "a queue and a core for each",
    ]


def test_an_alltoall_is_drawn_relative_to_native_mx() -> None:
    sizes = (128, 4096)
    points = [
        a_point(
            {"size_bytes": size, **where},
            {
                "run_time": 50.0 if where == paper.NATIVE_MX else 100.0,
                "busiest_core": NOT_THERE if where == paper.NATIVE_MX else 12.5,
            },
        )
        for size in sizes
        for where in paper.ALLTOALL_BINDINGS.values()
    ]
    times, shares = panels_of(chart_of(paper.ALLTOALL, points, "size_bytes", "irq_binding"))
    assert figures(times, theirs=False) == {0: 2.0, 1: 2.0}
    assert times.baseline == 1
    assert [one.label for one in times.series] == list(paper.ALLTOALL_BINDINGS)[:-1]
    assert figures(shares, theirs=False) == {0: 12.5, 1: 12.5}


@pytest.mark.parametrize("scenario", [paper.LATENCY, paper.LEDGER, paper.PLACEMENT, paper.STEERING])
def test_with_other_axes_a_result_is_drawn_like_any(scenario: str) -> None:
    points = [a_point({"cores": cores}, {"half_round_trip": 10}) for cores in (2, 4)]
    (panel,) = panels_of(chart_of(scenario, points, "cores", ""))
    assert panel.title == "Half round trip"


def test_what_the_paper_says_stands_below() -> None:
    points = [a_point({"irq_binding": core}, {"half_round_trip": 10}) for core in ("0", "1")]
    chart = chart_of(paper.IDLE, points, "irq_binding", "")
    assert any(line.startswith("The paper: 11 µs rise to 15 to 20 µs") for line in chart.caption)
