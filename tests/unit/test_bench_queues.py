"""The benchmarks of rx queues: their names, what they run, and that steering gives figures."""

from __future__ import annotations

import numpy as np
import pytest

from shrimpmx.bench import receive_path as bench_queues
from shrimpmx.bench import run as bench
from shrimpmx.bench.benchmark import Sample, one_figure
from shrimpmx.bench.interrupt_costs import per_packet
from shrimpmx.bench.receive_path import receive_spec
from shrimpmx.cluster.engine.forked import Forked

SECONDS = 0.01


def test_one_queue_is_beside_eight() -> None:
    names = [benchmark.name for benchmark in bench_queues.queue_benchmarks(Forked())]
    assert names == [
        "steering.endpoint",
        "steering.rss",
        "steering.arfs",
        "queues.receive_path_128B[1]",
        "queues.receive_path_128B[8]",
    ]
    known = [
        b.name for b in bench.benchmarks(Forked()) if b.name.startswith(("steering", "queues"))
    ]
    assert known == names


@pytest.mark.parametrize("kind", bench_queues.STEERINGS)
def test_steering_is_timed(kind: str) -> None:
    figures = per_packet(kind, SECONDS)
    assert figures.size > 0
    assert np.all(figures > 0)


def test_seven_of_eight_ranks_are_idle_each_with_a_queue_and_a_core() -> None:
    spec = receive_spec(1.0, "stream", "block", 0, 8)
    assert (spec.nic.rx_queues, spec.host.cores) == (8, 8)
    assert [(rank.workload, rank.core) for rank in spec.ranks] == [
        ("stream", 0),
        *(("idle", core) for core in range(1, 8)),
    ]


def test_a_turn_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []

    def run(_engine: Forked, _seconds: float, *, coalescing: str, wait: str, queues: int) -> Sample:
        runs.append(queues)
        assert (coalescing, wait) == ("stream", "block")
        return one_figure(1e6 * queues, "waiting")

    monkeypatch.setattr(bench_queues, "receive_path", run)
    for benchmark in bench_queues.queue_benchmarks(Forked())[3:]:
        sample = benchmark.measure(SECONDS)
        assert (sample.figures.tolist(), sample.bound_by) == ([1e6 * runs[-1]], "waiting")
    assert runs == [1, 8]
