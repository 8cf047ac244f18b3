"""Runs that do not compare with the others, in a sweep that claims are judged by: made again."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shrimpmx.errors import NotHereError
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.papers.comparable_runs import ROUNDS, ComparableRuns
from shrimpmx.results.disturbance import OTHER_RUNS, QUIET, disturbances
from shrimpmx.results.expectation import CLAIM_RUNS
from shrimpmx.results.expectation_kinds import Equals, Expectation, Ratio
from shrimpmx.results.metrics import Outcome
from shrimpmx.show.report import notes

SIZES = (0, 64)
TIME = Ratio(
    text="as fast",
    metric="half_round_trip",
    of={"size_bytes": SIZES[0]},
    to={"size_bytes": SIZES[1]},
    at_least=1,
)
COUNT = TIME.model_copy(update={"metric": "interrupts_per_message"})
EXACT = Equals(
    text="one",
    metric="interrupts_per_message",
    of={"size_bytes": SIZES[0]},
    value=1,
    exact=True,
)
RUNS = len(SIZES) * CLAIM_RUNS


class Machine:
    """A machine whose CPUs are `state` apart, but in runs of `states`, by their order from 0; runs
    in `beside` have neighbours, and those in `absent` cannot be made; the one
    `interrupted` is. `seeds` are those of the runs that were begun.
    """

    def __init__(
        self,
        state: str,
        states: Mapping[int, str] | None = None,
        beside: Container[int] = (),
        absent: Container[int] = (),
        interrupted: int | None = None,
    ) -> None:
        self._state, self._states, self._beside = state, states or {}, beside
        self._absent, self._interrupted = absent, interrupted
        self._probes = 0
        self.seeds: list[int] = []

    def _run(self, point: Point, seed: int) -> Outcome:
        self.seeds.append(seed)
        if len(self.seeds) - 1 == self._interrupted:
            raise KeyboardInterrupt
        if len(self.seeds) - 1 in self._absent:
            raise NotHereError("not now")
        return Outcome(np.full(50, 20_000.0), {}, placement={"processes": []})

    def _probe(self, _cpus: Sequence[int]) -> tuple[str, float | None]:
        number, self._probes = self._probes // 2, self._probes + 1  # before and after a run
        return self._states.get(number, self._state), 100.0

    def _neighbours(self) -> list[int]:
        return [4711] if len(self.seeds) in self._beside else []

    def sweep(
        self,
        repeats: int = CLAIM_RUNS,
        output: Path | None = None,
        expected: Expectation = TIME,
        *,
        resume: bool = False,
    ) -> Sweep:
        scenario = Scenario(
            name="x",
            title="A title",
            sweep={"size_bytes": SIZES},
            repeats=repeats,
            metrics=("half_round_trip", "interrupts_per_message"),
        )
        return Sweep(
            scenario,
            self._run,
            output=output,
            resume=resume,
            prober=self._probe,
            figures=replace(QUIET, neighbours=self._neighbours),
            retries=0,
            order=ComparableRuns([expected]),
        )


def made_again_at(document: dict[str, Any]) -> list[int]:
    return [point["made_again"] for point in document["points"]]


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
    assert [point["made_again"] for point in kept["points"]] == made_again_at(document)
    assert sum(made_again_at(document)) == 2
    assert "2 runs took the place of others" in "\n".join(notes(document))


@pytest.mark.parametrize(
    ("expected", "runs"), [(TIME, RUNS + 1), (COUNT, RUNS), (EXACT, RUNS)], ids=["t", "c", "e"]
)
def test_the_distance_is_no_matter_where_no_time_is_compared(
    expected: Expectation, runs: int
) -> None:
    machine = Machine("near", {4: "far"})
    machine.sweep(expected=expected).run()
    assert len(machine.seeds) == runs


@pytest.mark.parametrize(("expected", "again"), [(COUNT, True), (EXACT, False)], ids=["c", "e"])
def test_what_the_protocol_decides_takes_disturbed_runs(expected: Expectation, again: bool) -> None:
    machine = Machine("near", beside=[4])
    machine.sweep(expected=expected).run()
    assert (len(machine.seeds) > RUNS) == again


def test_what_was_interrupted_goes_on_with_as_many_rounds(tmp_path: Path) -> None:
    first = Machine("near", {4: "far", RUNS: "far"}, interrupted=RUNS + 1)
    with pytest.raises(KeyboardInterrupt):
        first.sweep(output=tmp_path / "o").run()
    then = Machine("far")
    document = then.sweep(output=tmp_path / "o", resume=True).run()
    assert len(then.seeds) == ROUNDS - 1
    assert sum(made_again_at(document)) == ROUNDS


def test_a_run_that_cannot_be_made_again_stays() -> None:
    machine = Machine("near", {4: "far"}, absent=range(RUNS, 10 * RUNS))
    document = machine.sweep().run()
    assert len(machine.seeds) == RUNS + ROUNDS
    assert sum(states.count("far") for states in states_of(document)) == 1
    assert not any("impossible" in point for point in document["points"])


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
