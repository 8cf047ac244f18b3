"""A calibration: turns, one CPU, and measuring when nothing usable is stored."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shrimpmx.bench import calibration, interrupt_costs
from shrimpmx.bench.calibration import (
    MEASUREMENTS,
    Measurement,
    for_platforms,
    measure_host,
    why_kept,
)

HANDLER = {"unit": "ns", "median": 40.0, "ci95": [39.0, 41.0], "samples": [40.0], "meaning": "h"}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "probe", lambda _: ("near", 100.0))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths of the measurements that were made, each of which gives known figures."""
    made: list[float] = []

    def host(_cpus: list[int], seconds: float) -> tuple[str, dict[str, dict[str, Any]]]:
        made.append(seconds)
        figures = np.array([5000.0, 5100.0])
        costs = {name: calibration.metric(figures, name) for name in MEASUREMENTS}
        return "near", {**costs, "t_block": calibration.t_block(costs)}

    monkeypatch.setattr(calibration, "measure_host", host)
    return made


def path_costs(_seconds: float) -> dict[str, dict[str, Any]]:
    return {"handler_per_packet": HANDLER}


def test_each_turn_measures_every_cost_and_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, int, float]] = []

    def cost_of(name: str, across: bool) -> Measurement:
        def samples(cpu: int, other: int, seconds: float) -> calibration.Figures:
            asked.append((name, cpu, other, seconds))
            turn = sum(what == name for what, *_ in asked)
            # One turn far off, with most of the samples; one without any.
            return np.array([9e9] * 1000 if turn == 2 else [] if turn == 3 else [1.0, turn, 1e6])

        return Measurement(name, samples, across)

    costs = {name: cost_of(name, cost.across) for name, cost in MEASUREMENTS.items()}
    monkeypatch.setattr(calibration, "MEASUREMENTS", costs)
    _, found = measure_host([3, 5], 0.09)
    assert [name for name, *_ in asked] == list(MEASUREMENTS) * 9
    assert {(cpu, other) for _, cpu, other, _ in asked} == {(3, 5)}
    assert all(seconds == pytest.approx(0.01) for *_, seconds in asked)
    for name in MEASUREMENTS:
        assert found[name]["samples"] == [1, 9e9, 4, 5, 6, 7, 8, 9]
        assert found[name]["median"] == 6.5
    assert found["t_block"]["median"] == 3 * 6.5


