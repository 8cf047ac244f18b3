"""Runs that something outside of them disturbs, in a sweep: taken again, or kept and counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from shrimpmx.errors import PointFailedError
from shrimpmx.experiment.measuring import RETRIES
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.disturbance import OTHER_RUNS, PAUSE, QUIET, STOLEN, disturbances
from shrimpmx.results.metrics import Outcome
from shrimpmx.show.report import notes

SCENARIO = Scenario(
    name="x",
    title="A title",
    sweep={"size_bytes": (0, 32768), "coalescing": ("timeout", "open-mx")},
    repeats=2,
    metrics=("half_round_trip",),
)
ALWAYS = replace(QUIET, neighbours=lambda: [4711])


class Fake:
    """An executor that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, Any], int]] = []

    def __call__(self, point: Point, seed: int) -> Outcome:
        self.calls.append((point.shown, seed))
        return Outcome(np.full(50, 20_000.0), {}, placement={"processes": []})


def sweep(executor: Fake, **options: Any) -> Sweep:
    options = {"figures": QUIET, **options}
    return Sweep(SCENARIO, executor, prober=lambda _cpus: ("near", 100.0), **options)


def disturbed_in(document: dict[str, Any]) -> dict[str, Any]:
    return disturbances(document["points"])


def test_a_run_that_was_disturbed_in_passing_is_taken_again() -> None:
    seen, fake = iter([[], [], [], [4711]]), Fake()  # before and after each run
    document = sweep(fake, figures=replace(QUIET, neighbours=lambda: next(seen, []))).run()
    assert len(fake.calls) == 9
    assert fake.calls[1] == fake.calls[2]
    assert disturbed_in(document) == {
        "disturbed": 0,
        "retaken": 1,
        "disturbances": {OTHER_RUNS: 1},
    }
    assert f"{OTHER_RUNS} 1" in "\n".join(notes(document))
    assert "disturbed" not in "\n".join(notes(sweep(Fake()).run()))


def test_runs_that_stay_disturbed_are_kept_and_counted() -> None:
    fake = Fake()
    document = sweep(fake, figures=ALWAYS).run()
    # The others go on, as the first run's attempts tell: no more time is lost.
    assert len(fake.calls) == 8 + RETRIES
    assert disturbed_in(document) == {
        "disturbed": 8,
        "retaken": RETRIES,
        "disturbances": {OTHER_RUNS: 8 + RETRIES},
    }
    assert "8 of 8 kept, 2 repeated" in "\n".join(notes(document))


def test_a_paused_run_and_one_of_stolen_time_are_taken_again() -> None:
    class Paused(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            outcome = super().__call__(point, seed)
            if len(self.calls) == 5:
                stolen[1] += 10**15
            return replace(outcome, pauses=int(len(self.calls) in (2, 3)))

    stolen, fake = {0: 0, 1: 0}, Paused()
    document = sweep(fake, figures=replace(QUIET, stolen=lambda: dict(stolen))).run()
    assert fake.calls[1] == fake.calls[2] == fake.calls[3]
    assert fake.calls[4] == fake.calls[5]
    assert disturbed_in(document) == {
        "disturbed": 0,
        "retaken": 3,
        "disturbances": {PAUSE: 2, STOLEN: 1},
    }


def test_of_a_run_that_fails_when_it_is_taken_again_the_first_is_counted() -> None:
    class Failing(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            outcome = super().__call__(point, seed)
            if len(self.calls) == 2:
                raise PointFailedError("rank0 ended")
            return replace(outcome, pauses=int(len(self.calls) == 1))

    document = sweep(Failing()).run()
    assert sum("failed" in point for point in document["points"]) == 1
    assert disturbed_in(document) == {"disturbed": 0, "retaken": 1, "disturbances": {PAUSE: 1}}


def test_a_sweep_may_forbid_to_take_runs_again() -> None:
    fake = Fake()
    document = sweep(fake, figures=ALWAYS, retries=0).run()
    assert len(fake.calls) == 8
    assert disturbed_in(document)["disturbed"] == 8
