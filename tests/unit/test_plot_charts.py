"""From a result to charts: which panels and series there are, with which figures."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.results import a_document, a_metric, a_point

from shrimpmx.errors import InputError
from shrimpmx.papers.charts import PANELS_MAX, charts_of
from shrimpmx.papers.coalescing2009.figures import ALL_MARKS
from shrimpmx.show.plot.chart import Chart, MapPanel, Panel, Series, Value
from shrimpmx.show.plot.panels import HERE

SIZES = (0, 128, 32768)
WORDS = ("may sleep", "kept awake")
REASON = {"unavailable": "the kernel gave none"}


def only(charts: list[Chart]) -> Chart:
    assert len(charts) == 1
    return charts[0]


def panels_of(chart: Chart) -> list[Panel]:
    assert all(isinstance(panel, Panel) for panel in chart.panels)
    return [panel for panel in chart.panels if isinstance(panel, Panel)]


def figures(panel: Panel, paper: bool = False) -> dict[str, dict[int, float]]:
    """The figures of our series, or of the paper's, by label and place."""
    return {
        series.label: {place: round(value.y, 6) for place, value in series.values.items()}
        for series in panel.series
        if series.paper == paper
    }


def by_size(scenario: str, names: tuple[str, ...] = ("disabled", "timeout")) -> dict[str, Any]:
    """Half round trips: 10 us and 75 us at 0 B, more with the size; six times dilated."""
    points = [
        a_point(
            {"size_bytes": size, "coalescing": name},
            {"half_round_trip": (75 if name == "timeout" else 10) + size / 1024},
            dilation=6.0,
        )
        for size in SIZES
        for name in names
    ]
    return a_document(scenario, points, "size_bytes", "coalescing")


def test_figure_4_has_a_line_for_each_kind_of_host_over_the_delay() -> None:
    rates = {("disabled", 75): 200, ("timeout", 75): 433, ("timeout", 5): 300}
    points = [
        a_point(
            {"coalescing": name, "rx_usecs": delay, "idle": idle, "irq_binding": "round-robin"},
            {"message_rate": rate + (idle == "awake")},
        )
        for (name, delay), rate in rates.items()
        for idle in ("sleep", "awake")
    ]
    document = a_document("coalescing/scattered_cores", points, "rx_usecs", "idle")
    (panel,) = panels_of(only(charts_of(document)))
    assert panel.axis.words == ("0 µs", "5 µs", "75 µs")
    assert panel.axis.positions == (0.0, 5.0, 75.0)
    asleep, awake = (f"cores {words}, interrupts to all cores in turn" for words in WORDS)
    assert figures(panel) == {asleep: {0: 200, 1: 300, 2: 433}, awake: {0: 201, 1: 301, 2: 434}}
    assert figures(panel, paper=True) == {f"paper: {asleep}": {0: 216.5, 2: 433}}
    (paper,) = (series for series in panel.series if series.paper)
    assert [paper.values[place].bound for place in (0, 2)] == [True, False]


def test_points_of_another_distance_are_starred_and_the_caption_says_so() -> None:
    document = by_size("mine/x", ("timeout",))
    point = document["points"][1]
    point["state"] = point["metrics"]["half_round_trip"]["state"] = "far"
    chart = only(charts_of(document))
    (panel,) = panels_of(chart)
    starred = {place for place, v in panel.series[0].values.items() if v.starred}
    assert starred == {1}
    assert any("figures marked * have" in line for line in chart.caption)


def test_any_result_has_a_panel_per_metric_and_a_line_per_column() -> None:
    points = [
        a_point({"size_bytes": size, "wait": wait}, {"half_round_trip": 20 + size, "other": 5})
        for size in SIZES
        for wait in ("spin", "block")
    ]
    chart = only(charts_of(a_document("mine/x", points, "size_bytes", "wait")))
    assert (chart.name, chart.title) == ("mine-x", "What is it?")
    first, second = panels_of(chart)
    assert first.title == "Half round trip"
    assert first.y_label == "Half round trip, µs\n(lower is better)"
    assert second.y_label == "Other"
    assert figures(first) == {name: {0: 20, 1: 148, 2: 32788} for name in ("spin", "block")}
    assert first.log
    assert not second.log
    assert (first.axis.kind, first.axis.label) == ("lines", "message size")
    assert first.axis.words == ("0 B", "128 B", "32 KiB")
    # By their logarithms to base 2; nothing at all stands one step before the smallest.
    assert first.axis.positions == (6.0, 7.0, 15.0)


