"""Waiting strategies written in Python: what they decide, and what becomes of one that raises."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.simulated import Scene as SimulatedScene
from support.tree import ROOT
from support.waiting import LOOK_NS, LOOKS_PER_CHECK, Scene

from shrimpmx.cluster.engine.runner import Runner
from shrimpmx.errors import InputError
from shrimpmx.settings.strategies import WAIT_NAMES
from shrimpmx.shared.agent import Agent
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.strategies import PythonStrategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.wait.waiting_strategy import WaitingStrategy

SPIN_NS = 2 * LOOKS_PER_CHECK * LOOK_NS


class Listed(WaitingStrategy):
    """Answers what it is given, in order, then sleeps; keeps what it is told."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []
        self.ends: list[tuple[int, str]] = []

    def idle(self, waited_ns: int) -> int | str:
        self.asked.append(waited_ns)
        return self.answers.pop(0) if self.answers else "sleep"  # type: ignore[return-value]

    def ended(self, waited_ns: int, outcome: str) -> None:
        self.ends.append((waited_ns, outcome))


def waking_from(scene: Scene, look: int) -> Callable[[int], None]:
    """Interrupts a sleeper, from that look on."""

    def interrupt(number: int) -> None:
        if number >= look and scene.slot.armed:
            scene.slot.wake()

    return interrupt


def test_on_a_simulated_host_each_yield_is_one_look_and_one_decision_too() -> None:
    scene, mine = SimulatedScene(), Listed("yield", "yield")

    def wait(host: SimulatedHost) -> None:
        with Waiter(scene.control, 0, PythonStrategy(mine), host=host) as waiter:
            assert waiter.wait_until(lambda: False, 5000) == "timed out"

    scene.task("one", wait)
    scene.run()
    # Then it sleeps.
    assert mine.asked == [0, 100, 200]


def test_what_is_there_at_once_is_no_decision() -> None:
    scene, mine = Scene(), Listed()
    with scene.waiter(mine) as waiter:
        assert waiter.wait_until(scene.at_look(1)) == "ready"
    assert (mine.asked, mine.ends) == ([], [])
    assert scene.account() == {"waits": 1, "at_once": 1}


def test_a_yield_is_one_look_and_one_decision() -> None:
    scene, mine = Scene(), Listed("yield", "yield", "yield")
    with scene.waiter(mine) as waiter:
        assert waiter.wait_until(scene.at_look(4)) == "ready"
    assert mine.asked == [0, LOOK_NS, 2 * LOOK_NS]
    assert mine.ends == [(3 * LOOK_NS, "ready")]
    assert scene.account() == {"waits": 1, "yields": 3, "system_calls": 3}


def test_a_spin_is_one_decision_whatever_its_looks() -> None:
    scene, mine = Scene(), Listed(SPIN_NS, SPIN_NS)
    with scene.waiter(mine) as waiter:
        assert waiter.wait_until(scene.at_look(3 * LOOKS_PER_CHECK)) == "ready"
    assert mine.asked == [0, SPIN_NS]
    assert scene.account()["while_spinning"] == 1
    assert scene.account()["spin_ns"] == mine.ends[0][0]


def test_a_sleep_blocks_and_is_the_last_decision() -> None:
    scene, mine = Scene(), Listed("yield", "sleep")
    with scene.waiter(mine) as waiter:
        # Woken for nothing after the third look, it sleeps on without being asked.
        assert waiter.wait_until(scene.at_look(6, waking_from(scene, 3))) == "ready"
    assert len(mine.asked) == 2
    account = scene.account()
    assert (account["blocks"], account["yields"]) == (2, 1)
    assert scene.slot.armed == 0


def test_the_last_look_before_a_sleep_finds_what_came_meanwhile() -> None:
    scene, mine = Scene(), Listed("sleep")
    with scene.waiter(mine) as waiter:
        assert waiter.wait_until(scene.at_look(2)) == "ready"
    assert scene.account() == {"waits": 1, "interrupts_enabled": 1, "races": 1}


@pytest.mark.parametrize("answers", [("yield",) * 99, (SPIN_NS,) * 99, ()])
def test_a_deadline_ends_a_wait(answers: tuple[object, ...]) -> None:
    scene, mine = Scene(), Listed(*answers)
    with scene.waiter(mine) as waiter:
        look = scene.at_look(None, waking_from(scene, 0))
        assert waiter.wait_until(look, 3 * SPIN_NS) == "timed out"
    assert scene.account()["timeouts"] == 1
    assert [outcome for _, outcome in mine.ends] == ["timed out"]
    assert scene.slot.armed == 0


@pytest.mark.parametrize("answers", [("yield",) * 99, (SPIN_NS,) * 99, ()])
def test_a_stop_ends_a_wait(answers: tuple[object, ...]) -> None:
    scene, mine = Scene(), Listed(*answers)

    def stop(look: int) -> None:
        scene.slot.wake()
        if look == 3:
            scene.control.set_stop("abort")

    with scene.waiter(mine) as waiter:
        assert waiter.wait_until(scene.at_look(None, stop)) == "stopped"
    assert [outcome for _, outcome in mine.ends] == ["stopped"]


@pytest.mark.parametrize("answer", [None, 0, -5, True, 1.5, "nap"])
def test_an_answer_that_is_none_ends_the_wait(answer: object) -> None:
    scene, mine = Scene(), Listed(answer)
    waiter = scene.waiter(mine)
    with pytest.raises(InputError) as caught, waiter:
        waiter.wait_until(scene.at_look(None))
    assert f"Listed.idle returned {answer!r}" in str(caught.value)
    assert scene.slot.armed == 0


class Failing(WaitingStrategy):
    """Raises at its second decision."""

    asked = 0

    def idle(self, waited_ns: int) -> int | str:
        self.asked += 1
        if self.asked == 2:
            raise KeyError("lost")
        return "yield"


def test_an_exception_is_raised_and_the_strategy_is_not_asked_again() -> None:
    scene, mine = Scene(), Failing()
    waiter = scene.waiter(mine)
    with pytest.raises(KeyError, match="lost"):
        waiter.wait_until(scene.at_look(None))
    with pytest.raises(KeyError, match="lost"):
        waiter.wait_words([])
    with pytest.raises(KeyError, match="lost"), waiter:
        pass
    assert mine.asked == 2


def test_an_exception_in_a_process_of_agents_ends_its_loop() -> None:
    scene = Scene()
    with pytest.raises(KeyError, match="lost"):
        Runner([Agent()], scene.waiter(Failing())).run()


def test_a_strategy_of_ones_own_can_be_used_for_one_call() -> None:
    scene, mine = Scene(), Listed("yield")
    with scene.waiter("spin") as waiter:
        assert waiter.wait_until(scene.at_look(2), strategy=make_strategy(mine)) == "ready"
    assert scene.account() == {"waits": 1, "yields": 1, "system_calls": 1}


def test_strategies_of_all_kinds_are_made() -> None:
    own = make_strategy(WaitingStrategy())
    assert isinstance(own, PythonStrategy)
    assert make_strategy(own) is own
    assert repr(own) == "<strategy WaitingStrategy>"
    with pytest.raises(InputError, match=r"a waiting strategy is a name \(spin, .* 3 is neither"):
        make_strategy(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_each_strategy_is_documented(name: str) -> None:
    page = (ROOT / "docs/waiting.md").read_text().splitlines()
    assert any(name in line[3:].split(", ") for line in page if line.startswith("## "))
