"""`shrimpmx reproduce` with claims and scenarios made for it: what runs, what is kept and said."""

from __future__ import annotations

import functools
import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.cli import assert_refused

from shrimpmx.cli import main, reproduce
from shrimpmx.errors import AgentError, DeadlineError, InputError
from shrimpmx.experiment import execute
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.progress_bar import Bar
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.papers import comparable_runs, reproduction
from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.results import expectation
from shrimpmx.results.disturbance import QUIET
from shrimpmx.results.expectation_kinds import Near, Ratio
from shrimpmx.results.metrics import Outcome

SCENARIO = """\
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(
    name="paper/{name}", title="{name}", metrics=("interrupts_per_message",), repeats=3,
    sweep={{"size_bytes": (0, 32, 64), "coalescing": ("disabled", "stream")}},
)
"""
METRIC = "interrupts_per_message"
DISABLED, STREAM = {"coalescing": "disabled"}, {"coalescing": "stream"}


def near(name: str, size_bytes: int, value: float) -> Statistic:
    of = {**DISABLED, "size_bytes": size_bytes}
    expected = Near(text="interrupts", metric=METRIC, of=of, value=value)
    return Statistic(scenario=f"{name}.py", expectation=expected)


def claim(number: int, *statistics: Statistic, **more: Any) -> Claim:
    texts = {"kind": "count", "source": "table I", "setup": f"What {number}.", "paper": "many"}
    return Claim(id=f"AB-{number}", statistics=statistics, **{**texts, **more})


HALF = Statistic(
    scenario="one.py",
    expectation=Ratio(
        text="half", metric=METRIC, of={**STREAM, "size_bytes": 32}, to=DISABLED, at_most=0.6
    ),
)
CLAIMS = (
    claim(1, near("one", 0, 10)),
    claim(2, HALF, kind="ratio"),
    claim(3, near("two", 0, 50)),
    claim(4, near("three", 0, 10), cpus=4096),
    claim(5, missing="needs what there is not"),
)
Behaviour = Callable[[Point], None]
WHOLE, ALL = ["--whole"], {"one": 6, "two": 6}


class Runs:
    """What ran: sizes and strategies; `before` is called first and may raise."""

    def __init__(self) -> None:
        self.points: list[tuple[int, str]] = []
        self.neighbours: list[int] = []
        self.printed: list[Path] = []
        self.before: Behaviour = lambda _point: None

    def __call__(self, point: Point) -> Outcome:
        self.before(point)
        way = str(point.shown["coalescing"])
        self.points.append((point.shown["size_bytes"], way))
        counters = {
            "node0.nic": {"irq_raised": 1000 if way == "disabled" else 500},
            "rank0": {"recv_messages": 100},
        }
        return Outcome(np.full(10, 20_000.0), counters, placement={})


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    """Two scenarios and the claims on them, with an executor that only remembers."""
    found = Runs()

    class Fake:
        def __init__(self, *arguments: Any) -> None:
            found.printed.append(arguments[-1].printed)

        def __call__(self, point: Point, _seed: int) -> Outcome:
            return found(point)

        def emulated(self, _point: Point) -> Any:
            return SimpleNamespace(dilation=1.0)

        def timeline(self, *_arguments: Any) -> None: ...

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(execute, "ClusterExecutor", Fake)
    monkeypatch.setattr(reproduce, "PAPERS", {"tiny": CLAIMS})
    # As few runs as the scenarios have.
    for module in (reproduction, expectation, comparable_runs):
        monkeypatch.setattr(module, "CLAIM_RUNS", 3)
    # A machine under load flips between two probes, and such a run is taken again.
    steady = functools.partial(
        Sweep,
        prober=lambda _cpus: ("near", 100.0),
        figures=replace(QUIET, neighbours=lambda: found.neighbours),
    )
    monkeypatch.setattr(execute, "Sweep", steady)
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(SCENARIO.format(name=name))
    return found


def claims_of(path: str) -> dict[str, dict[str, Any]]:
    return {found["id"]: found for found in json.loads(Path(path).read_text())["claims"]}


