"""`shrimpmx plot`: which results it draws, what it prints, and one sentence per mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.results import a_document, a_metric, a_point, write_result

from shrimpmx.cli import main
from shrimpmx.papers.charts import charts_of, why_empty
from shrimpmx.show.plot.chart import MapPanel

REASON = {"unavailable": "the kernel gave none"}


def document(scenario: str = "mine/x", **changes: Any) -> dict[str, Any]:
    points = [a_point({"wait": wait}, {"other": 5}) for wait in ("spin", "block")]
    return a_document(scenario, points, "wait", **changes)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["plot", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def refused(capsys: pytest.CaptureFixture[str], words: str, *arguments: str) -> None:
    """One sentence with all these words and values."""
    assert main(["plot", *arguments]) == 2
    assert_refused(capsys, words)


@pytest.mark.parametrize("given", ["r", "r/run.json"])
def test_pictures_lie_beside_the_result(
    given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write_result(tmp_path / "r", document())
    expected = [place / "plots" / f"mine-x.{ending}" for ending in ("png", "svg")]
    assert printed(capsys, str(tmp_path / given)) == [str(path) for path in expected]
    assert all(path.stat().st_size > 5000 for path in expected)
    assert sorted(path.name for path in place.iterdir()) == ["plots", "run.json"]


def test_another_place_and_one_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_result(tmp_path / "r", document())
    out = tmp_path / "new" / "out"
    lines = printed(capsys, str(tmp_path / "r"), "--output", str(out), "--format", "SVG,svg")
    assert lines == [str(out / "mine-x.svg")]
    assert not (tmp_path / "r" / "plots").exists()


def test_a_directory_of_results_and_results_of_one_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for scenario in ("coalescing/a", "coalescing/b"):
        write_result(tmp_path / "all" / scenario, document(scenario))
    write_result(tmp_path / "again", document("coalescing/a"))
    arguments = [str(tmp_path / "all"), str(tmp_path / "again"), "--format", "png"]
    assert printed(capsys, *arguments, "--output", str(tmp_path / "out")) == [
        str(tmp_path / "out" / name)
        for name in ("coalescing-a.png", "coalescing-b.png", "2/coalescing-a.png")
    ]


def without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda result: result.pop(key)


def at_point(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda result: result["points"][1].update(changes)


def at_metric(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda result: result["points"][1]["metrics"]["other"].update(changes)


def scaled(scale: Any) -> dict[str, Any]:
    return {"median": 1, "ci95": [1, 1], "scale": scale}


def without_states(result: dict[str, Any]) -> None:
    del result["points"][1]["states"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (without("points"), "'points' missing"),
        (without("environment"), "'environment' missing"),
        (lambda r: r.update(schema=2), "schema 2 1"),
        (lambda r: r.update(points={}), "'points' list"),
        (lambda r: r.update(points=[]), "finished"),
        (lambda r: r.update(points=[7]), "damaged: point object"),
        (lambda r: r.update(scenario=7), "'scenario'"),
        (lambda r: r.update(title=None), "'title'"),
        (lambda r: r.update(environment=[]), "'environment'"),
        (lambda r: r.update(layout={"rows": 7}), "'rows'"),
        (lambda r: r.update(layout={"axes": "n"}), "'axes' list"),
        (lambda r: r["points"][0].pop("metrics"), "'metrics' missing"),
        (at_point(params=[]), "'params'"),
        (at_point(params={"platform": []}), "'params'"),
        (at_point(params={}), "damaged: point"),
        (at_point(metrics=7), "'metrics'"),
        (at_point(metrics={"other": 7}), "'other' samples"),
        (at_point(metrics={"other": {"samples": [1]}}), "other median"),
        (at_point(state=7), "'state'"),
        (at_point(states="near"), "'states' list"),
        (at_point(limits=[7]), "'limits' list"),
        (at_point(disturbed=-1), "'disturbed' count"),
        (at_point(time_dilation=0), "'time_dilation'"),
        (at_metric(samples=[1, "2", 3]), "'other' 'samples' list"),
        (at_metric(samples=[1, 2]), "'other' count repeats"),
        (at_metric(repeats=[{"count": 3}]), "'repeats' list"),
        (at_metric(median="5"), "'other' 'median'"),
        (at_metric(median=True), "'other' 'median'"),
        (at_metric(median=10**400), "'other' 'median'"),
        (at_metric(ci95=[1]), "'other' 'ci95'"),
        (at_metric(unavailable=7), "'other' 'unavailable'"),
        (at_metric(scaled={"median": 1}), "'other' median interval"),
        (at_metric(scaled={"median": 1, "ci95": [1, {}]}), "'ci95'"),
        (at_metric(scaled={}), "'other' 'scaled'"),
        (at_metric(scaled=scaled(0)), "'other' 'scale'"),
        (at_metric(scaled=scaled("2")), "'other' 'scale'"),
        (at_point(state="close"), "'state'"),
        (at_point(states=["far"] * 3), "'other' repeats"),
        (without_states, "'other' 'states' repeats"),
        (at_point(counters={"nic": 3}), "'counters'"),
        (at_point(per_message={"n": {"x": "1"}}), "'per_message'"),
        (at_point(host_costs_ns={"packet": None}), "'host_costs_ns'"),
        (lambda r: r.update(seed=-1), "'seed'"),
        (lambda r: r.update(costs={"x": 0}), "'costs'"),
    ],
)
def test_a_damaged_result_is_one_sentence(
    damage: Callable[[dict[str, Any]], None],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = json.loads(json.dumps(document()))
    damage(result)
    refused(capsys, words, str(write_result(tmp_path / "r", result)))
    assert not (tmp_path / "r" / "plots").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": 1, "sc', "run.json damaged: JSON line 1, column 15"),
        ("", "run.json damaged: JSON line 1, column 1"),
        ("[]", "run.json damaged: JSON object"),
        ("[" * 100_000, "run.json damaged:"),
        ('{"schema": ' + "1" * 5000 + "}", "run.json damaged:"),
        ('{"schema": "\xff"}', "run.json damaged text"),
    ],
)
def test_a_file_that_is_no_result(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
    refused(capsys, words, str(tmp_path))


def test_nothing_is_drawn_if_one_of_several_results_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_result(tmp_path / "good", document())
    write_result(tmp_path / "bad", {**document(), "points": [7]})
    refused(capsys, "bad/run.json", str(tmp_path / "good"), str(tmp_path / "bad"))
    assert not (tmp_path / "good" / "plots").exists()


def test_bad_arguments_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = str(write_result(tmp_path / "r", document()))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    refused(capsys, "nowhere", "nowhere")
    refused(capsys, f"{tmp_path}/empty run.json", str(tmp_path / "empty"))
    refused(capsys, f"{tmp_path}/file run.json", str(tmp_path / "file"))
    refused(capsys, "--format png svg 'gif'", result, "--format", "png,gif")
    refused(capsys, "--format png svg ''", result, "--format", "")
    refused(capsys, "RESULT")
    refused(capsys, f"{tmp_path}/file --output", result, "--output", str(tmp_path / "file"))
    refused(capsys, "read: name too long", "x" * 5000)


def test_texts_of_a_result_do_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ("$\\frac{$", "a\0b\x1b[2J", "<&\"'>--", "漢字" * 3000, "", "_hidden", "\n\n")
    points = [
        a_point({"wait": text, "n": {"deep": [1]}}, {texts[index % 2]: a_metric(5), "other": -1e17})
        for index, text in enumerate(texts)
    ]
    result = a_document(texts[0], points, "wait", title=texts[3], source=texts[2])
    place = write_result(tmp_path / "r", result)
    assert len(printed(capsys, str(place))) >= 2


@pytest.mark.parametrize("metrics", [{}, {"other": 5}], ids=["no figure", "one figure"])
def test_a_result_with_nothing_to_draw_is_noted_beside_others(
    metrics: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By itself, or with others of its kind, it is refused."""
    empty = [
        write_result(tmp_path / name, a_document("mine/x", [a_point({}, metrics)]))
        for name in ("a", "c")
    ]
    refused(capsys, f"{empty[0]} has nothing to draw", str(empty[0]))
    assert main(["plot", *map(str, empty)]) == 2
    assert capsys.readouterr().err.count("nothing to draw") == 2
    drawn = write_result(tmp_path / "b", document())
    assert main(["plot", str(tmp_path), "--format", "svg"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [str(drawn / "plots" / "mine-x.svg")]
    noted = captured.err.splitlines()
    assert [str(place) in line for place, line in zip(empty, noted, strict=True)] == [True, True]


def test_a_result_without_figures_says_why_it_has_no_charts() -> None:
    points = [a_point({"n": n}, {"other": REASON}) for n in (1, 2)]
    assert why_empty({"points": points}) == "no point of it has a figure"
    assert why_empty({"points": points[:1]}).startswith("its one point has one figure")


def test_a_map_needs_both_figures_of_a_strategy() -> None:
    points = [
        a_point({"coalescing": name}, {"half_round_trip": 10, "interrupts_per_message": number})
        for name, number in (("disabled", 1), ("timeout", REASON))
    ]
    made = a_document("coalescing/trade_off", points)
    ((panel,),) = (chart.panels for chart in charts_of(made))
    assert isinstance(panel, MapPanel)
    assert [spot.label for spot in panel.spots] == ["disabled"]
    for point in points:
        del point["metrics"]["interrupts_per_message"]
    assert not any(
        isinstance(panel, MapPanel) for chart in charts_of(made) for panel in chart.panels
    )


def test_limits_of_the_machine_stand_below_a_chart() -> None:
    points = [a_point({"n": n}, {"half_round_trip": 5}) | {"limits": ["one CPU"]} for n in (1, 2)]
    del points[0]["state"]
    (chart,) = charts_of(a_document("mine/x", points, "n"))
    assert any("one CPU" in line for line in chart.caption)
