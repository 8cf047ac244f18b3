"""`shrimpmx validate`: real runs and simulated ones beside each other.

How long things take is this machine's affair; frames for each message are the protocol's.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import resends
from support.cli import assert_refused

from shrimpmx import cli
from shrimpmx.bench import calibration
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.errors import DeadlineError
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.validation.comparison import (
    PACKETS,
    Compared,
    compared,
    reversed_pairs,
    summary,
)
from shrimpmx.experiment.validation.running import Pair, Validation
from shrimpmx.results.environment import environment
from shrimpmx.results.metrics import Outcome

ROW = {"family": "stream", "params": {}, "metric": PACKETS, "real": 1.0}
# A run that stands still for less has no acknowledgement more, and sends nothing again.
UNHURRIED = [
    word for setting in (*resends.SETTINGS, "ack_delay_ns=500000000") for word in ("--set", setting)
]
NAMES = (*calibration.MEASUREMENTS, "t_block", "handler_per_packet")


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cost = {"median": 1000.0, "ci95": [900.0, 1100.0], "spread": [1.0], "meaning": "as measured"}
    taken = {"time": "2026-01-01T00:00:00+00:00"}
    costs = dict.fromkeys(NAMES, cost)
    document = {"schema": 2, "state": "any", "environment": taken, "costs": costs}
    place = calibration.storage_path()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(document))
    return tmp_path


@pytest.mark.nightly("many runs")
def test_other_points_are_compared_too(
    calibrated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = calibrated / "found.json"
    words = ["validate", "--only", "coalescing-block", "--repeats", "1", "--json", str(path)]
    words += ["--set", "iterations=20", "--set", "coalescing=stream", "--set", "wait=spin-block"]
    assert cli.main([*words, "--set", "size_bytes=64,1500"]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert all(row["real_ci95"] is None and row["ratio_ci95"] is None for row in rows)
    params = [row["params"] for row in rows]
    assert {each["size_bytes"] for each in params} == {64, 1500}
    assert {each["wait"] for each in params} == {"spin-block"}
    capsys.readouterr()
    assert cli.main([*words, "--set", "sise_bytes=64"]) == 2
    assert_refused(capsys, "sise_bytes")


@pytest.mark.nightly("many runs")
def test_real_runs_are_held_against_earlier_ones(
    calibrated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = calibrated / "found.json", calibrated / "other.json"
    words = ["validate", "--only", "coalescing-block", "--repeats", "1", "--set", "iterations=20"]
    words += ["--set", "coalescing=stream", *UNHURRIED, "--json", str(path)]
    assert cli.main([*words, "--set", "size_bytes=0,64"]) == 0
    assert "real_again" not in json.loads(path.read_text())["summary"]
    earlier = json.loads(path.read_text())
    for row in earlier["rows"]:
        row["real"] *= 1 if row["metric"] == PACKETS else 1000
    other.write_text(json.dumps(earlier))
    assert cli.main([*words, "--set", "size_bytes=64,1500", "--against", str(other)]) == 0
    again = json.loads(path.read_text())["summary"]["real_again"]
    assert (again["points"], again["counts"], again["counts_within"]) == (1, 2, 1)
    assert again["median_error"] > 100
    assert "two sets of real runs, at 1 points" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"environment": {"cpu_model": "another CPU"}}, "measured on another machine"),
        ({"environment": {}}, "not written by validate --json"),
        ({"rows": [{"family": "stream"}]}, "not written by validate --json"),
        ({"rows": [["family", "params", "metric", "real"]]}, "not written by validate --json"),
        ({"rows": [{**ROW, "real": None}]}, "not written by validate --json"),
        ({"rows": [{**ROW, "real": float("nan")}]}, "not written by validate --json"),
        ({"rows": {}}, "not written by validate --json"),
    ],
)
def test_only_an_earlier_validation_of_this_machine_can_be_held_against_it(
    calibrated: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], words: str
) -> None:
    path = calibrated / "earlier.json"
    path.write_text(json.dumps({"environment": environment(), "rows": [ROW], **changes}))
    command = ["validate", "--only", "coalescing-block", "--points", "1", "--repeats", "1"]
    assert cli.main([*command, "--set", "iterations=20", "--against", str(path)]) == 2
    assert_refused(capsys, words)


def test_real_and_simulated_runs_take_the_same_packets(
    calibrated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = calibrated / "found.json"
    words = ["validate", "--short", "--only", "coalescing-block", "--only", "multiqueue"]
    assert cli.main([*words, *UNHURRIED, "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    packets = [row for row in document["rows"] if row["metric"] == PACKETS]
    assert len(packets) == document["summary"]["points"] == 6
    assert all(row["ratio"] == pytest.approx(1, abs=0.1) for row in packets)
    shown = capsys.readouterr().out
    assert "6 points" in shown
    assert "…" not in shown  # every figure is whole


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--only", "nothing"], "there are coalescing-block"),
        (["--repeats", "0"], "must be 1 to"),
        (["--points", "0"], "at least 1"),
        (["--seed", "-1"], "--seed must be from 0"),
        (
            ["--set", "platform=myri10g-2009"],
            "leave it out, since validate compares this machine with the platform this-machine",
        ),
        (
            ["--set", "platform.profile=none"],
            "leave it out, since validate compares this machine with the platform this-machine",
        ),
    ],
)
def test_options_that_make_no_sense_are_told(
    words: list[str], sentence: str, calibrated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["validate", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_without_a_calibration_there_is_nothing_to_compare(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.main(["validate", "--short"]) == 2
    assert "run shrimpmx calibrate" in capsys.readouterr().err


def row(wait: str, real: tuple[float, float, float], simulated: float, kind: str) -> Compared:
    low, median, high = real
    ratio = simulated / median if median else None
    ends = (ratio, ratio) if ratio is not None else None
    return Compared(
        "waiting", {"wait": wait}, "m", "us", kind, "hosts", median, (low, high), simulated,
        ratio, ends,
    )  # fmt: skip


def test_only_orders_that_are_certain_can_be_reversed() -> None:
    axis = {"waiting": "wait"}
    rows = [
        row("spin", (9, 10, 11), 12, "time"),
        row("sched", (10, 12, 14), 11, "time"),  # not certain beside spin
        row("block", (20, 21, 22), 11.5, "time"),  # slower than both; simulated between them
    ]
    certain, words = reversed_pairs(rows, axis)
    assert certain == 2
    assert len(words) == 1
    assert "spin" in words[0]


def test_one_run_has_no_interval_and_makes_no_order_certain() -> None:
    one, two = ([np.array([10.0, 11.0, 12.0])] * count for count in (1, 2))
    for real, told in ((one, False), (two, True)):
        found = compared("waiting", {"wait": "spin"}, PACKETS, "hosts", real, two)
        assert (found.real_ci95 is not None) == (found.ratio_ci95 is not None) == told
    alone = [replace(row(wait, (9, 9, 9), 9, "time"), real_ci95=None) for wait in ("spin", "sched")]
    assert reversed_pairs(alone, {"waiting": "wait"}) == (0, [])


def test_a_count_is_certain_if_real_runs_agree_on_it() -> None:
    assert row("spin", (0.96, 1, 1.04), 2, "count").is_certain
    assert not row("spin", (0.94, 1, 1), 1, "count").is_certain
    assert not replace(row("spin", (1, 1, 1), 1, "count"), real_ci95=None).is_certain


def test_a_summary_counts_what_is_near_enough() -> None:
    rows = [
        row("spin", (1, 1, 1), 1.04, "count"),
        row("sched", (1, 1, 1), 1.06, "count"),
        row("block", (0, 0, 0), 0, "count"),
        row("spin", (10, 10, 10), 12, "time"),
    ]
    found = summary(rows, {"waiting": "wait"})
    assert (found["counts_within"], found["counts"], found["times"]) == (2, 3, 1)
    assert (found["timed_counts_within"], found["timed_counts"]) == (1, 2)
    assert (found["certain_counts_within"], found["certain_counts"]) == (1, 2)
    assert found["median_error"] == pytest.approx(0.2)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The irq_bindings of points whose real runs fail."""
    found: set[str] = set()
    run = ClusterExecutor.__call__

    def fail(self: ClusterExecutor, point: Point, seed: int) -> Outcome:
        real = isinstance(self._engine, Forked)
        if real and dict(point.shown)["irq_binding"] in found:
            raise DeadlineError("the run did not end within 1 s")
        return run(self, point, seed)

    monkeypatch.setattr(ClusterExecutor, "__call__", fail)
    return found


