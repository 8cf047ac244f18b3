"""`shrimpmx plot`: which results it draws, what it prints, and one sentence per mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.results import a_document, a_metric, a_point, load_fonts, write_result

from shrimpmx.cli import main


@pytest.fixture(scope="module", autouse=True)
def _fonts() -> None:
    """matplotlib keeps the files of its fonts open: before the first look at open files."""
    load_fonts()


def document(scenario: str = "mine/x", **changes: Any) -> dict[str, Any]:
    points = [a_point({"wait": wait}, {"other": 5}) for wait in ("spin", "block")]
    return a_document(scenario, points, "wait", **changes)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["plot", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["plot", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("shrimpmx: ")
    return captured.err


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
    ("damage", "sentence"),
    [
        (without("points"), "is damaged: 'points' is missing"),
        (without("environment"), "is damaged: 'environment' is missing"),
        (lambda r: r.update(schema=2), "has schema 2, this version of shrimpmx reads schema 1"),
        (lambda r: r.update(points={}), "is damaged: 'points' is no list"),
        (lambda r: r.update(points=[]), "has no finished point yet"),
        (lambda r: r.update(points=[7]), "is damaged: a point is no JSON object"),
        (lambda r: r.update(scenario=7), "is damaged: 'scenario' is not a name"),
        (lambda r: r.update(title=None), "is damaged: 'title' is not a text"),
        (lambda r: r.update(environment=[]), "is damaged: 'environment' is not an object"),
        (lambda r: r.update(layout={"rows": 7}), "is damaged: layout's 'rows' is not an axis"),
        (lambda r: r.update(layout={"axes": "n"}), "layout's 'axes' is not a list of axes"),
        (lambda r: r["points"][0].pop("metrics"), "is damaged: 'metrics' is missing"),
        (at_point(params=[]), "is damaged: a point's 'params' is not an object"),
        (at_point(params={"platform": []}), "a point's 'params' is not an object of parameters"),
        (at_point(params={}), "is damaged: a point has no"),
        (at_point(metrics=7), "is damaged: a point's 'metrics' is not an object"),
        (at_point(metrics={"other": 7}), "metric 'other' has neither samples nor a reason"),
        (
            at_point(metrics={"other": {"samples": [1]}}),
            "is damaged: other of a point has no median",
        ),
        (at_point(state=7), "is damaged: a point's 'state' is not a state of the CPUs"),
        (at_point(states="near"), "is damaged: a point's 'states' is not a list of states"),
        (at_point(limits=[7]), "is damaged: a point's 'limits' is not a list of reasons"),
        (at_point(disturbed=-1), "is damaged: a point's 'disturbed' is not a count"),
        (at_point(time_dilation=0), "a point's 'time_dilation' is not a number above 0"),
        (at_metric(samples=[1, "2", 3]), "metric 'other': 'samples' is not a list of numbers"),
        (at_metric(samples=[1, 2]), "metric 'other' has other samples than its repeats count"),
        (at_metric(repeats=[{"count": 3}]), "'repeats' is not a list of states and counts"),
        (at_metric(median="5"), "metric 'other': 'median' is not a number"),
        (at_metric(median=True), "metric 'other': 'median' is not a number"),
        (at_metric(median=10**400), "metric 'other': 'median' is not a number"),
        (at_metric(ci95=[1]), "metric 'other': 'ci95' is not two numbers"),
        (at_metric(unavailable=7), "metric 'other': 'unavailable' is not a reason"),
        (at_metric(scaled={"median": 1}), "metric 'other' has a median or an interval alone"),
        (at_metric(scaled={"median": 1, "ci95": [1, {}]}), "scaled 'ci95' is not two numbers"),
        (at_metric(scaled={}), "metric 'other': 'scaled' has no median or no scale"),
        (at_metric(scaled=scaled(0)), "metric 'other': scaled 'scale' is not a number above 0"),
        (at_metric(scaled=scaled("2")), "metric 'other': scaled 'scale' is not a number above 0"),
        (at_point(state="close"), "is damaged: a point's 'state' is not a state of the CPUs"),
        (at_point(states=["far"] * 3), "'other' has repeats of other states than the point's"),
        (without_states, "'other' has repeats of other states than the point's 'states'"),
        (at_point(counters={"nic": 3}), "a point's 'counters' is not an object of counters"),
        (at_point(per_message={"n": {"x": "1"}}), "'per_message' is not an object of counters"),
        (at_point(host_costs_ns={"packet": None}), "'host_costs_ns' is not an object of costs"),
        (lambda r: r.update(seed=-1), "is damaged: 'seed' is not a whole number from 0 on"),
        (lambda r: r.update(costs={"x": 0}), "is damaged: 'costs' is not an object of costs"),
    ],
)
def test_a_damaged_result_is_one_sentence(
    damage: Callable[[dict[str, Any]], None],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = json.loads(json.dumps(document()))
    damage(result)
    assert sentence in refusal(capsys, str(write_result(tmp_path / "r", result)))
    assert not (tmp_path / "r" / "plots").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema": 1, "sc', "is damaged: no JSON at line 1, column 15"),
        ("", "is damaged: no JSON at line 1, column 1"),
        ("[]", "is damaged: it holds no JSON object"),
        ("[" * 100_000, "is damaged: no result looks like this"),
        ('{"schema": ' + "1" * 5000 + "}", "is damaged: no result looks like this"),
        ('{"schema": "\xff"}', "cannot be read"),
    ],
)
def test_a_file_that_is_no_result(
    text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
    assert sentence in refusal(capsys, str(tmp_path))


def test_nothing_is_drawn_if_one_of_several_results_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_result(tmp_path / "good", document())
    write_result(tmp_path / "bad", {**document(), "points": [7]})
    assert "bad" in refusal(capsys, str(tmp_path / "good"), str(tmp_path / "bad"))
    assert not (tmp_path / "good" / "plots").exists()


def test_bad_arguments_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = str(write_result(tmp_path / "r", document()))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert "there is no result nowhere" in refusal(capsys, "nowhere")
    assert "holds no result: there is no run.json in it" in refusal(capsys, str(tmp_path / "empty"))
    assert "is no run.json; give" in refusal(capsys, str(tmp_path / "file"))
    assert "--format takes png and svg, not 'gif'" in refusal(capsys, result, "--format", "png,gif")
    assert "--format takes png and svg, not ''" in refusal(capsys, result, "--format", "")
    assert "are required: RESULT" in refusal(capsys)
    sentence = refusal(capsys, result, "--output", str(tmp_path / "file"))
    assert "cannot be written" in sentence
    assert "give another directory with --output" in sentence
    assert "cannot be read: File name too long" in refusal(capsys, "x" * 5000)


def test_texts_of_a_result_do_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ("$\\frac{$", "a\0b\x1b[2J", "<&\"'>--", "漢字" * 3000, "", "_hidden", "\n\n")
    points = [
        a_point({"wait": text, "n": {"deep": [1]}}, {texts[index % 2]: a_metric(5), "other": -1e17})
        for index, text in enumerate(texts)
    ]
    result = a_document(texts[0], points, "wait", title=texts[3], source=texts[2])
    place = write_result(tmp_path / "r", result)
    assert len(printed(capsys, str(place))) >= 2
