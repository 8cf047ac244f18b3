"""Runs under draws of a fitted platform's costs: of a scenario, of a program, and two results of
them beside each other.
"""

from __future__ import annotations

import math
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.results import a_document, a_metric, a_point

from shrimpmx.cli import main
from shrimpmx.experiment.fit.varied import completed, varied_of
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.platform_files import platform_text
from shrimpmx.results.comparison import EQUAL, SLOWER, UNCERTAIN, compare
from shrimpmx.results.json_file import read_json
from shrimpmx.results.runs import ANY
from shrimpmx.show.draws import most_probable
from shrimpmx.show.tables import metric_tables

DRAWS = 4
FEW = ["iterations=3", "warmup=1", "size_bytes=0"]


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A platform with draws of two costs."""
    base, rng = completed(PLATFORMS["xeon-100g"]), random.Random(1)
    tables: dict[str, dict[str, Any]] = {}
    for one in varied_of(base, ["interrupt_to_handler", "send_cost_ns"]):
        table, _, name = one.key.partition(".")
        entries = tables.setdefault(table, dict(getattr(base, table)))
        drawn = [max(1, round(one.value * math.exp(rng.gauss(0, 0.3)))) for _ in range(DRAWS)]
        entries[name] = entries[name].model_copy(update={"draws": tuple(drawn)})
    path = tmp_path / "cluster.toml"
    path.write_text(platform_text(base.model_copy(update={**tables, "name": "cluster"})))
    return path


def run(platform: Path, output: Path, *more: str) -> int:
    words = [f"platform={platform}", *FEW]
    command = ["run", "smoke/pingpong", "--engine", "simulated", "--output", str(output), *more]
    return main([*command, *(word for each in words for word in ("--set", each))])


def test_a_scenario_runs_under_draws_and_says_how_far_they_spread(
    tmp_path: Path, platform: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["--set", "coalescing=disabled,timeout", "--draws", str(DRAWS)]
    assert run(platform, tmp_path / "drawn", *settings) == 0
    told = capsys.readouterr().out
    assert "draw 1" not in told
    assert re.search(r"coalescing disabled: [\d.]+ \[[\d.]+, [\d.]+\]", told)
    assert f"of {DRAWS} draws: disabled under {DRAWS}" in told
    document = read_json(tmp_path / "drawn" / "run.json", "result")
    assert {point["params"]["draw"] for point in document["points"]} == set(range(DRAWS + 1))
    # Its tables are those of the most probable costs.
    assert run(platform, tmp_path / "plain", "--set", "coalescing=disabled,timeout") == 0
    plain = read_json(tmp_path / "plain" / "run.json", "result")
    for metric in plain["points"][0]["metrics"]:
        tables = [list(metric_tables(each, metric)) for each in (most_probable(document), plain)]
        assert tables[0] == tables[1]
    page = (tmp_path / "drawn" / "report.html").read_text()
    assert "draws of the platform" in page


def test_a_program_runs_under_draws(
    tmp_path: Path, platform: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mpi4py")
    words = ["-n", "2", "--engine", "simulated", "--set", f"platform={platform}"]
    program = [
        sys.executable,
        "-m",
        "shrimpmx.applications.imb",
        "PingPong",
        "-npmin",
        "2",
        "-iter",
        "2,1",
    ]
    kept = ["--output", str(tmp_path / "kept")]
    assert main(["mpirun", *words, "--draws", "2", *kept, *program]) == 0
    told = capsys.readouterr().err
    for words_of_run in ("the most probable costs", "draw 1 of 2", "draw 2 of 2"):
        assert told.count(words_of_run) == 1
    assert re.search(r"the only point: [\d.,]+ \[[\d.,]+, [\d.,]+\]", told)
    document = read_json(tmp_path / "kept" / "run.json", "result")
    assert len(document["points"]) == 3
    assert "--draws 2" in document["command"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--draws", "5"], "has 4 draws"),
        (["--draws", "-1"], "0 or more"),
        (["--draws", "2", "--set", "draw=1"], "one of them"),
        (["--draws", "2", "--engine", "forked"], "--engine simulated"),
    ],
)
def test_draws_that_there_are_not_are_refused(
    tmp_path: Path,
    platform: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    words: str,
) -> None:
    assert run(platform, tmp_path / "out", *more) == 2
    assert words in capsys.readouterr().err
    program = ["-n", "2", "--engine", "simulated", "--set", f"platform={platform}", *more, "true"]
    assert main(["mpirun", *program]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_draws_need_a_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["run", "smoke/pingpong", "--set", "platform=none", "--output", str(tmp_path / "out")],
        ["mpirun", "-n", "2", "true"],
    ):
        command[1:1] = ["--engine", "simulated", "--draws", "2"]
        assert main(command) == 2
        assert "--set platform=cluster.toml" in capsys.readouterr().err


# -- two results -----------------------------------------------------------------------


def exact(time: float) -> dict[str, Any]:
    """The metric of one simulated run."""
    return {**a_metric(time), "samples": [time], "repeats": [{"state": ANY, "count": 1}]} | {
        "exact": True,
        "state": ANY,
        "ci95": [time, time],
    }


def drawn_result(times: list[list[float]], compared: str = "disabled") -> dict[str, Any]:
    """A result of simulated hosts: a list of times by draw, for each length."""
    points = [
        a_point(
            {"size_bytes": size, "coalescing": compared, "draw": draw},
            {"half_round_trip": exact(time)},
        )
        for size, by_draw in enumerate(times)
        for draw, time in enumerate(by_draw)
    ]
    return a_document("smoke/pingpong", points)


def test_results_are_compared_draw_by_draw() -> None:
    one = drawn_result([[10, 9, 14, 12], [10, 10, 10, 10], [10, 11, 12, 13]])
    other = drawn_result([[20, 18, 42, 36], [11, 9, 12, 9], [10, 11, 12, 13]], "timeout")
    found = compare(one, other)
    changes = [each["half_round_trip"] for _, each in found.points]
    assert [change.verdict for change in changes] == [SLOWER, UNCERTAIN, EQUAL]
    assert [change.draws for change in changes] == [(3, 3), (1, 3), (3, 3)]
    ratio = changes[0].ratio
    assert ratio is not None
    assert ratio.median == 2.0
    assert ratio.low == pytest.approx(2.0)
    assert 2.9 < ratio.high <= 3.0
    assert all("draw" not in place for place, _ in found.points)


def test_without_draws_nothing_changes() -> None:
    one, other = (drawn_result([[time]]) for time in (10, 20))
    ((_, changes),) = compare(one, other).points
    assert changes["half_round_trip"].draws == (0, 0)
