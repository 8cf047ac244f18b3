"""The cache-line probe: classification, one CPU, and that it ends and leaves no trace."""

from __future__ import annotations

import os
import threading

import pytest

from shrimpmx.bench.probe import classify, probe, round_trips

NEAR, FAR = 110.0, 490.0


@pytest.mark.parametrize(
    ("figures", "state"),
    [
        ([NEAR] * 20, "near"),
        ([FAR] * 20, "far"),
        ([NEAR] * 10 + [FAR] * 10, "mixed"),
        ([NEAR] * 19 + [90_000.0], "near"),
        ([NEAR] * 2, "unknown"),
        ([], "unknown"),
    ],
)
def test_classification(figures: list[float], state: str) -> None:
    assert classify(figures) == state


def test_one_cpu_has_no_distance() -> None:
    assert probe([0]) == ("unknown", None)
    assert probe([3, 3]) == ("unknown", None)


def test_probe_leaves_affinity_and_threads_alone() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    threads = threading.active_count()
    figures = round_trips(allowed[0], allowed[-1], 1_000_000) if len(allowed) > 1 else None
    assert sorted(os.sched_getaffinity(0)) == allowed
    assert threading.active_count() == threads
    assert figures is None or (figures > 0).all()


def test_a_cpu_that_is_not_there_is_an_error() -> None:
    here = min(os.sched_getaffinity(0))
    with pytest.raises(OSError, match="Invalid argument"):
        round_trips(here, 4000, 1_000_000)
