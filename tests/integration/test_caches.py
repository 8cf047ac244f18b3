"""A simulated run under valgrind, and hardware counters of a real one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shrimpmx.bench.caches.callgrind import simulated_caches
from shrimpmx.bench.caches.simulation import simulate
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.native.perf import CACHE_EVENTS


@pytest.mark.nightly("valgrind runs the receive path")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.timeout(180)
def test_a_simulated_run_counts_handler_and_library_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A working directory such as /tmp is no place to load modules from.
    (tmp_path / "json.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    figures = simulate([(128, 10, 40)], simulated_caches("clovertown-2007"), copy_offload=False)
    (found,) = figures.sizes
    assert (found.messages, found.packets) == (40, 40)
    for cost in (found.handler, found.library):
        assert 100 < cost.instructions / found.packets < 10_000
        assert cost.data_references > cost.first_misses >= cost.last_misses > 0
    # A frame of 128 bytes, untouched since the NIC wrote it, is three lines.
    assert found.handler.last_misses / found.packets >= 3
    assert figures.caches[1] == "D1 cache: 32768 B, 64 B, 8-way associative"


def test_each_process_counts_misses_or_says_why_not() -> None:
    options = {"size_bytes": 0, "iterations": 20, "warmup": 2}
    ranks = tuple(RankSpec(node, "pingpong", options=options) for node in (0, 1))
    result = Forked().run(ClusterSpec(ranks=ranks, hardware_counters=True))
    processes = {plan.name for plan in result.placement.processes}
    assert set(result.hardware) == set(result.hardware_absent) == processes
    for process in processes:
        counted, absent = result.hardware[process], result.hardware_absent[process]
        assert set(counted) | set(absent) == set(CACHE_EVENTS)
        assert all(len(reason) > 10 for reason in absent.values())


def test_nothing_is_counted_unless_it_is_asked_for() -> None:
    options = {"size_bytes": 0, "iterations": 20, "warmup": 2}
    ranks = tuple(RankSpec(node, "pingpong", options=options) for node in (0, 1))
    result = Forked().run(ClusterSpec(ranks=ranks))
    assert result.hardware == {}