def test_a_run_that_fails_costs_its_point(
    calibrated: Path, failing: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.add("1")
    path = calibrated / "found.json"
    words = ["validate", "--short", "--only", "multiqueue", "--json", str(path)]
    assert cli.main(words) == 0
    document = json.loads(path.read_text())
    (failed,) = document["failed"]
    assert failed["params"]["irq_binding"] == "1"
    assert "did not end" in failed["reason"]
    assert {row["params"]["irq_binding"] for row in document["rows"]} == {"round-robin"}
    assert failed["reason"] in capsys.readouterr().out
    failing.add("round-robin")
    assert cli.main(["validate", "--short", "--only", "multiqueue"]) == 3
    assert "did not end" in capsys.readouterr().err


@pytest.mark.nightly("many runs")
def test_real_runs_at_another_distance_of_the_cpus_are_left_aside_and_taken_again(
    calibrated: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = calibration.storage_path()
    document = json.loads(place.read_text())
    place.write_text(json.dumps({**document, "state": "near"}))
    states = ["far", "near"]
    run = Validation._run

    def moved(self: Validation, pair: Pair, engine: str, seed: int) -> dict[str, Any]:
        found = run(self, pair, engine, seed)
        return {**found, "state": states.pop(0)} if engine == "real" else found

    monkeypatch.setattr(Validation, "_run", moved)
    words = ["validate", "--only", "coalescing-delay", "--points", "1", "--repeats", "1"]
    assert cli.main([*words, "--set", "iterations=20", "--json", "-"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["summary"]["left_aside"], found["summary"]["not_compared"]) == ({"far": 1}, 0)
    assert found["rows"]
    assert "real runs excluded" in said.err
    assert states == []