def test_a_single_figure_is_no_chart() -> None:
    params = {"program": "ring.py", "wait": "spin"}
    document = a_document("x", [a_point(params, {"run_time": 5, "run_interrupts": 3})])
    document["layout"]["axes"] = []
    assert charts_of(document) == []


def test_values_that_no_line_joins_are_bars() -> None:
    points = [a_point({"wait": wait}, {"other": 5}) for wait in ("spin", "sched", "block")]
    (panel,) = panels_of(only(charts_of(a_document("x", points, "wait"))))
    assert panel.axis.kind == "bars"
    assert figures(panel) == {"this machine": {0: 5, 1: 5, 2: 5}}


def test_columns_alone_are_drawn_along_the_axis() -> None:
    points = [a_point({"coalescing": name}, {"other": 5}) for name in ("timeout", "stream")]
    (panel,) = panels_of(only(charts_of(a_document("x", points, None, "coalescing"))))
    assert panel.axis.words == ("timeout", "stream")
    assert figures(panel) == {"this machine": {0: 5, 1: 5}}


def test_places_that_the_sweep_leaves_out_have_no_panel() -> None:
    points = [
        a_point({"n": n, "early": early, "late": late, "seed": seed}, {"other": 5})
        for n in (1, 2, 3)
        for early, late in ((0, 0), (0, 1), (1, 0))
        for seed in (1, 2)
    ]
    panels = panels_of(only(charts_of(a_document("x", points, "n"))))
    # The last axis has few values: it gives series.
    assert [[series.style for series in panel.series] for panel in panels] == [[0, 1]] * 3


@pytest.mark.parametrize(
    ("values", "positions"),
    [
        ((1, 2, 3), (1.0, 2.0, 3.0)),
        ((0, 1, 64), (-1.0, 0.0, 6.0)),
        ((0, 600), (0.0, 1.0)),  # two are bars
        ((True, False, 3), (0.0, 1.0, 2.0)),
    ],
)
def test_where_numbers_stand(values: tuple[Any, ...], positions: tuple[float, ...]) -> None:
    points = [a_point({"n": value}, {"other": 5}) for value in values]
    (panel,) = panels_of(only(charts_of(a_document("x", points, "n"))))
    assert panel.axis.positions == positions


def test_other_axes_make_panels_and_many_panels_make_charts() -> None:
    points = [
        a_point({"wait": "spin", "n": n, "mode": mode}, {"a": 1, "b": 2, "c": 3})
        for n in (1, 2, 3)
        for mode in ("two-node", "generator", "other", "more", "most")
    ]
    charts = charts_of(a_document("x", points, "n", "wait"))
    assert [len(chart.panels) for chart in charts] == [PANELS_MAX, 15 - PANELS_MAX]
    assert [chart.name for chart in charts] == ["x", "x-2"]
    titles = [panel.title for chart in charts for panel in panels_of(chart)]
    assert titles[0] == "A, two-node mode"
    assert len(set(titles)) == 15


def test_times_are_those_of_the_emulated_platform_and_the_caption_says_so() -> None:
    chart = only(charts_of(by_size("mine/x")))
    (panel,) = panels_of(chart)
    (disabled, timeout) = panel.series
    assert timeout.values[0] == Value(75.0, 67.5, pytest.approx(82.5))
    assert disabled.values[0].y == 10.0
    assert any("measured times divided by the dilation, 6" in line for line in chart.caption)
    assert any("Test CPU, 2 CPUs, Linux 6, virtual machine, 2026-01-02" in x for x in chart.caption)
    assert "Distance of the CPUs, by a cache line's round trip: near at 6 of 6 points." in (
        chart.caption
    )
    assert not any("Hollow" in line for line in chart.caption)


def test_what_is_not_available_is_said() -> None:
    points = [
        a_point({"wait": "spin"}, {"all": 1, "some": 2, "none": REASON}),
        a_point({"wait": "block"}, {"all": 1, "some": REASON, "none": REASON}, state="mixed"),
    ]
    chart = only(charts_of(a_document("x", points, "wait", complete=False)))
    everything, some, none = panels_of(chart)
    assert (everything.reason, some.reason, none.reason) == ("", "", "the kernel gave none")
    assert some.series[0].missing == (1,)
    assert none.series == ()
    notes = [line for line in chart.caption if line.startswith("note: ")]
    assert notes == [
        "note: Some is not available at one place: the kernel gave none",
        "note: the sweep was interrupted: some points are missing",
    ]


RATES = (("disabled", 200), ("timeout", 400))


