"""Explorations on simulated hosts: what limits them, and which figures are exact."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.exploring import Program, best_of, cost, exploration, scenario_of

from shrimpmx.cluster.spec import FOREVER_S
from shrimpmx.experiment.explore.exploration import Exploration
from shrimpmx.experiment.explore.pace import PATIENCE, SimulatedPace
from shrimpmx.experiment.explore.race import SETTLED
from shrimpmx.experiment.explore.words import recommendation
from shrimpmx.experiment.outcome import PROGRAM
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Scenario


def simulated(
    program: Program, scenario: Scenario, seconds: float | None = None, **options: Any
) -> Exploration:
    """An exploration whose runs are simulated: `program.now` is real time, its costs virtual."""
    pace = SimulatedPace(len(scenario.points()), seconds=seconds, real_clock=program.clock)
    return exploration(program, scenario, pace=pace, most=SETTLED, **options)


def test_simulated_settings_may_run_more_often_if_asked_to() -> None:
    runs = []
    for most in (SETTLED, 4 * SETTLED):
        program = Program(lambda _: (1.0, 1.0, 1), noise=0.1)
        scenario = scenario_of(1, coalescing=["disabled", "stream"], wait=["block"])
        Exploration(scenario, program, "time", SimulatedPace(2, most), most=most).run()
        runs.append(len(program.ran))
    assert runs[1] == 4 * runs[0]


def test_simulated_runs_are_the_same_however_long_they_take() -> None:
    programs = [Program(cost, noise=0.01), Program(cost, noise=0.01)]
    found = []
    for program, start_s in zip(programs, (0.1, 50.0), strict=True):
        program.start_s = start_s
        explored = simulated(program, scenario_of())
        explored.run()
        findings = explored.findings()
        assert findings is not None
        found.append(findings.as_dict())
    assert programs[0].ran == programs[1].ran
    assert found[0] == found[1]
    assert found[0]["recommended"] == "stream, one-core, block"
    runs = Counter(programs[0].ran)
    assert set(runs) == set(range(48))
    assert max(runs.values()) == SETTLED


@pytest.mark.parametrize(("drawn", "more"), [((), 0), ((PROGRAM,), 1)])
def test_an_exploration_in_which_nothing_is_drawn_runs_each_setting_once(
    drawn: tuple[str, ...], more: int
) -> None:
    """The leader's second run shows that a program draws nothing by itself."""
    program = Program(cost, drawn=drawn)
    explored = simulated(program, scenario_of())
    explored.run()
    assert set(program.ran) == set(range(48))
    assert len(program.ran) == 48 + more
    found = explored.findings()
    assert found is not None
    assert found.is_exact
    assert best_of(found)["coalescing"] == "stream"
    told = " ".join(recommendation(found))
    assert "exact" in told
    # What ran again is named, and nothing else is said to have.
    assert (f"{found.settings[found.best].name} (twice)" in told) == bool(more)
    assert ("no setting ran twice" in told) != bool(more)
    assert not any(word in told for word in ("probability", "decided", "raise", "only once"))


@pytest.mark.parametrize("noise", [0.001, 0.3])
def test_a_program_that_draws_by_itself_has_no_exact_figures(noise: float) -> None:
    program = Program(cost, drawn=(PROGRAM,), noise=noise)
    explored = simulated(program, scenario_of(1))
    explored.run()
    found = explored.findings()
    assert found is not None
    assert not found.is_exact
    assert max(Counter(program.ran).values()) > 2
    assert "exact" not in " ".join(recommendation(found))


@pytest.mark.parametrize("varying", [False, True])
def test_runs_that_draw_are_not_exact_because_those_of_some_settings_agree(varying: bool) -> None:
    """All settings are alike; what is drawn may change further runs of the last one."""
    program = Program(lambda _: (1.0, 1.0, 1), drawn=("loss",))
    scenario = scenario_of(1, wait=["block", "spin"])
    last = max(point.index for point in scenario.points())

    def execute(point: Point, seed: int, limit_s: float) -> Any:
        again = point.index in program.ran
        program.noise = 0.01 if varying and again and point.index == last else 0.0
        return program(point, seed, limit_s)

    explored = simulated(program, scenario, execute=execute)
    explored.run()
    found = explored.findings()
    assert found is not None
    assert not found.is_exact
    assert found.settings[last].measured.varies == varying
    assert len(found.contenders) == 8
    assert sum(each.measured.runs for each in found.usable) == SimulatedPace(8).budget
    told = " ".join(recommendation(found))
    assert "exact" not in told
    assert ("never differed" in told) != varying


def test_only_settings_that_draw_run_again() -> None:
    program = Program(lambda _: (1.0, 1.0, 1), noise=0.1)

    def execute(point: Point, seed: int, limit_s: float) -> Any:
        draws = point.shown["coalescing"] == "timeout"
        program.drawn, program.noise = (("loss",), 0.1) if draws else ((), 0.0)
        return program(point, seed, limit_s)

    explored = simulated(program, scenario_of(1, wait=["block", "spin"]), execute=execute)
    explored.run()
    found = explored.findings()
    assert found is not None
    assert not found.is_exact
    runs = {each.point.shown["coalescing"]: each.measured.runs for each in found.usable}
    assert runs == {"disabled": 1, "timeout": SETTLED, "open-mx": 1, "stream": 1}
    assert {each.measured.exact for each in found.usable} == {False, True}


def test_a_simulated_run_is_given_up_by_its_virtual_time() -> None:
    program = Program(cost)
    simulated(program, scenario_of()).run()
    # No limit until one has ended; then by the fastest one so far, whatever it takes here.
    assert program.limits[0] == FOREVER_S
    assert program.limits == sorted(program.limits, reverse=True)
    # All of the run takes twice as long as its work.
    assert program.limits[-1] == PATIENCE * 2.0


def test_real_seconds_end_a_simulated_exploration_that_was_given_some() -> None:
    program = Program(cost, start_s=10.0)
    explored = simulated(program, scenario_of(), seconds=100.0)
    explored.run()
    assert program.now <= 130.0
    assert 4 <= len(set(program.ran)) < 12
    found = explored.findings()
    assert found is not None
    assert "of 48 settings have run" in " ".join(recommendation(found))