def test_a_cost_is_that_of_the_distance_that_the_cpus_have_most_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distances = iter(["near", "far", "far", "far", *["near"] * 4])
    figures = iter([1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(calibration, "probe", lambda _: (next(distances), 100.0))
    one = Measurement("m", lambda *_: np.array([next(figures)]))
    monkeypatch.setattr(calibration, "MEASUREMENTS", {"interrupt_to_handler": one, "look": one})
    monkeypatch.setattr(calibration, "t_block", lambda costs: {})
    state, found = measure_host([0, 1], 0.02)
    assert state == "near"
    # Of two turns each; the CPUs came nearer in the first one of one, and were far in the other's.
    assert found["interrupt_to_handler"]["samples"] == [3.0]
    assert found["look"]["samples"] == [4.0]


def test_a_cost_that_spreads_has_its_quantiles_as_multiples_of_each_turns_median(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = iter([np.arange(1.0, 34.0), 10 * np.arange(1.0, 34.0), np.array([]), np.full(5, 7.0)])
    spreads = Measurement("m", lambda *_: next(turns), spreads=True)
    monkeypatch.setattr(calibration, "MEASUREMENTS", {"wake_call": spreads})
    monkeypatch.setattr(calibration, "t_block", lambda costs: {})
    _, found = measure_host([0, 1], 0.04)
    # 1.5 to 32.5 of the median 17, twice, and once no spread at all.
    expected = [(2 * (each + 1.5) / 17 + 1) / 3 for each in range(32)]
    assert found["wake_call"]["spread"] == pytest.approx(expected, abs=0.001)
    assert found["wake_call"]["median"] == 17
    metric = {"median", "unit", "ci95", "samples", "meaning"}
    assert found["wake_call"].keys() == metric | {"spread"}


def test_a_short_measurement_has_fewer_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    one = Measurement("m", lambda *_: np.array([float(asked.append(1) or 1)]), across=False)
    monkeypatch.setattr(calibration, "MEASUREMENTS", dict.fromkeys(MEASUREMENTS, one))
    measure_host([0], 0.035)
    assert len(asked) == 3 * len(MEASUREMENTS)
    measure_host([0], 0.001)
    assert len(asked) == 4 * len(MEASUREMENTS)


def test_a_cost_without_a_sample_is_measured_again_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def busy(_cpu: int, _other: int, seconds: float) -> calibration.Figures:
        asked.append(seconds)
        return np.array([7.0] if seconds > 0.5 else [])

    quick = Measurement("m", lambda *_: np.array([1.0]))
    costs = {**dict.fromkeys(MEASUREMENTS, quick), "wake_call": Measurement("w", busy)}
    monkeypatch.setattr(calibration, "MEASUREMENTS", costs)
    _, found = measure_host([0, 1], 0.01)
    assert found["wake_call"]["median"] == 7
    assert asked == [0.01, *calibration.AGAIN_S]


@pytest.mark.parametrize(
    ("stored", "new", "kept"),
    [
        (None, 0.9, False),
        (0.0, 0.04, False),
        (0.01, 0.3, True),
        (0.4, 0.3, False),
    ],
)
def test_a_calibration_of_a_quieter_machine_is_kept(
    stored: float | None, new: float, kept: bool
) -> None:
    before = None if stored is None else {"costs": {"look": HANDLER}, "others": stored}
    assert bool(why_kept(before, {"costs": {"look": HANDLER}, "others": new})) == kept


def test_a_calibration_that_has_more_costs_is_kept() -> None:
    missing = {"unavailable": "too busy", "meaning": "m"}
    whole = {"costs": {"look": HANDLER, "wake_call": HANDLER}}
    assert "wake_call" in why_kept(whole, {"costs": {"look": HANDLER, "wake_call": missing}})
    # An earlier version measured something else.
    assert why_kept(whole, {"costs": {"look": HANDLER}, "others": 0.0}) == ""
    assert why_kept({"costs": {"look": missing}}, {**whole, "others": 0.0}) == ""


def test_what_other_processes_have_of_the_cpus_is_noticed(
    measured: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    elapsed = iter((0.0, 10.0))
    busy = iter(({0: 0, 1: 0}, {0: 9_000_000_000, 1: 3_000_000_000}))
    used = iter(((0.0,) * 4, (1.0, 0.5, 3.0, 1.5)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(calibration, "_clock_s", lambda: next(elapsed))
    monkeypatch.setattr(calibration, "busy_ns", lambda: next(busy))
    monkeypatch.setattr(os, "times", lambda: next(used))
    assert calibration.calibrate(1.0, path_costs)["others"] == pytest.approx((12 - 6) / 20)
    assert measured == [1.0]


def test_a_cost_after_an_idle_time_is_measured_after_that_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def settle(*_where: float, busy: bool, settle_ns: int, before_ns: int) -> calibration.Figures:
        return np.array([settle_ns, busy, before_ns], dtype=np.float64)

    monkeypatch.setattr(interrupt_costs, "interrupt_to_handler", settle)
    for us in calibration.IDLE_US:
        cost = calibration.MEASUREMENTS[f"interrupt_after_{us}us_idle"]
        assert cost.samples(0, 1, 0.1).tolist() == [us * 1000, 0, calibration.IDLE_BEFORE_NS]


def test_one_cpu_has_no_costs_between_two() -> None:
    cpu = min(os.sched_getaffinity(0))
    _, found = measure_host([cpu], 0.01)
    assert found["context_switch"]["median"] > 0
    assert found["wake_same_cpu"]["median"] > 0
    for name in ("wake_cross_cpu", "interrupt_after_30us_idle", "cache_line_round_trip"):
        assert found[name]["unavailable"] == "needs two CPUs, this process may use only one"
    assert "unavailable" in found["t_block"]


def test_a_machine_is_measured_once_and_told_in_one_line(
    measured: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    costs = for_platforms(path_costs)
    assert costs["interrupt_to_handler"]["median"] == 5050
    assert costs["handler_per_packet"] == HANDLER
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "shrimpmx: this machine is not calibrated yet: measuring, 30 s\n"
    assert for_platforms(path_costs) == costs
    assert len(measured) == 1
    assert capsys.readouterr().err == ""
    stored = calibration.load()
    assert stored is not None
    assert stored["costs"] == costs


@pytest.mark.parametrize("content", ["", "{}", '{"schema": 1, "costs": {}}', '{"schema": 2}'])
def test_what_cannot_be_used_is_measured_anew_with_a_note(
    content: str, measured: list[float]
) -> None:
    place = calibration.storage_path()
    place.parent.mkdir()
    place.write_text(content)
    told: list[str] = []
    costs = for_platforms(path_costs, told.append)
    assert len(told) == 1
    assert told[0].startswith(f"calibration {place} ")
    assert told[0].endswith("; measuring anew, 30 s")
    assert len(measured) == 1
    assert json.loads(place.read_text())["costs"] == costs
    for_platforms(path_costs, told.append)
    assert len(told) == len(measured) == 1


def test_what_a_later_version_has_stored_is_left_to_it(measured: list[float]) -> None:
    place = calibration.storage_path()
    place.parent.mkdir()
    place.write_text('{"schema": 3}')
    told: list[str] = []
    for number in (1, 2):
        assert for_platforms(path_costs, told.append)["t_block"]["median"] == 3 * 5050
        assert len(measured) == len(told) == number
    assert told[0].startswith(f"calibration {place} has schema 3, this version of shrimpmx reads")
    assert told[0].endswith("; it is kept, and this command measures for itself, 30 s")
    assert place.read_text() == '{"schema": 3}'


def test_where_nothing_can_be_stored_the_figures_serve_all_the_same(
    measured: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    told: list[str] = []
    assert for_platforms(path_costs, told.append)["t_block"]["median"] == 3 * 5050
    assert told[0] == "this machine is not calibrated yet: measuring, 30 s"
    assert "cannot be written" in told[1]
    assert told[1].endswith(
        "; the calibration holds for this command only: set XDG_CACHE_HOME to a directory that "
        "you can write to"
    )
    assert len(measured) == 1


def test_another_process_that_may_use_other_cpus_is_another_machine() -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("needs two CPUs")
    before = calibration.storage_path()
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert calibration.storage_path() != before
    finally:
        os.sched_setaffinity(0, allowed)
    assert calibration.storage_path() == before