def figure_4() -> dict[str, Any]:
    """A result of figure 4: the platform dilated 16 times, and all hosts without one."""

    def point(platform: str, name: str, idle: str, binding: str, rate: float) -> dict[str, Any]:
        params = {"platform": platform, "coalescing": name, "idle": idle, "irq_binding": binding}
        emulated = platform != "none"
        metric = a_metric(rate, 16.0 if emulated else 1.0, rate=True)
        state = "any" if emulated else "near"
        return a_point(params, {"message_rate": metric}, 16.0 if emulated else 1.0, state)

    points = [
        *(point("myri10g-2009", name, "sleep", "0", rate) for name, rate in RATES),
        *(
            point("none", name, idle, binding, 2 * rate + 50 * (idle == "awake") + own)
            for name, rate in RATES
            for idle in ("sleep", "awake")
            for binding, own in (("0", 10), ("round-robin", 0))
        ),
    ]
    parameters = {"platform": {"profile": "none"}, "nic": {"rx_usecs": 75}}
    return a_document("coalescing/fig4_message_rate", points, parameters=parameters)


def test_figure_4_has_the_paper_beside_the_platform_and_this_machines_own_costs_apart() -> None:
    chart = only(charts_of(figure_4()))
    platform, own = panels_of(chart)
    assert (platform.title, own.title) == (
        "Message rate, platform myri10g-2009", "Message rate, this machine's own costs",
    )  # fmt: skip
    assert platform.axis.words == own.axis.words == ("disabled, 0 µs", "timeout, 75 µs")
    assert figures(platform) == {"this machine": {0: 200, 1: 400}}
    assert figures(platform, paper=True) == {"paper": {0: 216.5, 1: 433}}
    (paper,) = [series for series in platform.series if series.paper]
    assert (paper.values[0].bound, paper.values[1].bound) == (True, False)
    assert figures(own) == {
        "cores may sleep, interrupts to core 0": {0: 410, 1: 810},
        "cores may sleep, interrupts to all cores in turn": {0: 400, 1: 800},
        "cores kept awake, interrupts to core 0": {0: 460, 1: 860},
        "cores kept awake, interrupts to all cores in turn": {0: 450, 1: 850},
    }
    assert figures(own, paper=True) == {}
    assert any("433 thousand messages/s" in line for line in chart.caption)
    assert any("Hollow: the paper's figures." in line for line in chart.caption)


def test_a_caption_tells_times_of_a_platform_from_those_of_this_machine() -> None:
    chart = only(charts_of(figure_4()))
    assert (
        "Times are those of the platform myri10g-2009: measured times divided by the dilation, "
        "16; without a dilation they are as measured."
    ) in chart.caption
    assert (
        "Distance of the CPUs, by a cache line's round trip: near at 8 of 10 points; "
        "at the others times are dilated so much that it does not matter."
    ) in chart.caption


def test_figure_4_without_a_platform_is_one_panel() -> None:
    document = figure_4()
    document["points"] = [p for p in document["points"] if p["params"]["platform"] == "none"]
    chart = only(charts_of(document))
    (own,) = panels_of(chart)
    assert len(figures(own)) == 4
    assert "Times are as measured (no time dilation)." in chart.caption


@pytest.mark.parametrize(
    ("scenario", "names"),
    [
        ("coalescing/fig5_pingpong", ("disabled", "timeout")),
        ("coalescing/fig6_openmx_pingpong", ("disabled", "timeout", "open-mx")),
    ],
)
def test_figures_5_and_6_are_relative_to_no_coalescing(
    scenario: str, names: tuple[str, ...]
) -> None:
    relative, absolute = panels_of(only(charts_of(by_size(scenario, names))))
    assert relative.baseline == 1.0
    ours = figures(relative)
    assert list(ours) == list(names)
    assert ours["disabled"] == {0: 1.0, 1: 1.0, 2: 1.0}
    assert ours["timeout"] == {0: 7.5, 1: round(75.125 / 10.125, 6), 2: round(107 / 42, 6)}
    assert figures(relative, paper=True) == {"paper: timeout": {0: 7.5}}
    assert figures(absolute)["timeout"] == {0: 75, 1: 75.125, 2: 107}
    assert figures(absolute, paper=True) == {
        "paper: disabled": {0: 10}, "paper: timeout": {0: 75},
    }  # fmt: skip
    (timeout,) = [series for series in relative.series if series.label == "timeout"]
    ratio = timeout.values[0]
    assert ratio.low < 7.5 < ratio.high


def test_a_figure_whose_axes_were_changed_is_drawn_like_any_other() -> None:
    document = by_size("coalescing/fig5_pingpong", ("timeout", "open-mx"))
    (panel,) = panels_of(only(charts_of(document)))
    assert panel.title == "Half round trip"


