"""The search of `explore`: the race, the budget, failures, the choice; under a virtual clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.exploring import (
    START_S,
    Cost,
    Program,
    best_of,
    cost,
    exploration,
    failure_of,
    outcome,
    scenario_of,
)

from shrimpmx.errors import AgentError, DeadlineError, InputError
from shrimpmx.experiment.explore.grid import PLACEMENTS, placement_of
from shrimpmx.experiment.explore.pace import FIRST_S, GRACE_S, PATIENCE
from shrimpmx.experiment.explore.race import FIRST_SHARE, RUNS_MOST, SETTLED
from shrimpmx.experiment.explore.words import recommendation
from shrimpmx.experiment.point import Point
from shrimpmx.results.result import load_result


def test_all_combinations_of_placement_with_the_rest_are_explored() -> None:
    points = scenario_of().points()
    assert len(points) == 4 * 3 * 4
    assert {placement_of(point.shown, 2) for point in points} == set(PLACEMENTS)
    queues = {placement_of(p.shown, 2): p.parameters.nic.rx_queues for p in points}
    assert queues == {"round-robin": 1, "one-core": 1, "per-queue": 2}
    # With one core placements are all the same.
    assert len(scenario_of(cores=1).points()) == 4 * 4


@pytest.mark.nightly("each seed", but=1)
@pytest.mark.parametrize("seed", range(3))
def test_the_best_is_found_in_spite_of_noise_and_runs_most(seed: int) -> None:
    program = Program(cost, noise=0.04)
    explored = exploration(program, scenario_of(), seed=seed)
    explored.run()
    best = best_of(explored.findings())
    assert (best["irq_binding"], best["wait"]) == ("0", "block")
    # As good in time, and has the fewest interrupts of those.
    assert best["coalescing"] == "stream"
    runs = Counter(program.ran)
    assert set(runs) == set(range(48))
    # Those that are surely worse are left behind.
    assert sum(count <= 3 for count in runs.values()) >= 24
    assert max(runs.values()) >= SETTLED


@pytest.mark.parametrize("budget_s", [100.0, 150.0, 200.0])
def test_the_budget_is_kept_and_used(budget_s: float) -> None:
    program = Program(alike_without_a_timer, noise=0.4)
    exploration(program, scenario_of(), budget_s).run()
    assert budget_s - 2 * (START_S + 2) < program.now <= budget_s + START_S + 2


def test_a_settled_question_ends_before_the_budget() -> None:
    program = Program(lambda shown: (1.0 + (shown["wait"] == "spin"), 1.0, 1), noise=0.01)
    scenario = scenario_of(1, coalescing=["timeout"], wait=["spin", "block"])
    explored = exploration(program, scenario)
    explored.run()
    assert best_of(explored.findings())["wait"] == "block"
    assert program.now < 60


def alike_without_a_timer(shown: Mapping[str, Any]) -> Cost:
    return 1.0 + 2.0 * (shown["coalescing"] == "timeout"), 1.0, 1


@pytest.mark.nightly("each seed", but=1)
@pytest.mark.parametrize("seed", range(3))
def test_no_setting_is_dropped_after_one_run_that_may_have_been_noise(seed: int) -> None:
    program = Program(alike_without_a_timer, noise=0.4, random=Random(seed))
    explored = exploration(program, scenario_of(), 500.0, seed=seed)
    explored.run()
    found = explored.findings()
    assert found is not None
    dropped = {each.index for each in found.usable} - set(found.contenders)
    single = {index for index in dropped if found.settings[index].measured.runs == 1}
    assert {found.settings[index].point.shown["coalescing"] for index in single} == {"timeout"}
    assert min(found.settings[index].measured.runs for index in found.contenders) > 1
    assert "only once" not in " ".join(recommendation(found))


@pytest.mark.nightly("each seed and budget", but=2)
@pytest.mark.parametrize("budget_s", [4.0, 6.0, 10.0, 25.0, 60.0, 120.0])
@pytest.mark.parametrize("seed", range(2))
def test_the_least_median_is_never_that_of_a_single_run(budget_s: float, seed: int) -> None:
    program = Program(lambda _: (1.0, 1.0, 1), noise=0.5, random=Random(seed))
    explored = exploration(program, scenario_of(), budget_s, seed=seed)
    explored.run()
    found = explored.findings()
    assert found is not None
    if explored.shortage():
        assert budget_s < 5
        return
    least = min(found.usable, key=lambda each: each.measured.median("time"))
    assert least.measured.runs > 1
    assert found.settings[found.best].measured.runs > 1


def test_the_best_is_found_although_its_first_run_was_disturbed() -> None:
    def disturbed(point: Point, seed: int, limit_s: float) -> Any:
        is_best = point.shown["coalescing"] == "stream" and point.shown["wait"] == "block"
        run_s = (0.8 if is_best else 1.3) * (1.0 + 0.4 * program.random.random())
        run_s = 1.7 if is_best and point.index not in program.ran else run_s
        program.ran.append(point.index)
        program.now += START_S + run_s
        return outcome((run_s, 1.0, 1))

    program = Program(cost)
    explored = exploration(program, scenario_of(1), execute=disturbed)
    explored.run()
    best = best_of(explored.findings())
    assert (best["coalescing"], best["wait"]) == ("stream", "block")


def test_a_budget_too_short_for_second_runs_of_all_says_so() -> None:
    program = Program(alike_without_a_timer, noise=0.4)
    explored = exploration(program, scenario_of(), 150.0)
    explored.run()
    assert program.now <= 150.0 + START_S + 5
    found = explored.findings()
    assert found is not None
    assert "ran only once: raise --budget" in " ".join(recommendation(found))


def test_settings_that_ran_as_often_as_they_may_are_not_settled_by_a_larger_budget() -> None:
    scenario = scenario_of(1, coalescing=["disabled", "stream"], wait=["block"])
    for most, advice in ((3, "raise --runs"), (RUNS_MOST, "explore these alone")):
        explored = exploration(
            Program(lambda _: (1.0, 1.0, 1), noise=0.1), scenario, 1e6, most=most
        )
        explored.run()
        found = explored.findings()
        assert found is not None
        assert found.next_step.startswith(advice)


def test_settings_that_are_alike_run_alternately_until_the_budget_is_spent() -> None:
    program = Program(lambda _: (1.0, 1.0, 1), noise=0.1)
    scenario = scenario_of(1, coalescing=["disabled", "stream"], wait=["block"])
    explored = exploration(program, scenario, 60.0)
    explored.run()
    assert abs(Counter(program.ran)[0] - Counter(program.ran)[1]) <= 1
    found = explored.findings()
    assert found is not None
    assert sorted(found.contenders) == [0, 1]


def test_no_setting_runs_more_often_than_was_asked_for() -> None:
    program = Program(cost, noise=0.02)
    explored = exploration(program, scenario_of(), most=2)
    explored.run()
    assert max(Counter(program.ran).values()) == 2
    assert explored.findings() is not None


def test_a_setting_that_fails_is_left_out_and_the_others_go_on() -> None:
    program = Program(lambda shown: None if shown["wait"] == "block" else cost(shown), noise=0.02)
    explored = exploration(program, scenario_of())
    explored.run()
    found = explored.findings()
    assert best_of(found)["wait"] == "spin-block"
    assert found is not None
    assert {each.point.shown["wait"] for each in found.failed} == {"block"}
    assert "exit code 9" in found.failed[0].measured.failed
    assert max(Counter(program.ran)[each.index] for each in found.failed) == 1


def test_a_program_that_fails_under_the_first_two_settings_fails() -> None:
    program = Program(lambda _: None)
    error = failure_of(exploration(program, scenario_of()))
    assert error is not None
    assert (error.exit_code, len(program.ran)) == (9, 2)
    alone = Program(lambda _: None)
    one = scenario_of(1, coalescing=["stream"], wait=["block"])
    assert failure_of(exploration(alone, one)) is not None
    assert len(alone.ran) == 1


def test_a_budget_too_short_for_all_tries_settings_that_are_spread_over_the_grid() -> None:
    program = Program(cost, noise=0.02)
    explored = exploration(program, scenario_of(), 40.0)
    document = explored.run()
    assert explored.shortage() == ""
    tried = len(document["points"])
    assert 8 <= tried < 40 * FIRST_SHARE
    assert len(program.ran) > tried
    assert program.now <= 40.0 + START_S + 2
    shown = [point["params"] for point in document["points"]]
    for axis in ("coalescing", "wait"):
        counts = Counter(each[axis] for each in shown)
        assert len(counts) == 4
        assert max(counts.values()) - min(counts.values()) <= 2
    assert len({(each["rx_queues"], each["irq_binding"]) for each in shown}) == 3
    found = explored.findings()
    assert found is not None
    assert found.settings[found.best].measured.runs > 1
    told = " ".join(recommendation(found))
    assert f"{tried} of 48 settings have run" in told
    assert "--resume --budget " in told


def test_a_budget_too_short_to_compare_any_says_so_and_keeps_what_has_run() -> None:
    program = Program(cost)
    explored = exploration(program, scenario_of(), 2.0)
    document = explored.run()
    assert "1 of 48" in explored.shortage()
    assert len(program.ran) == len(document["points"]) == 1
    found = explored.findings()
    assert found is not None
    assert found.chance is None
    whole = exploration(Program(cost), scenario_of())
    whole.run()
    assert whole.shortage() == ""


def test_an_exploration_whose_budget_was_too_short_can_be_resumed(tmp_path: Path) -> None:
    program, again, place = Program(cost), Program(cost), tmp_path / "result"
    first = exploration(program, scenario_of(), 20.0, output=place)
    first.run()
    tried = set(program.ran)
    assert set(first.race.pending()) == set(range(48)) - tried
    whole = exploration(again, scenario_of(), output=place, resume=True)
    whole.run()
    assert whole.race.pending() == []
    assert set(again.ran[: 48 - len(tried)]) == set(range(48)) - tried
    found = whole.findings()
    assert found is not None
    assert found.rest == ""


def test_an_exploration_goes_on_with_what_another_has_kept(tmp_path: Path) -> None:
    program, scenario = Program(cost), scenario_of()

    def interrupted(point: Point, seed: int, limit_s: float) -> Any:
        if len(program.ran) == 7:
            raise KeyboardInterrupt
        return program(point, seed, limit_s)

    explored = exploration(program, scenario, execute=interrupted, output=tmp_path / "result")
    with pytest.raises(KeyboardInterrupt):
        explored.run()
    again = Program(cost)
    exploration(again, scenario, output=tmp_path / "result", resume=True).run()
    assert set(again.ran[:41]) == set(range(48)) - set(program.ran)
    stored = load_result(tmp_path / "result")
    assert len(stored["points"]) == 48


def test_an_exploration_that_goes_on_knows_how_long_runs_take(tmp_path: Path) -> None:
    first, scenario = Program(cost, noise=0.04), scenario_of()

    def interrupted(point: Point, seed: int, limit_s: float) -> Any:
        if len(first.ran) == 48:
            raise KeyboardInterrupt
        return first(point, seed, limit_s)

    explored = exploration(first, scenario, execute=interrupted, output=tmp_path / "result")
    with pytest.raises(KeyboardInterrupt):
        explored.run()
    again = Program(cost, noise=0.04)
    exploration(again, scenario, 200.0, output=tmp_path / "result", resume=True).run()
    runs = Counter(again.ran)
    assert len(runs) < 48
    assert max(runs.values()) >= SETTLED - 1
    assert max(again.limits) <= PATIENCE * (START_S + 1.1)


@pytest.mark.nightly("each case of a limit", but=2)
@pytest.mark.parametrize("seed", range(6))
def test_a_run_much_slower_than_the_fastest_is_given_up(seed: int) -> None:
    def execute(point: Point, seed: int, limit_s: float) -> Any:
        if point.shown["wait"] == "spin":
            program.now += limit_s
            program.limits.append(limit_s)
            raise DeadlineError("late")
        return program(point, seed, limit_s)

    program = Program(lambda _: (2.0, 1.0, 1))
    explored = exploration(program, scenario_of(1), execute=execute, seed=seed)
    explored.run()
    # One that hangs before any other has run costs its share of the budget, not all of it.
    assert program.limits[0] == FIRST_S
    found = explored.findings()
    assert found is not None
    assert {each.point.shown["wait"] for each in found.failed} == {"spin"}
    assert best_of(found)["wait"] != "spin"
    reasons = [each.measured.failed for each in found.failed]
    assert any(f"given up after {PATIENCE * (2 + START_S)} s" in reason for reason in reasons)
    assert explored.shortage() == ""


@pytest.mark.parametrize(("at_start", "runs"), [(True, 1), (False, 2)])
def test_a_program_that_fails_before_its_first_message_runs_once(at_start: bool, runs: int) -> None:
    def execute(point: Point, seed: int, limit_s: float) -> Any:
        try:
            return program(point, seed, limit_s)
        except AgentError as error:
            error.at_start = at_start
            raise

    program = Program(lambda _: None)
    failure = failure_of(exploration(program, scenario_of(), execute=execute))
    assert failure is not None
    assert failure.exit_code == 9
    assert len(program.ran) == runs


def test_a_budget_gives_the_first_runs_equal_shares() -> None:
    def execute(point: Point, seed: int, limit_s: float) -> Any:
        if len(program.limits) < 2:
            program.now += limit_s
            program.limits.append(limit_s)
            raise DeadlineError("late")
        return program(point, seed, limit_s)

    program = Program(lambda _: (2.0, 1.0, 1))
    explored = exploration(program, scenario_of(1), 16 * 50.0, execute=execute)
    explored.run()
    assert program.limits[:3] == [50.0] * 3
    found = explored.findings()
    assert found is not None
    assert len(found.failed) == 2


def test_a_budget_in_which_no_run_ends_is_refused() -> None:
    def execute(point: Point, seed: int, limit_s: float) -> Any:
        program.now += limit_s
        raise DeadlineError("late")

    for budget_s, longest_s in ((60.0, 30), (45.0, 30), (5.0, 15)):
        program = Program(cost)
        explored = exploration(program, scenario_of(), budget_s, execute=execute)
        with pytest.raises(InputError, match=f"no run ended within {longest_s} s"):
            explored.run()
        assert program.now <= budget_s + GRACE_S


def test_a_run_that_hangs_ends_soon_after_the_budget_and_its_setting_is_not_out() -> None:
    def execute(point: Point, seed: int, limit_s: float) -> Any:
        if len(program.ran) == 6 and not hung:
            hung.append(point.index)
            program.now += limit_s
            raise DeadlineError("late")
        return program(point, seed, limit_s)

    # The fastest run takes 12.5 s: patience alone would let one hang for 125.
    hung: list[int] = []
    program = Program(lambda _: (12.0, 1.0, 1), noise=0.001)
    scenario = scenario_of(1, coalescing=["disabled", "stream"], wait=["block"])
    explored = exploration(program, scenario, 100.0, execute=execute)
    explored.run()
    assert 100.0 < program.now <= 100.0 + GRACE_S
    found = explored.findings()
    assert found is not None
    assert hung
    assert found.failed == []
    assert len(found.usable) == 2
