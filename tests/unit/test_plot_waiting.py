"""From results of the waiting paper's scenarios to its figures: stacks, groups, lines and grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.results import a_document, a_point

from shrimpmx.papers.charts import charts_of
from shrimpmx.papers.waiting1997 import figures as paper
from shrimpmx.show.plot.chart import Chart, GridPanel, Panel
from shrimpmx.show.plot.draw import picture_of

WAITS = ("spin", "block", "spin-block")
NO_ACCOUNT = {"unavailable": "the kernel gave no account"}
Figures = Mapping[str, float | Mapping[str, Any]]


def chart_of(scenario: str, points: list[dict[str, Any]], rows: str, columns: str) -> Chart:
    (chart,) = charts_of(a_document(scenario, points, rows, columns))
    picture_of(chart)
    return chart


def panels_of(chart: Chart) -> list[Panel]:
    return [panel for panel in chart.panels if isinstance(panel, Panel)]


def figures(panel: Panel) -> dict[str, dict[int, float]]:
    return {
        series.label: {place: round(value.y, 6) for place, value in series.values.items()}
        for series in panel.series
    }


def test_figure_2_is_lines_by_delay_with_the_papers_machine_first() -> None:
    points = [
        a_point(
            {"platform": platform, "delay_us": delay, "wait": wait},
            {"round_trip": 2 * delay + 10 + extra, "interrupts_per_wait": 0},
        )
        for platform, extra in (("none", 0), (paper.PLATFORM, 90))
        for delay in (0, 300, 600)
        for wait in WAITS
    ]
    chart = chart_of(paper.FIG2, points, "wait", "delay_us")
    assert [panel.title for panel in panels_of(chart)] == [
        "Round trip, platform shrimp-1996",
        "Round trip, this machine's own costs",
        "Interrupts per wait, platform shrimp-1996",
        "Interrupts per wait, this machine's own costs",
    ]
    first = panels_of(chart)[0]
    assert (first.axis.kind, first.axis.positions, first.log) == ("lines", (0, 300, 600), False)
    assert figures(first) == {wait: {0: 100, 1: 700, 2: 1300} for wait in WAITS}
    assert any(line.startswith("The paper: spin lowest") for line in chart.caption)


def five_pairs(
    change: Callable[[str, int], Figures] = lambda _wait, _pairs: {},
) -> list[dict[str, Any]]:
    """Figure 3 on both platforms: of 1000 us by pair 300 are user time and 200 system time."""
    return [
        a_point(
            {"platform": platform, "pairs": pairs, "wait": wait},
            {
                "wall_time": 1000 * pairs,
                "user_time": 300 * pairs,
                "system_time": 200 * pairs,
                "reschedules": pairs,
                **change(wait, pairs),
            },
        )
        for platform, some in (("none", (1, 2, 5, 10)), (paper.PLATFORM, (1, 5)))
        for pairs in some
        for wait in WAITS
    ]


def test_figure_3_has_stacks_of_wall_time_beside_reschedules() -> None:
    chart = chart_of(paper.FIG3, five_pairs(), "wait", "pairs")
    stacks, reschedules, own, _, by_pairs, _ = panels_of(chart)
    assert stacks.title == "Wall time, pairs 5, platform shrimp-1996"
    assert stacks.axis.words == WAITS
    assert list(figures(stacks).values()) == [
        dict.fromkeys(range(3), part) for part in (1500, 1000, 2500)
    ]
    assert {series.stack for series in stacks.series} == {"wall_time"}
    # The interval of the whole, 4500 to 5500, stands at the top.
    rest = stacks.series[-1].values[0]
    assert (rest.low, rest.high) == (2000, pytest.approx(3000))
    assert figures(reschedules) == {"this machine": dict.fromkeys(range(3), 5)}
    assert own.title == "Wall time, pairs 5, this machine's own costs"
    assert by_pairs.title == "Wall time, this machine's own costs"
    assert figures(by_pairs)["spin"] == {0: 1000, 1: 2000, 2: 5000, 3: 10_000}


def test_a_stack_that_lacks_a_part_is_missing_and_the_reason_is_noted() -> None:
    points = five_pairs(lambda wait, _: {"user_time": NO_ACCOUNT} if wait == "block" else {})
    chart = chart_of(paper.FIG3, points, "wait", "pairs")
    stacks = panels_of(chart)[0]
    assert [series.missing for series in stacks.series] == [(), (), (1,)]
    assert figures(stacks)["user time"] == {0: 1500, 2: 1500}
    note = "note: User time is not available at one place: the kernel gave no account"
    assert note in chart.caption
    chart = chart_of(paper.FIG3, five_pairs(lambda *_: {"user_time": NO_ACCOUNT}), "wait", "pairs")
    assert panels_of(chart)[0].reason == "the kernel gave no account"


def test_figure_4_groups_strategies_by_company_and_splits_cpu_time() -> None:
    points = [
        a_point(
            {"company": company, "wait": wait},
            {"block_time": 900, "block_cpu": 400, "block_user": 300, "block_system": 100},
        )
        for company in ("alone", "nice", "hog")
        for wait in WAITS
    ]
    times, cpu = panels_of(chart_of(paper.FIG4, points, "wait", "company"))
    assert times.axis.words == WAITS * 3
    assert [name for name, _ in times.axis.groups] == ["alone", "nice", "hog"]
    assert [at for _, at in times.axis.groups] == pytest.approx([1.0, 4.8, 8.6])
    assert times.axis.positions == pytest.approx((0, 1, 2, 3.8, 4.8, 5.8, 7.6, 8.6, 9.6))
    assert figures(times) == {"this machine": dict.fromkeys(range(9), 900)}
    assert figures(cpu) == {
        "user time": dict.fromkeys(range(9), 300),
        "system time": dict.fromkeys(range(9), 100),
    }


def test_the_competitive_ratio_has_a_line_at_two() -> None:
    points = [
        a_point(
            {"arrivals": arrivals, "wait": wait},
            {"competitive_ratio": 1.5, "waiting_cost": 300, "optimal_cost": 200},
        )
        for arrivals in ("fixed", "adversary")
        for wait in WAITS
    ]
    chart = chart_of(paper.COMPETITIVE, points, "wait", "arrivals")
    ratio, *others = panels_of(chart)
    assert (ratio.axis.kind, ratio.axis.words) == ("bars", ("fixed", "adversary"))
    assert ratio.title == "Cost over the optimum; the line is twice"
    assert [panel.baseline for panel in (ratio, *others)] == [2.0, None, None]


WALL = {"sched": 600, "block": 800, "spin-sched": 900, "spin-block": 1000}


def tipping(
    wall: Callable[[str, int, int], float | Mapping[str, Any]], *waits: str
) -> list[dict[str, Any]]:
    return [
        a_point(
            {"reschedule_cost_ns": reschedule, "interrupt_time_ns": interrupt, "wait": wait},
            {"wall_time": wall(wait, reschedule, interrupt)},
        )
        for reschedule in (0, 50_000)
        for interrupt in (0, 30_000, 100_000)
        for wait in waits or WALL
    ]


def test_the_tipping_point_is_a_grid_that_names_the_best() -> None:
    def wall(wait: str, reschedule: int, _interrupt: int) -> float:
        return WALL[wait] + (0 if wait == "spin-block" else reschedule / 50)

    chart = chart_of(paper.TIPPING, tipping(wall), "reschedule_cost_ns", "wait")
    best, pure = chart.panels
    assert isinstance(best, GridPanel)
    assert isinstance(pure, GridPanel)
    assert (best.columns, best.rows) == (("0", "30", "100"), ("0", "50"))
    cells = {(cell.column, cell.row): cell for cell in best.cells}
    assert len(cells) == 6
    assert (cells[0, 0].value, cells[0, 0].words) == (pytest.approx(0.8), "sched\n0.8")
    assert (cells[2, 1].value, cells[2, 1].words) == (pytest.approx(1.8), "spin-block\n1.8")
    assert pure.title.startswith("sched against block")
    assert [cell.value for cell in pure.cells if cell.row == 0] == pytest.approx([0.75] * 3)
    tips = "block takes longer than spin-block from 10 µs per reschedule"
    assert any(f"interrupt 30 µs: {tips}" in line for line in chart.caption)


def test_places_of_a_grid_without_a_figure_stay_empty() -> None:
    def some(wait: str, reschedule: int, _interrupt: int) -> float | Mapping[str, Any]:
        return NO_ACCOUNT if reschedule and wait == "spin-block" else WALL[wait]

    chart = chart_of(paper.TIPPING, tipping(some), "reschedule_cost_ns", "wait")
    best, pure = chart.panels
    assert isinstance(best, GridPanel)
    assert isinstance(pure, GridPanel)
    assert {cell.row for cell in best.cells} == {0}
    assert len(pure.cells) == 6
    note = "note: Wall time is not available at 3 places: the kernel gave no account"
    assert note in chart.caption
    chart = chart_of(paper.TIPPING, tipping(lambda *_: NO_ACCOUNT), "reschedule_cost_ns", "wait")
    assert [getattr(panel, "reason", "") for panel in chart.panels] == [
        *("the kernel gave no account", "the kernel gave no account")
    ]


@pytest.mark.parametrize(
    ("scenario", "params"),
    [
        (paper.FIG2, {"delay_us": 0, "wait": "spin", "pairs": 1}),
        (paper.FIG3, {"pairs": 1, "wait": "spin"}),
        (paper.FIG4, {"wait": "spin"}),
        (paper.COMPETITIVE, {"wait": "spin", "arrivals": "fixed", "spin_ns": 5}),
        (paper.TIPPING, {"reschedule_cost_ns": 0, "wait": "spin"}),
    ],
)
def test_other_axes_or_metrics_are_drawn_as_those_of_any_result(
    scenario: str, params: dict[str, Any]
) -> None:
    points = [a_point({**params, "wait": wait}, {"round_trip": 5}) for wait in ("spin", "block")]
    (panel,) = panels_of(chart_of(scenario, points, "wait", "wait"))
    assert panel.title.startswith("Round trip")