def test_table_1_has_a_panel_per_size_with_the_papers_rates() -> None:
    names = ("disabled", "timeout", "open-mx", "stream")
    points = [
        a_point(
            {"size_bytes": size, "coalescing": name},
            {"message_rate": 100.0, "interrupts_per_message": 1.0},
        )
        for size in (0, 32768, 1 << 20)
        for name in names
    ]
    chart = only(charts_of(a_document("coalescing/table1_message_rate", points)))
    *rates, interrupts = panels_of(chart)
    assert [panel.title for panel in rates] == [
        f"Message rate, messages of {size}" for size in ("0 B", "32 KiB", "1 MiB")
    ]
    assert [figures(panel, paper=True)["paper"] for panel in rates] == [
        {0: 252, 1: 490, 2: 423, 3: 435},
        {0: 6.476, 1: 14.507, 2: 14.533, 3: 14.691},
        {0: 0.334, 1: 0.452, 2: 0.451, 3: 0.447},
    ]
    assert list(figures(interrupts)) == list(names)
    assert (interrupts.axis.kind, interrupts.axis.words) == ("bars", ("0 B", "32 KiB", "1 MiB"))


def test_table_2_shows_what_each_mark_saves_in_platform_time() -> None:
    saved = {"rndv": 30.0, "pull-request": 10.0, "pull-reply": 4.0, "notify": 0.0}
    sets = [ALL_MARKS, *([m for m in ALL_MARKS if m != off] for off in ALL_MARKS)]
    points = [
        a_point(
            {"coalescing": name, "marks": marks},
            {
                "transfer": 700 + sum(v for mark, v in saved.items() if mark not in marks),
                "interrupts_per_message": 14.0,
            },
            dilation=6.0,
        )
        for name in ("timeout", "open-mx")
        for marks in sets
    ]
    document = a_document("coalescing/table2_anatomy", points)
    transfer, interrupts, marks = panels_of(only(charts_of(document)))
    assert figures(transfer) == {"this machine": {0: 700, 1: 700}}
    assert figures(transfer, paper=True) == {"paper": {0: 762, 1: 708}}
    assert figures(interrupts, paper=True) == {"paper": {0: 14.4, 1: 13.7}}
    assert figures(marks) == {"this machine": {0: 30, 1: 10, 2: 4, 3: 0}}
    assert figures(marks, paper=True) == {"paper": {0: 20, 1: 5, 2: 2, 3: 0}}
    assert marks.axis.words == ("rendezvous", "pull requests", "last pull replies", "notify")


def test_table_3_tells_a_moved_mark_from_packets_out_of_order() -> None:
    points = [
        a_point({"mark_early": early, "overtake": over, "coalescing": name}, {"transfer": time})
        for early, over, time in ((0, 0, 150), (1, 0, 170), (3, 0, 180), (0, 1, 190), (0, 3, 200))
        for name in ("open-mx", "stream")
    ]
    moved, real = panels_of(only(charts_of(a_document("coalescing/table3_misordering", points))))
    assert figures(moved)["stream"] == {0: 150, 1: 170, 2: 180}
    assert figures(moved, paper=True) == {
        "paper: open-mx": {0: 156, 1: 177, 2: 177},
        "paper: stream": {0: 156, 1: 171, 2: 174},
    }
    assert figures(real)["stream"] == {0: 150, 1: 190, 2: 200}
    assert moved.axis.kind == "bars"


def test_the_trade_off_is_a_map_of_all_strategies() -> None:
    points = [
        a_point(
            {"coalescing": name},
            {
                "half_round_trip": latency,
                "interrupts_per_message": interrupts,
                "cpu_per_message": cpu if cpu else REASON,
            },
        )
        for name, latency, interrupts, cpu in (
            ("disabled", 10, 1, 4),
            ("timeout", 75, 0.05, 2),
            ("dim", 14, 0.3, None),
        )
    ]
    chart = only(charts_of(a_document("coalescing/trade_off", points)))
    (panel,) = chart.panels
    assert isinstance(panel, MapPanel)
    assert [(spot.label, spot.x.y, spot.y.y, spot.size) for spot in panel.spots] == [
        ("disabled", 10, 1, 4), ("timeout", 75, 0.05, 2), ("dim", 14, 0.3, None),
    ]  # fmt: skip
    assert (panel.largest, panel.log_y, panel.title) == (4, True, "")
    assert any("not available at one place: the kernel gave none" in x for x in chart.caption)


