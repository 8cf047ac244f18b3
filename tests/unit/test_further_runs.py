"""Runs that do not compare with the others, in a sweep that claims are judged by: made again."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shrimpmx.papers.further_runs import ROUNDS, comparable_runs
from shrimpmx.results.expectation import CLAIM_RUNS
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.outside import OTHER_RUNS, disturbances
from shrimpmx.study.point import Point
from shrimpmx.study.scenario import Scenario
from shrimpmx.study.sweep import Sweep

SIZES = (0, 64)
RUNS = len(SIZES) * CLAIM_RUNS


class Machine:
    """A machine whose CPUs are `state` apart, but in runs of `states`, by their order from 0; runs
    in `beside` have neighbours. `seeds` are those of the runs that were made.
    """

    def __init__(
        self,
        state: str,
        states: Mapping[int, str] | None = None,
        beside: Container[int] = (),
    ) -> None:
        self._state, self._states, self._beside = state, states or {}, beside
        self._probes = 0
        self.seeds: list[int] = []

    def _run(self, point: Point, seed: int) -> Outcome:
        self.seeds.append(seed)
        return Outcome(np.full(50, 20_000.0), {}, placement={"processes": []})

    def _probe(self, _cpus: Sequence[int]) -> tuple[str, float | None]:
        number, self._probes = self._probes // 2, self._probes + 1  # before and after a run
        return self._states.get(number, self._state), 100.0

    def _neighbours(self) -> list[int]:
        return [4711] if len(self.seeds) in self._beside else []

    def sweep(self, repeats: int = CLAIM_RUNS, output: Path | None = None) -> Sweep:
        scenario = Scenario(
            name="x",
            title="A title",
            sweep={"size_bytes": SIZES},
            repeats=repeats,
            metrics=("half_round_trip",),
        )
        return Sweep(
            scenario,
            self._run,
            output=output,
            prober=self._probe,
            neighbours=self._neighbours,
            stolen=dict,
            retries=0,
            order=comparable_runs,
        )


def states_of(document: dict[str, Any]) -> list[list[str]]:
    return [point["states"] for point in document["points"]]


@pytest.mark.parametrize("state", ["near", "far", "any", "mixed", "unknown"])
def test_runs_that_are_alike_are_made_once(state: str) -> None:
    machine = Machine(state)
    machine.sweep().run()
    assert len(machine.seeds) == RUNS


def test_a_run_at_another_distance_is_made_again_with_its_own_seed(tmp_path: Path) -> None:
    machine = Machine("near", {4: "far", 6: "mixed"})
    sweep = machine.sweep(output=tmp_path / "o")
    document = sweep.run()
    assert machine.seeds[RUNS:] == [machine.seeds[4], machine.seeds[6]]
    assert states_of(document) == [["near"] * CLAIM_RUNS] * len(SIZES)
    # What lies on disk is what was judged.
    kept = sweep.kept()
    assert kept is not None
    assert states_of(kept) == states_of(document)


def test_a_machine_that_flips_all_the_time_ends() -> None:
    flips = dict.fromkeys(range(1, RUNS * (1 + ROUNDS), 2), "far")
    machine = Machine("near", flips)
    machine.sweep().run()
    assert RUNS < len(machine.seeds) <= RUNS * (1 + ROUNDS)


def test_a_point_that_has_enough_keeps_its_others() -> None:
    machine = Machine("near", dict.fromkeys(range(4), "far"))
    document = machine.sweep(CLAIM_RUNS + 4).run()
    assert len(machine.seeds) == len(SIZES) * (CLAIM_RUNS + 4)
    assert sum(states.count("far") for states in states_of(document)) == 4


def test_a_disturbed_run_is_made_again_and_counted() -> None:
    machine = Machine("near", beside=[3])  # at the end of one, and when the next begins
    document = machine.sweep().run()
    assert machine.seeds[RUNS:] == machine.seeds[2:4]
    assert disturbances(document["points"]) == {
        "disturbed": 0,
        "retaken": 2,
        "disturbances": {OTHER_RUNS: 2},
    }


def test_where_most_runs_are_disturbed_they_are_kept() -> None:
    machine = Machine("near", beside=range(RUNS + 1))
    document = machine.sweep().run()
    assert len(machine.seeds) == RUNS
    assert disturbances(document["points"])["disturbed"] == RUNS