@pytest.mark.parametrize(("more", "points"), [([], {"one": 3, "two": 1}), (WHOLE, ALL)])
def test_a_paper_runs_each_scenario_once_and_judges_all(
    more: list[str], points: dict[str, int], runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["reproduce", "tiny", *more, "--output", "r", "--json", "r.json", "--seed", "3"]
    assert main(arguments) == 0
    assert len(runs.points) == 3 * sum(points.values())
    found = claims_of("r.json")
    assert {name: each["result"] for name, each in found.items()} == {
        "AB-1": "size",
        "AB-2": "size",
        "AB-3": "trace",
        "AB-4": "needs",
        "AB-5": "needs",
    }
    assert set(found["AB-1"]) >= {
        *("id", "result", "evidence", "measured", "ci95", "unit", "reason")
    }
    assert (found["AB-1"]["measured"], found["AB-1"]["ci95"]) == (10.0, [10.0, 10.0])
    assert (found["AB-2"]["measured"], found["AB-2"]["unit"]) == (0.5, "ratio")
    assert "expected 42.5 to 57.5" in found["AB-3"]["reason"]
    assert (found["AB-4"]["measured"], found["AB-4"]["ci95"]) == (None, None)
    assert found["AB-4"]["reason"].startswith("needs 4096 CPUs, and this process may use")
    assert found["AB-5"]["reason"] == "needs what there is not"
    for name, count in points.items():
        document = json.loads(Path(f"r/paper-{name}/run.json").read_text())
        assert (document["complete"], document["seed"], len(document["points"])) == (True, 3, count)
    assert claims_of("r/claims.json") == found
    out = capsys.readouterr().out
    assert f"claims: 5; scenarios: 2; runs: {len(runs.points)}" in out
    effects = [line.split() for line in out.splitlines() if line.startswith(" tiny ")]
    assert effects == [["tiny", "independent", "3", "2", "1"], ["tiny", "not", "judged", "1"]]
    assert "set:" not in out
    assert "result: r" in out


def test_a_claim_runs_only_its_points(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "ab-2", "--output", "r"]) == 0
    assert sorted(set(runs.points)) == [(32, "disabled"), (32, "stream")]
    assert len(runs.points) == 6
    assert list(claims_of("r/claims.json")) == ["AB-2"]
    assert "AB-1" not in capsys.readouterr().out