def test_a_strategy_has_one_style_in_all_pictures() -> None:
    def style(name: str, chart: Chart) -> int:
        found: list[Series] = [x for x in panels_of(chart)[0].series if x.label == name]
        return found[0].style

    two = only(charts_of(by_size("mine/x", ("timeout", "stream"))))
    four = only(charts_of(by_size("mine/x", ("stream", "open-mx", "timeout", "disabled"))))
    for name in ("timeout", "stream"):
        assert style(name, two) == style(name, four)


def test_runs_at_different_distances_are_said() -> None:
    far = a_metric(20)
    far |= {"state": "far", "repeats": [{"state": "far", "count": 1}] * 3}
    points = [
        a_point({"size_bytes": 0, "coalescing": "disabled"}, {"half_round_trip": 10}),
        a_point({"size_bytes": 0, "coalescing": "timeout"}, {"half_round_trip": far}, state="far"),
    ]
    chart = only(charts_of(a_document("coalescing/fig5_pingpong", points)))
    assert figures(panels_of(chart)[0])["timeout"] == {0: 2.0}
    assert any("CPUs at different distances" in line for line in chart.caption)


@pytest.mark.parametrize(
    ("scenario", "name"),
    [("../../etc/x", "etc-x"), ("a b\0c", "a-b-c"), ("..", "result"), ("x" * 99, "x" * 60)],
)
def test_a_file_is_named_after_the_scenario_whatever_it_is_called(scenario: str, name: str) -> None:
    points = [a_point({"n": n}, {"other": 5}) for n in (1, 2)]
    document = a_document(scenario, points, "n")
    assert re.fullmatch(name, only(charts_of(document)).name)


def test_a_result_without_points_has_no_charts() -> None:
    with pytest.raises(InputError, match="has no finished point yet"):
        charts_of(a_document("x", []))


def with_tail(median: float, **tail: float) -> dict[str, Any]:
    """A half round trip, and how far its slow ones go; twice dilated."""
    metric = a_metric(median, 2.0)
    metric["scaled"] |= tail
    return {**metric, **{name: 2 * value for name, value in tail.items()}}


def test_percentiles_and_maximum_have_a_picture_of_their_own() -> None:
    tails = [
        {"p99": 20.0, "p99.9": 50.0, "max": 90.0},
        {"p99": 30.0, "max": 40.0},  # too few samples for p99.9
        {"max": 11.0},  # and for any
    ]
    points = [
        a_point({"size_bytes": size}, {"half_round_trip": with_tail(10.0, **tail)}, 2.0)
        for size, tail in zip(SIZES, tails, strict=True)
    ]
    first, tail_chart = charts_of(a_document("x", points, "size_bytes"))
    assert figures(panels_of(first)[0]) == {HERE: {0: 10, 1: 10, 2: 10}}
    assert tail_chart.name == f"{first.name}-percentiles"
    (panel,) = panels_of(tail_chart)
    assert figures(panel) == {
        "median": {0: 10, 1: 10},
        "p99": {0: 20, 1: 30},
        "p99.9": {0: 50},
        "max": {0: 90, 1: 40},
    }
    assert panel.axis.words == panels_of(first)[0].axis.words


def test_each_strategy_has_a_panel_of_percentiles() -> None:
    metric = with_tail(10.0, p99=20.0, max=3000.0)
    points = [
        a_point({"size_bytes": size, "coalescing": name}, {"half_round_trip": metric}, 2.0)
        for size in SIZES
        for name in ("disabled", "timeout")
    ]
    _, chart = charts_of(a_document("x", points, "size_bytes", "coalescing"))
    panels = panels_of(chart)
    assert len(panels) == 2
    assert all(panel.log for panel in panels)
    assert ["timeout" in panel.title for panel in panels] == [False, True]


@pytest.mark.parametrize(("median", "log"), [(10.0, True), (0.0, False)])
def test_percentiles_of_one_unit_have_one_kind_of_axis(median: float, log: bool) -> None:
    narrow = with_tail(10.0, p99=20.0, max=30.0)
    trips = {
        "disabled": with_tail(10.0, p99=20.0, max=3000.0),
        "timeout": with_tail(median, p99=20.0, max=30.0),  # 0 has no logarithm
    }
    points = [
        a_point({"n": 1, "coalescing": name}, {"half_round_trip": trip, "message_rate": narrow})
        for name, trip in trips.items()
    ]
    _, chart = charts_of(a_document("x", points, "n", "coalescing"))
    logs = [(panel.title.partition(",")[0], panel.log) for panel in panels_of(chart)]
    assert logs == [("Half round trip", log)] * 2 + [("Message rate", False)] * 2
