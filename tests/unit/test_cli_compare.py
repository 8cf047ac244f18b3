"""`shrimpmx compare`: what changed between two results, and one sentence per mistake."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import assert_refused
from support.results import a_document, a_metric, a_point, write_result

from shrimpmx.cli import main
from shrimpmx.results.comparison import COMPARED_RUNS, OF_PLATFORM, compare


def runs(*values: float, state: str = "near") -> dict[str, Any]:
    """A metric with one sample per run."""
    repeats = [{"state": state, "count": 1}] * len(values)
    ends = [min(values), max(values)]
    middle = float(np.median(values))
    return {**a_metric(middle), "samples": list(values), "repeats": repeats, "ci95": ends}


def around(value: float, count: int = COMPARED_RUNS, state: str = "near") -> dict[str, Any]:
    """A metric whose runs lie within 2 % of a value."""
    return runs(*(value * (1 + share) for share in np.linspace(-0.02, 0.02, count)), state=state)


def stored(
    path: Path, points: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], **changes: Any
) -> Path:
    made = []
    for params, metrics in points:
        point = a_point(params, metrics)
        states = [[part["state"] for part in m["repeats"]] for m in point["metrics"].values()]
        made.append({**point, "states": max(states, default=[], key=len)})
    return write_result(path, a_document("mine/x", made, "wait", **changes))


def verdict(
    metric: str, one: Mapping[str, Any], other: Mapping[str, Any], least: float = 0.0
) -> str:
    first, second = (a_document("x", [a_point({"a": 1}, {metric: m})]) for m in (one, other))
    [(_, changes)] = compare(first, second, least=least).points
    return changes[metric].verdict


@pytest.mark.parametrize(
    ("metric", "one", "other", "word"),
    [
        ("half_round_trip", around(10), around(11), "slower"),
        ("half_round_trip", around(11), around(10), "faster"),
        ("message_rate", around(10), around(11), "faster"),
        ("interrupts_per_message", around(10), around(11), "more"),
        ("interrupts_per_message", around(11), around(10), "fewer"),
        ("half_round_trip", around(10), around(10.05), "no difference"),
        ("interrupts_per_message", runs(*[2.0] * 5), runs(*[2.0] * 5), "no difference"),
        ("interrupts_per_message", runs(*[0.0] * 5), runs(*[0.0] * 5), "no difference"),
        ("interrupts_per_message", runs(*[0.0] * 5), runs(*[1.0] * 5), "more"),
        ("half_round_trip", around(10, COMPARED_RUNS - 1), around(20), "inconclusive"),
        ("half_round_trip", around(10), around(20, state="far"), "not comparable"),
        ("interrupts_per_message", around(10), around(20, state="far"), "more"),
    ],
)
def test_verdicts(metric: str, one: dict[str, Any], other: dict[str, Any], word: str) -> None:
    assert verdict(metric, one, other) == word


def test_a_change_smaller_than_the_least_is_none() -> None:
    assert verdict("half_round_trip", around(10), around(11), 0.05) == "slower"
    assert verdict("half_round_trip", around(10), around(11), 0.2) == "no difference"
    assert verdict("half_round_trip", around(11), around(10), 0.2) == "no difference"


def test_times_of_emulated_hosts_are_compared_not_raw_ones() -> None:
    slow, fast = ({**around(10 * d), "scaled": {"scale": 1 / d}} for d in (2.0, 20.0))
    assert verdict("half_round_trip", slow, fast) == "no difference"


def test_two_sets_of_runs_of_one_distribution_differ_by_chance_in_few_cases() -> None:
    random = np.random.default_rng(7)
    found = [
        verdict("half_round_trip", *(runs(*random.lognormal(0, 0.1, COMPARED_RUNS)) for _ in "ab"))
        for _ in range(300)
    ]
    assert found.count("no difference") >= 0.93 * len(found)


def test_points_are_paired_by_what_they_have_in_common(tmp_path: Path) -> None:
    first = [
        ({"wait": wait, "platform": "none"}, {"half_round_trip": around(10)})
        for wait in ("spin", "block")
    ]
    second = [
        ({"wait": wait, "platform": "shrimp-1996"}, {"half_round_trip": around(20)})
        for wait in ("block", "sched")
    ]
    one, other = stored(tmp_path / "a", first), stored(tmp_path / "b", second)
    assert main(["compare", str(one), str(other), "--json", str(tmp_path / "c")]) == 0
    found = json.loads((tmp_path / "c").read_text())
    assert found["settings"] == [["platform", "none", "shrimp-1996"]]
    assert [point["params"] for point in found["points"]] == [{"wait": "block"}]
    change = found["points"][0]["metrics"]["half_round_trip"]
    assert change["verdict"] == "slower"
    assert change["ratio"]["median"] == pytest.approx(2)
    assert found["alone"] == [1, 1]


@pytest.mark.parametrize(
    ("set_here", "platform", "told"),
    [
        # The default of 75 and a set 75 are the same.
        ({"rx_usecs": 75}, "none", []),
        ({"rx_usecs": 20}, "none", [("rx_usecs", 75, 20)]),
        ({"wait": "spin"}, "none", [("wait", "block", "spin")]),
        ({"rx_usecs": 20}, "myri10g-2009", [("rx_usecs", f"75 {OF_PLATFORM}", 20)]),
        # No parameter of any group.
        ({"unheard_of": 3}, "none", [("unheard_of", None, 3)]),
    ],
)
def test_a_parameter_that_is_not_set_has_its_default(
    set_here: dict[str, Any], platform: str, told: list[tuple[str, Any, Any]]
) -> None:
    kept = {"nic": {"rx_usecs": 75}, "wait": {"strategy": "block"}, "platform": {"profile": "none"}}
    one, other = (
        a_document("x", [a_point({"platform": platform, **given}, {"run_time": around(1)})])
        | {"parameters": kept}
        for given in ({}, set_here)
    )
    for first, second, settings in (
        (one, other, told),
        (other, one, [(name, theirs, ours) for name, ours, theirs in told]),
    ):
        found = compare(first, second)
        assert list(found.settings) == settings
        assert len(found.points) == 1
        assert found.alone == (0, 0)


def test_points_where_a_parameter_is_set_and_where_not_are_matched_by_its_default() -> None:
    kept = {"nic": {"rx_usecs": 75}}
    several = [a_point({"rx_usecs": value}, {"run_time": around(1)}) for value in (20, 75)]
    one = a_document("x", [a_point({}, {"run_time": around(1)})]) | {"parameters": kept}
    found = compare(one, a_document("x", several) | {"parameters": kept})
    assert [place for place, _ in found.points] == [{"rx_usecs": 75}]
    assert found.alone == (0, 1)


def exact(value: float) -> dict[str, Any]:
    return {**runs(value, state="any"), "exact": True}


@pytest.mark.parametrize(
    ("one", "other", "word", "ratio"),
    [
        (exact(10), exact(10), "equal", 1),
        (exact(0), exact(0), "equal", None),
        (exact(10), exact(10.001), "slower", 1.0001),
        (exact(10), exact(5), "faster", 0.5),
        (exact(0), exact(5), "slower", None),
        (exact(10), runs(10, 10, state="any"), "inconclusive", 1),
        (exact(10), around(20, state="any"), "slower", 2),
        (exact(10), around(20, state="near"), "slower", 2),
        (runs(10, 10, state="any"), runs(10, 10, state="any"), "inconclusive", 1),
    ],
)
def test_exact_figures_are_equal_or_differ(
    one: dict[str, Any], other: dict[str, Any], word: str, ratio: float | None
) -> None:
    first, second = (a_document("x", [a_point({"a": 1}, {"run_time": m})]) for m in (one, other))
    change = compare(first, second).points[0][1]["run_time"]
    assert change.verdict == word
    assert (change.ratio and change.ratio.median) == (ratio and pytest.approx(ratio))
    if "exact" in one and "exact" in other and change.ratio:
        assert change.ratio.low == change.ratio.high


def test_a_changed_exact_figure_may_be_too_small_to_count() -> None:
    assert verdict("run_time", exact(10), exact(10.1), 0.05) == "no difference"


@pytest.mark.parametrize("command", ["run smoke/pingpong --set repeats=2 --seed 7", ""])
def test_too_few_runs_are_cured_by_a_command_that_fits_how_they_were_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    params = {"wait": "block", "program": "python", "arguments": "a b.py"}
    few = [(params, {"run_time": runs(10, 11)})]
    one, other = (
        stored(
            tmp_path / name,
            [(params, {"run_time": around(10)})] if name == "a" else few,
            command=f"shrimpmx {command}" if command else "",
            parameters={"nic": {"coalescing": "stream"}},
        )
        for name in "ab"
    )
    assert main(["compare", str(one), str(other)]) == 0
    [line] = [x for x in capsys.readouterr().out.splitlines() if "shrimpmx run" in x]
    _, _, cure = line.partition(": ")
    words = shlex.split(cure)
    assert [word for word in words if "repeats" in word] == [f"repeats={COMPARED_RUNS}"]
    if command:
        assert words[:3] == ["shrimpmx", "run", "smoke/pingpong"]
        assert words[3:5] == ["--seed", "7"]
    else:
        assert {"coalescing=stream", "wait=block", "arguments=a b.py"} <= set(words)


@pytest.mark.parametrize(
    ("workload", "runs_made", "told"),
    [("mpi", 1, True), ("program", 1, True), ("mpi", 2, False), ("pingpong", 1, False)],
)
def test_a_single_run_of_a_program_is_taken_as_exact_and_that_is_said(
    workload: str, runs_made: int, *, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [{**runs(*[value] * runs_made, state="any"), "exact": True} for value in (10.0, 11.0)]
    places = [
        stored(tmp_path / name, [({"workload": workload}, {"run_time": each})], engine="simulated")
        for name, each in zip("ab", figures, strict=True)
    ]
    assert main(["compare", *map(str, places)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "slower" in said
    assert ("count as exact" in said) == told
    assert ("to repeat A: " in said) == told


@pytest.mark.parametrize(
    ("engines", "platforms", "differ"),
    [
        (("simulated", "forked"), ("none", "none"), True),
        (("simulated", "simulated"), ("none", "myri10g-2009"), True),
        (("forked", "forked"), ("none", "none"), False),
    ],
)
def test_other_hosts_are_told_first(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    engines: tuple[str, str],
    platforms: tuple[str, str],
    *,
    differ: bool,
) -> None:
    places = [
        stored(tmp_path / name, [({"platform": platform}, {"run_time": around(10)})], engine=engine)
        for name, engine, platform in zip("ab", engines, platforms, strict=True)
    ]
    assert main(["compare", *map(str, places)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("hosts differ: ") == differ
    if differ:
        assert "simulated hosts" in first


def test_a_pipe_gets_all_figures_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = {f"parameter_{number}": f"a-long-value-{number}" for number in range(9)}
    points = [({**place, "size_bytes": size}, {"half_round_trip": around(10)}) for size in (1, 2)]
    one = str(stored(tmp_path / "a", points))
    assert main(["compare", one, one]) == 0
    assert "…" not in capsys.readouterr().out


def test_a_document_has_the_standard_output_to_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = str(stored(tmp_path / "a", [({"wait": "spin"}, {"half_round_trip": around(10)})]))
    assert main(["compare", one, one, "--json", "-"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["points"]
    assert "no difference" in said.err
    assert main(["compare", one, one]) == 0
    assert "no difference" in capsys.readouterr().out


def test_a_document_outlives_a_report_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = str(stored(tmp_path / "a", [({"wait": "spin"}, {"half_round_trip": around(10)})]))
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert main(["compare", one, one, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["points"]


def test_figures_ratio_and_what_differs_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [[({"wait": "spin"}, {"half_round_trip": around(us)})] for us in (10, 20)]
    one = stored(tmp_path / "a", points[0])
    environment = {"cpu_model": "Another CPU", "time": "2026-01-02T03:04:05+00:00"}
    other = stored(tmp_path / "b", points[1], environment=environment)
    assert main(["compare", str(one), str(other / "run.json")]) == 0
    text = capsys.readouterr().out
    for words in ("10.00", "20.00", "2.00", "slower", "'Test CPU'", "'Another CPU'"):
        assert words in text


def test_a_verdict_that_a_job_looks_for_gives_exit_code_1(tmp_path: Path) -> None:
    one, other = (
        stored(tmp_path / name, [({"wait": "spin"}, {"half_round_trip": around(us)})])
        for name, us in (("a", 10), ("b", 20))
    )
    assert main(["compare", str(one), str(other), "--fail-on", "slower,inconclusive"]) == 1
    assert main(["compare", str(other), str(one), "--fail-on", "slower"]) == 0
    assert main(["compare", str(one), str(one), "--fail-on", "slower,faster,more,fewer"]) == 0
    assert main(["compare", str(one), str(other), "--metrics", "message-rate"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a", "nowhere"], "nowhere"),
        (["a", "elsewhere"], "no point in common"),
        (["a", "empty"], "no finished point"),
        (["a", "other"], "no metric in common"),
        (["a", "a", "--metrics", "beauty"], "beauty"),
        (["a", "a", "--least", "-1"], "--least"),
        (["a", "a", "--least", "nan"], "--least"),
        (["a", "a", "--fail-on", "ugly"], "ugly"),
        (["a"], "required"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    spins = {"wait": "spin"}
    stored(Path("a"), [(spins, {"half_round_trip": around(10)}), ({"wait": "block"}, {})])
    stored(Path("elsewhere"), [({"wait": w}, {"half_round_trip": 1.0}) for w in ("x", "y")])
    stored(Path("empty"), [])
    stored(Path("other"), [(spins, {"message_rate": 1.0}), ({"wait": "block"}, {})])
    assert main(["compare", *arguments]) == 2
    assert_refused(capsys, words)
