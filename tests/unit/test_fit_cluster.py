"""Figures of a fit on other machines' workers: the same as here, and one that fails has none."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shrimpmx.errors import InputError
from shrimpmx.experiment.fit.measurements import MACHINE, Measurement
from shrimpmx.experiment.fit.predictor import NOTHING, Predictor
from shrimpmx.experiment.fit.varied import completed, varied_of
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.remote.dispatch import Place
from shrimpmx.experiment.remote.point_process import serve

BASE = completed(PLATFORMS["myri10g-2009"])


class Workers:
    """Two workers that make a run when they are asked for it; the first run is lost."""

    address = "tls://head:8786"

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.begun: dict[int, tuple[str, str]] = {}
        self.count = 0

    def places(self) -> dict[str, Place]:
        return {"one": Place("a", 1), "other": Place("b", 2)}

    def begin(self, _worker: str, job: str, task: str) -> int:
        self.count += 1
        self.begun[self.count] = job, task
        return self.count

    def ended(self) -> Iterator[tuple[Any, object]]:
        # The last one that has begun ends first.
        for number in sorted(self.begun, reverse=True):
            replies = io.StringIO()
            if number > 1:
                serve(iter(self.begun[number]), replies, self.scratch)
            del self.begun[number]
            yield number, replies.getvalue() or None

    def give_up(self, runs: Iterable[Any]) -> None:
        assert list(runs) == []


def measurement(metric: str, **settings: str) -> Measurement:
    few = {"iterations": "3", "warmup": "1"} if "program" not in settings else {}
    given = {"coalescing": "timeout", **few, **settings}
    return Measurement(tuple(sorted(given.items())), metric, 1.0, 0.03, "a", "here")


def test_figures_of_workers_are_the_same_as_here(tmp_path: Path) -> None:
    measurements = [
        measurement("half_round_trip", workload="pingpong", size_bytes="0"),
        measurement("half_round_trip", workload="pingpong", size_bytes="200"),
        measurement("interrupts_per_message", workload="stream", size_bytes="0"),
        # An MPI program that is none fails.
        measurement("run_time", workload="mpi", program="/bin/false"),
        # A ping-pong has no such figure.
        measurement("other_delay", workload="pingpong", size_bytes="0"),
    ]
    values = [
        {one.key: factor * one.value for one in varied_of(BASE, ["send_cost_ns", "idle_exit_ns"])}
        for factor in (1.0, 1.3)
    ]
    workers = Workers(tmp_path)
    elsewhere = Predictor(measurements, BASE, cluster=workers)
    here = Predictor(measurements, BASE)
    found = [predictor.logs(values, range(5)) for predictor in (here, elsewhere)]
    assert [list(each) for each in found[0]] == [list(each) for each in found[1]]
    assert [each > math.log(2 * NOTHING) for each in found[0][0]] == [True] * 3 + [False] * 2
    assert workers.count == 2 * 5 + 1
    assert (here.simulated, elsewhere.simulated) == (10, 10)
    with pytest.raises(InputError, match="give no run_time"):
        elsewhere.check(values[0])


def test_one_machine_is_this_one(tmp_path: Path) -> None:
    one = measurement("half_round_trip", workload="pingpong", size_bytes="0")
    there = Measurement(one.settings, one.metric, 1.0, 0.03, "a", "here", MACHINE)
    with pytest.raises(InputError, match="leave --scheduler out"):
        Predictor([there], BASE, cluster=Workers(tmp_path))
