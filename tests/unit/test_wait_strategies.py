"""Each waiting strategy under the virtual clock: what it returns and what it puts on account.

The awaited thing is a Python function that moves the clock by a fixed step at each look, so
every figure of the account is known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.waiting import LOOK_NS, LOOKS_PER_CHECK, Scene

from shrimpmx.errors import InputError
from shrimpmx.native import notify
from shrimpmx.native.segment import Segment
from shrimpmx.settings.strategies import WAIT_NAMES
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.strategies import AdaptiveSpin, Block, Conditional, SpinThen, WatchdogWait
from shrimpmx.wait.waiter import Waiter


@pytest.fixture
def scene() -> Iterator[Scene]:
    yield Scene()
    notify.remove()


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_data_that_is_there_costs_one_look(scene: Scene, name: str) -> None:
    with scene.waiter(name) as waiter:
        assert waiter.wait_until(scene.at_look(1)) == "ready"
    account = scene.account()
    enabled = account.pop("interrupts_enabled", 0)
    assert account == {"waits": 1, "at_once": 1}
    assert enabled == (1 if name.endswith("notify") else 0)
    assert scene.control.now_ns() == 0


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_a_stop_ends_every_wait(scene: Scene, name: str) -> None:
    with scene.waiter(name) as waiter:
        scene.control.set_stop("abort")
        assert waiter.wait_until(scene.at_look(None)) == "stopped"
    assert scene.slot.armed == 0


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_a_deadline_ends_every_wait(scene: Scene, name: str) -> None:
    deadline_ns = 3 * LOOKS_PER_CHECK * LOOK_NS

    # The sleepers' clock moves only with their looks: send each of them back for another one.
    def disturb(look: int) -> None:
        if scene.slot.armed:
            scene.slot.wake()

    with scene.waiter(name) as waiter:
        assert waiter.wait_until(scene.at_look(None, disturb), deadline_ns) == "timed out"
    assert scene.account()["timeouts"] == 1
    assert deadline_ns <= scene.control.now_ns() < deadline_ns + LOOKS_PER_CHECK * LOOK_NS
    assert scene.slot.armed == 0


def test_spin_counts_its_time_and_nothing_else(scene: Scene) -> None:
    with scene.waiter("spin") as waiter:
        assert waiter.wait_until(scene.at_look(41)) == "ready"
    assert scene.account() == {"waits": 1, "while_spinning": 1, "spin_ns": 40 * LOOK_NS}


def test_sched_yields_once_per_look(scene: Scene) -> None:
    with scene.waiter("sched") as waiter:
        assert waiter.wait_until(scene.at_look(7)) == "ready"
    assert scene.account() == {"waits": 1, "yields": 6, "system_calls": 6}


def test_block_enables_the_interrupt_then_looks_again(scene: Scene) -> None:
    armed: list[int] = []
    with scene.waiter("block") as waiter:
        look = scene.at_look(2, lambda number: armed.append(scene.slot.armed))
        assert waiter.wait_until(look) == "ready"
    assert armed == [0, 1]
    assert scene.account() == {"waits": 1, "interrupts_enabled": 1, "races": 1}
    assert scene.slot.armed == 0


def test_block_sleeps_once_for_one_interrupt(scene: Scene) -> None:
    # The interrupt comes after the second look, before the sleep: it must not be lost.
    def interrupt(look: int) -> None:
        if look == 2:
            assert scene.slot.wake()

    with scene.waiter("block") as waiter:
        assert waiter.wait_until(scene.at_look(3, interrupt)) == "ready"
    assert scene.account() == {
        "waits": 1,
        "interrupts_enabled": 1,
        "blocks": 1,
        "system_calls": 1,
    }
    assert scene.slot.wakes == 1
    assert not scene.slot.wake(), "the waker left the slot disarmed"


def test_block_goes_back_to_sleep_when_woken_for_nothing(scene: Scene) -> None:
    def interrupt(look: int) -> None:
        if look in (2, 4, 6):
            assert scene.slot.wake()

    with scene.waiter("block") as waiter:
        assert waiter.wait_until(scene.at_look(7, interrupt)) == "ready"
    assert scene.account()["blocks"] == 3
    assert scene.account()["interrupts_enabled"] == 3


def test_notify_runs_a_handler_and_sleeps_once(scene: Scene) -> None:
    def interrupt(look: int) -> None:
        if look == 2:
            scene.slot.wake()

    with scene.waiter("notify") as waiter:
        assert waiter.wait_until(scene.at_look(3, interrupt)) == "ready"
    account = scene.account()
    assert account.pop("notifications") == 1
    assert account == {"waits": 1, "interrupts_enabled": 1, "blocks": 1, "system_calls": 1}
    assert scene.slot.notifications == 1


def test_spin_block_leaves_interrupts_off_while_it_spins(scene: Scene) -> None:
    with scene.waiter("spin-block", spin_ns=100 * LOOK_NS) as waiter:
        assert waiter.wait_until(scene.at_look(50)) == "ready"
    assert scene.account() == {"waits": 1, "while_spinning": 1, "spin_ns": 49 * LOOK_NS}


def test_spin_notify_pays_for_notifications_while_it_spins(scene: Scene) -> None:
    def interrupt(look: int) -> None:
        if look == 10:
            scene.slot.wake()

    with scene.waiter("spin-notify", spin_ns=100 * LOOK_NS) as waiter:
        assert waiter.wait_until(scene.at_look(50, interrupt)) == "ready"
    account = scene.account()
    assert account.pop("notifications") == 1
    assert account == {
        "waits": 1,
        "while_spinning": 1,
        "spin_ns": 49 * LOOK_NS,
        "interrupts_enabled": 1,
    }


@pytest.mark.parametrize("fallback", ["sched", "block", "notify"])
def test_hybrids_fall_back_after_their_limit(scene: Scene, fallback: str) -> None:
    limit_ns = 2 * LOOKS_PER_CHECK * LOOK_NS

    def disturb(look: int) -> None:
        if scene.slot.armed == 1 or (scene.slot.armed == 2 and look > 2 * LOOKS_PER_CHECK + 1):
            scene.slot.wake()

    with scene.waiter(f"spin-{fallback}", limit_ns) as waiter:
        look = scene.at_look(2 * LOOKS_PER_CHECK + 3, disturb)
        assert waiter.wait_until(look) == "ready"
    account = scene.account()
    assert account["spin_ns"] == limit_ns
    assert account["waits"] == 1
    assert "while_spinning" not in account
    assert account["system_calls"] == (2 if fallback == "sched" else 1)
    assert account.get("blocks", 0) == (0 if fallback == "sched" else 1)


def test_a_hybrid_with_no_limit_is_its_fallback(scene: Scene) -> None:
    with scene.waiter("spin-sched", spin_ns=0) as waiter:
        assert waiter.wait_until(scene.at_look(3)) == "ready"
    assert scene.account() == {"waits": 1, "yields": 2, "system_calls": 2}


def test_conditional_spins_longer_while_messages_come_and_starts_over_when_none_did(
    scene: Scene,
) -> None:
    baseline_ns = 2 * LOOKS_PER_CHECK * LOOK_NS
    strategy = Conditional(baseline_ns)
    limits = [strategy.limit_ns]
    with scene.waiter_of(strategy) as waiter:
        for _ in range(6):
            scene.looks = 0
            assert waiter.wait_until(scene.at_look(3)) == "ready"
            limits.append(strategy.limit_ns)
        assert limits == [baseline_ns * times for times in (1, 2, 3, 4, 5, 5, 5)]
        scene.looks = 0
        asleep = 5 * 2 * LOOKS_PER_CHECK + 2  # the look that finds the slot armed
        look = scene.at_look(
            asleep + 1, lambda number: None if number < asleep else void(scene.slot.wake())
        )
        assert waiter.wait_until(look) == "ready"
    account = scene.account()
    assert (account["blocks"], account["while_spinning"]) == (1, 6)
    assert account["limits_ns"] == baseline_ns * (1 + 2 + 3 + 4 + 5 + 5 + 5)
    assert strategy.limit_ns == baseline_ns


def void(_result: object) -> None:
    """A call for its effect, in a lambda."""


@pytest.mark.parametrize("name", ["conditional", "watchdog"])
def test_those_that_came_later_are_spin_block_at_first(scene: Scene, name: str) -> None:
    limit_ns = 2 * LOOKS_PER_CHECK * LOOK_NS

    def disturb(look: int) -> None:
        if scene.slot.armed:
            scene.slot.wake()

    with scene.waiter(name, limit_ns) as waiter:
        look = scene.at_look(2 * LOOKS_PER_CHECK + 3, disturb)
        assert waiter.wait_until(look) == "ready"
    account = scene.account()
    account.pop("limits_ns", None)
    assert account == {
        "waits": 1,
        "spin_ns": limit_ns,
        "interrupts_enabled": 1,
        "blocks": 1,
        "system_calls": 1,
    }


def test_another_strategy_can_be_used_for_one_call(scene: Scene) -> None:
    with scene.waiter("block") as waiter:
        assert waiter.wait_until(scene.at_look(7), strategy=make_strategy("sched")) == "ready"
        assert scene.account() == {"waits": 1, "yields": 6, "system_calls": 6}
        waiter.wait_words([], deadline_ns=0, strategy=make_strategy("spin"))
        assert "interrupts_enabled" not in scene.account()
        waiter.wait_words([], deadline_ns=0)
        assert scene.account()["interrupts_enabled"] == 1


@pytest.mark.parametrize("name", ["notify", "spin-notify", "watchdog"])
def test_interrupts_that_stay_enabled_are_no_choice_for_one_call(scene: Scene, name: str) -> None:
    with (
        scene.waiter("block") as waiter,
        pytest.raises(InputError, match=f"^{name} cannot be chosen for one call: .*own strategy$"),
    ):
        waiter.wait_until(lambda: True, strategy=make_strategy(name))
    waiter = scene.waiter(name)
    with pytest.raises(InputError, match=f"^{name} waits only after begin"):
        waiter.wait_until(lambda: True, strategy=waiter.strategy)
    with waiter:
        assert waiter.wait_until(lambda: True, strategy=waiter.strategy) == "ready"
        assert waiter.wait_until(lambda: True, strategy=make_strategy("spin-sched")) == "ready"
        for sleeper in ("block", "spin-block", "adaptive", "conditional"):
            with pytest.raises(InputError, match=f"^{sleeper} cannot .* while {name} is"):
                waiter.wait_words([], strategy=make_strategy(sleeper))


def test_any_flag_of_a_set_wakes_the_waiter(scene: Scene) -> None:
    segment = Segment.anonymous(4096, 1)
    view = segment.view()
    watches = [(segment.address + 64 * index, 0) for index in range(1, 9)]
    with scene.waiter("block") as waiter:
        assert waiter.wait_words(watches, deadline_ns=0) == "timed out"
        view[64 * 5] = 1
        assert waiter.wait_words(watches) == "ready"
        watches[4] = (watches[4][0], 1)
        assert waiter.wait_words(watches, deadline_ns=0) == "timed out"
        assert waiter.wait_words([], deadline_ns=0) == "timed out"
    view.release()


def test_an_exception_of_the_predicate_is_raised(scene: Scene) -> None:
    def fail() -> bool:
        raise KeyError("lost")

    with scene.waiter("spin") as waiter, pytest.raises(KeyError, match="lost"):
        waiter.wait_until(fail)


def test_names_are_the_papers() -> None:
    assert [make_strategy(name).name for name in WAIT_NAMES] == list(WAIT_NAMES)


@pytest.mark.parametrize("name", ["", "spin-spin", "sleep", "spin-", "block-spin"])
def test_an_unknown_name_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown waiting strategy .*spin-notify"):
        make_strategy(name)


def test_mistakes_are_told(scene: Scene) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        SpinThen(-1, Block())
    for strategy in (AdaptiveSpin, Conditional, WatchdogWait):
        with pytest.raises(ValueError, match="must not be negative"):
            strategy(-1)
    with pytest.raises(IndexError, match="no runner 1"):
        Waiter(scene.control, 1, Block())
    scene.control.register_process(0)
    with pytest.raises(ValueError, match="notify needs a signal"), scene.waiter("notify"):
        pass
