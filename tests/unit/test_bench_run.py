"""Bench rows: turns during which the CPUs changed distance are no figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from shrimpmx.bench import run as bench
from shrimpmx.bench.benchmark import Benchmark, Sample
from shrimpmx.cluster.engine.forked import Forked

TURNS = 2


class Counted:
    """A benchmark's `measure` that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _seconds: float) -> Sample:
        self.calls += 1
        return Sample(np.array([float(self.calls)]), "nothing")


def rows(
    monkeypatch: pytest.MonkeyPatch, states: Iterable[str], cpus: list[int]
) -> tuple[dict[str, object], int]:
    seen: Iterator[str] = iter(states)
    measure = Counted()
    made = [Benchmark("b", "ns", measure, TURNS, cpus=1)]
    monkeypatch.setattr(bench, "probe", lambda _cpus: (next(seen), 100.0))
    monkeypatch.setattr(bench, "benchmarks", lambda _engine: made)
    monkeypatch.setattr(bench.os, "sched_getaffinity", lambda _pid: set(cpus))
    (row,) = bench.run_bench(None, 0.1, Forked())
    return row, measure.calls


def test_a_mixed_turn_is_taken_again_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    states = ["near", "far", "mixed", "mixed", "near", "near", "near", "near"]
    row, calls = rows(monkeypatch, states, [0, 1])
    assert calls == 4
    assert (row["state"], row["samples"]) == ("near", [3.0, 4.0])


@pytest.mark.parametrize("pair", [["near", "far"], ["mixed"] * 2, ["unknown"] * 2])
def test_without_a_steady_turn_there_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, pair: list[str]
) -> None:
    row, calls = rows(monkeypatch, pair * 100, [0, 1])
    assert calls == TURNS * bench.ATTEMPTS
    assert row == {"name": "b", "unit": "ns", "unavailable": bench.UNSTEADY}


def test_one_cpu_has_no_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    row, calls = rows(monkeypatch, ["unknown"] * 100, [0])
    assert calls == TURNS
    assert row["state"] == "unknown"