def test_what_stands_beside_is_run_on_demand(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = near("one", 64, 10).model_copy(update={"decides": False})
    monkeypatch.setattr(reproduce, "PAPERS", {"tiny": (claim(1, near("two", 0, 10), beside),)})
    for name, options, points in (("r", [], 1), ("s", ["--beside"], 2)):
        runs.points.clear()
        assert main(["reproduce", "--output", name, *options]) == 0
        assert len(runs.points) == 3 * points
        [found] = claims_of(f"{name}/claims.json").values()
        assert [part["decides"] for part in found["parts"]] == [True, False][:points]
        assert found["result"] == "size"
    capsys.readouterr()
    assert main(["reproduce", "--output", "s", "--resume"]) == 2
    assert_refused(capsys, "with --beside")


def test_a_reader_that_went_away_ends_no_reproduction(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`shrimpmx reproduce --engine both | head -1`: the second engine has its turn, too."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["reproduce", "AB-2", "--engine", "both", "--output", "r"]) == 0
    for engine in ("simulated", "forked"):
        assert list(claims_of(f"r/{engine}/claims.json")) == ["AB-2"]
    assert Path("r/report.html").exists()


def test_settings_reach_every_scenario_and_are_printed(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["repeats=1", "--set", "size_bytes=0"]
    assert main(["reproduce", *settings, "--output", "r"]) == 0
    assert "\nset: repeats=1, size_bytes=0\n" in capsys.readouterr().out
    assert runs.points == [(0, "disabled")] * 2
    found = claims_of("r/claims.json")
    assert found["AB-1"]["result"] == "inconclusive"
    assert "only 1 run" in found["AB-1"]["reason"]
    assert found["AB-2"]["result"] == "not run"


def test_a_run_that_stays_disturbed_is_made_again_later(runs: Runs) -> None:
    def others_at_first(_point: Point) -> None:
        runs.neighbours = [4711] if len(runs.points) < 2 else []

    runs.before = others_at_first
    assert main(["reproduce", "AB-1", "--output", "r"]) == 0
    [result] = _results("r")
    [point] = json.loads(result.read_text())["points"]
    assert (point["made_again"], point["disturbed"]) == (1, 0)


def test_what_stays_disturbed_is_said_and_decides_nothing(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.neighbours = [4711]
    assert main(["reproduce", "AB-1", "--output", "r"]) == 0
    found = claims_of("r/claims.json")["AB-1"]
    assert found["result"] == "inconclusive"
    assert "only 0 runs that nothing disturbed: run it again while" in found["reason"]
    printed = capsys.readouterr().out
    assert "other runs of shrimpmx" in printed
    assert "disturbed from outside: " in printed


def test_what_programs_print_goes_beside_the_result_of_their_scenario(runs: Runs) -> None:
    assert main(["reproduce", "--output", "r"]) == 0
    assert sorted(runs.printed) == sorted(path.parent / "output.txt" for path in _results("r"))


def _results(place: str) -> list[Path]:
    return list(Path(place).glob("*/run.json"))


def test_the_default_place_is_named_after_the_papers(runs: Runs) -> None:
    assert main(["reproduce", "AB-5"]) == 0
    assert runs.points == []
    [place] = Path("results").iterdir()
    assert place.name.startswith("reproduce-tiny-")


@pytest.mark.nightly("each moment", but=1)
@pytest.mark.parametrize("error", [AgentError("rank1 (pid 7) was killed"), KeyboardInterrupt()])
@pytest.mark.parametrize("failing", [4, 22])
def test_an_interruption_keeps_all_runs_and_says_how_to_go_on(
    failing: int, error: BaseException, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_point: Point) -> None:
        if len(runs.points) == failing:
            raise error

    runs.before = fail
    options = ["--beside", *WHOLE, "--set", "mtu=9000"]
    arguments = ["reproduce", "tiny", *options, "--output", "a place"]
    assert main([*arguments, "--json", "r.json"]) == 3
    whole = json.loads(Path("r.json").read_text())
    assert whole["complete"] is False
    done = [found["id"] for found in whole["claims"]]
    assert done == (["AB-1", "AB-2"] if failing > 18 else []) + ["AB-4", "AB-5"]
    err = capsys.readouterr().err
    assert f"{failing} of 36 runs are kept in a place" in err
    [line] = [line for line in err.splitlines() if "--resume" in line]
    words = shlex.split(line)
    assert words[words.index("reproduce") :] == [
        *("reproduce", "tiny", *options, "--seed", "1"),
        *("--output", "a place", "--resume", "--json", "r.json"),
    ]
    runs.before = lambda _point: None
    assert main(words[words.index("reproduce") :]) == 0
    assert len(runs.points) == 36
    assert len(claims_of("r.json")) == 5


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("failing", [2, 4])
def test_an_interruption_of_one_engine_says_how_to_go_on_with_both(
    failing: int, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_point: Point) -> None:
        if len(runs.points) == failing:
            raise KeyboardInterrupt

    runs.before = fail
    asked = ["reproduce", "AB-1", "--engine", "both", "--output", "r", "--json", "r.json"]
    assert main(asked) == 3
    [line] = [line for line in capsys.readouterr().err.splitlines() if "--resume" in line]
    words = shlex.split(line)
    words = words[words.index("reproduce") :]
    assert words == [
        *("reproduce", "AB-1", "--seed", "1", "--output", "r", "--resume"),
        *("--json", "r.json", "--engine", "both"),
    ]
    runs.before = lambda _point: None
    assert main(words) == 0
    for engine in ("simulated", "forked"):
        assert json.loads(Path(f"r/{engine}/claims.json").read_text())["complete"] is True
    assert len(json.loads(Path("r.json").read_text())["claims"]) == 2


def test_a_deadline_that_was_met_is_longer_in_what_goes_on(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(point: Point) -> None:
        if point.parameters.cluster.deadline_s < 40 and len(runs.points) == 20:
            raise DeadlineError("the run did not end within 20 s")

    runs.before = fail
    assert main(["reproduce", "tiny", *WHOLE, "mtu=9000", "--output", "r"]) == 3
    [line] = [line for line in capsys.readouterr().err.splitlines() if "--resume" in line]
    words = shlex.split(line)
    assert "deadline_s=40" in words
    assert main(words[words.index("reproduce") :]) == 0
    assert len(runs.points) == 36


@pytest.mark.parametrize("made_before", [False, True])
def test_what_is_refused_leaves_no_empty_directory(
    made_before: bool, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise InputError("this machine has no costs")

    monkeypatch.setattr(reproduction, "costs_for", refuse)
    if made_before:
        Path("r").mkdir()
    assert main(["reproduce", "--output", "r/deep"]) == 2
    assert runs.points == []
    assert Path("r").exists() == made_before
    assert not Path("r/deep").exists()


def test_rules_and_platforms_are_kept_before_anything_is_judged(runs: Runs) -> None:
    kept: list[dict[str, str]] = []

    def look(_point: Point) -> None:
        kept.append(json.loads(Path("r/claims.json").read_text())["frozen"])

    runs.before = look
    assert main(["reproduce", "AB-1", "--output", "r"]) == 0
    last = json.loads(Path("r/claims.json").read_text())["frozen"]
    assert set(last) == {"rules", "scenarios", "platforms"}
    assert kept == [last] * len(runs.points)


def test_what_is_complete_is_judged_again_without_a_run(runs: Runs) -> None:
    assert main(["reproduce", "--output", "r"]) == 0
    before = claims_of("r/claims.json")
    assert main(["reproduce", "--output", "r", "--resume"]) == 0
    assert len(runs.points) == 12
    assert claims_of("r/claims.json") == before


def written(path: Path, **changes: Any) -> None:
    """Change what a JSON file holds."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.nightly("each damage", but=3)
@pytest.mark.parametrize(
    ("harm", "arguments", "words"),
    [
        ({}, ["AB-1"], "r claims"),
        ({}, ["--seed", "2"], "r seed"),
        ({}, ["--set", "mtu=9000"], "r settings"),
        ({"claims.json": {"frozen": {"rules": "0"}}}, [], "r rules platforms"),
        ({"claims.json": {"schema": 2}}, [], "schema 2 version"),
        ({"claims.json": "{"}, [], "r/claims.json damaged JSON line 1"),
        ({"paper-one/run.json": {"schema": 9}}, [], "run.json schema 9 version"),
        ({"paper-two/run.json": "no"}, [], "r/paper-two/run.json damaged JSON"),
        ({"paper-two/run.json": {"points": 3}}, [], "run.json damaged 'points' list"),
        ({"paper-one/run.json": {"seed": "3"}}, [], "'seed' number 0"),
        ({"paper-one/run.json": {"seed": 3}}, [], "paper-one result seed"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_a_result_that_cannot_be_gone_on_with_is_one_sentence(
    harm: dict[str, Any], arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "--output", "r"]) == 0
    for name, change in harm.items():
        if isinstance(change, str):
            Path("r", name).write_text(change)
        else:
            written(Path("r", name), **change)
    capsys.readouterr()
    assert main(["reproduce", *arguments, "--output", "r", "--resume"]) == 2
    assert_refused(capsys, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["AB-9"], "claim 'AB-9' 'AB-5'"),
        (["tiyn"], "'tiny'"),
        (["--list", "AB-9"], "claim 'AB-9'"),
        (["--seed", "-1"], "--seed 0"),
        (["--resume"], "--resume --output"),
        (["--resume", "--output", "none"], "result none resume"),
        (["--resume", "--output", "other"], "other claims.json"),
        (["--output", "other"], "other files"),
        (["--output", "/proc/x"], "written /proc/x"),
        (["--json", "none/r.json"], "directory none"),
        (["--set", "speed=3"], "parameter 'speed'"),
        (["--set", "coalescing=fast"], "coalescing 'disabled'"),
        (["AB-2", "--set", "coalescing=disabled,stream,foo"], "coalescing 'disabled'"),
        (["AB-2", "--set", "size_bytes=32,-5"], "size_bytes 0 -5"),
        (["--seed", str(2**63)], "--seed 2**63"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_bad_input_is_one_sentence_and_exit_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other").mkdir()
    Path("other/file").touch()
    assert main(["reproduce", *arguments]) == 2
    assert_refused(capsys, words)


def test_a_bar_counts_the_runs_of_all_scenarios() -> None:
    bar = Bar("2/2 paper/two", (), 200, before=18, whole=36)
    bar.begin(18, 3)
    [line] = bar.lines()
    assert "2/2 paper/two" in line
    assert "21/36" in line
    bar.end()


def test_a_list_runs_nothing(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list", "--json", "list.json"]) == 0
    assert runs.points == []
    assert not Path("results").exists()
    assert "What 3." in capsys.readouterr().out
    assert claims_of("list.json")["AB-5"] == {
        "id": "AB-5", "kind": "count", "source": "table I", "setup": "What 5.", "paper": "many",
    }  # fmt: skip
