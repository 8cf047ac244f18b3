"""What waits ask of a NIC that interrupts for chosen pages only: which calls, in which order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.waiting import Scene

from shrimpmx.native import notify
from shrimpmx.wait.waiter import RecordedGate

PER_WAIT = ["block", "spin-block", "adaptive", "conditional"]


@pytest.fixture
def scene() -> Iterator[Scene]:
    yield Scene()
    notify.remove()


@pytest.mark.parametrize("name", [*PER_WAIT, "spin", "sched", "spin-sched"])
def test_a_wait_that_does_not_sleep_leaves_the_device_alone(scene: Scene, name: str) -> None:
    waiter = scene.waiter(name)
    gate = RecordedGate(waiter)
    with waiter:
        assert waiter.wait_until(scene.at_look(1)) == "ready"
    assert gate.calls() == []


@pytest.mark.parametrize("name", PER_WAIT)
def test_interrupts_are_enabled_before_the_last_look_and_disabled_if_it_finds(
    scene: Scene, name: str
) -> None:
    waiter = scene.waiter(name, spin_ns=0)
    gate = RecordedGate(waiter)
    seen: list[list[str]] = []
    with waiter:
        look = scene.at_look(2, lambda _number: seen.append(gate.calls()))
        assert waiter.wait_until(look) == "ready"
    assert seen == [[], ["enable"]]
    assert gate.calls() == ["enable", "disable"]
    assert scene.account()["interrupts_enabled"] == 1
    assert scene.slot.armed == 0


@pytest.mark.parametrize("name", PER_WAIT)
def test_the_handler_has_disabled_them_when_it_wakes(scene: Scene, name: str) -> None:
    waiter = scene.waiter(name, spin_ns=0)
    gate = RecordedGate(waiter)

    def interrupt(look: int) -> None:
        if look == 2:
            assert scene.slot.wake()

    with waiter:
        assert waiter.wait_until(scene.at_look(3, interrupt)) == "ready"
    assert gate.calls() == ["enable"]


def test_an_interrupt_for_something_else_enables_them_again(scene: Scene) -> None:
    waiter = scene.waiter("block")
    gate = RecordedGate(waiter)

    def interrupt(look: int) -> None:
        if look in (2, 4):
            assert scene.slot.wake()

    with waiter:
        assert waiter.wait_until(scene.at_look(5, interrupt)) == "ready"
    assert gate.calls() == ["enable", "enable"]
    assert scene.account()["interrupts_enabled"] == 2


def test_what_is_found_after_a_sleep_that_no_handler_ended_disables_them(scene: Scene) -> None:
    """A stopper moves the slot's word, without a wake-up in the handler's place."""
    waiter = scene.waiter("block")
    gate = RecordedGate(waiter)

    def stop(look: int) -> None:
        if look == 2:
            scene.control.set_stop("no")

    with waiter:
        assert waiter.wait_until(scene.at_look(3, stop)) == "ready"
    assert gate.calls() == ["enable", "disable"]
    assert scene.slot.armed == 0


@pytest.mark.parametrize("name", PER_WAIT)
def test_a_stop_and_a_deadline_disable_them(scene: Scene, name: str) -> None:
    waiter = scene.waiter(name, spin_ns=0)
    gate = RecordedGate(waiter)
    with waiter:
        assert waiter.wait_until(scene.at_look(None), deadline_ns=0) == "timed out"
        scene.control.set_stop("abort")
        assert waiter.wait_until(scene.at_look(None)) == "stopped"
    assert gate.calls() == ["enable", "disable"] * 2


@pytest.mark.parametrize("name", ["notify", "spin-notify"])
def test_notify_has_them_enabled_from_begin_to_end(scene: Scene, name: str) -> None:
    waiter = scene.waiter(name)
    gate = RecordedGate(waiter)

    def interrupt(look: int) -> None:
        if look == 2:
            scene.slot.wake()

    with waiter:
        assert gate.calls() == ["always"]
        for _ in range(2):
            scene.looks = 0
            assert waiter.wait_until(scene.at_look(3, interrupt)) == "ready"
    assert gate.calls() == ["always", "never"]
    assert scene.account()["interrupts_enabled"] == 1


def test_watchdog_tells_of_each_look_that_found_and_changes_nothing_else(scene: Scene) -> None:
    waiter = scene.waiter("watchdog", spin_ns=10_000)
    gate = RecordedGate(waiter)

    def interrupt(_look: int) -> None:
        if scene.slot.armed:
            scene.slot.wake()

    with waiter:
        assert gate.calls() == ["watch"]
        assert waiter.wait_until(scene.at_look(1)) == "ready"  # at once
        assert waiter.wait_until(scene.at_look(3)) == "ready"  # while spinning
        scene.looks = 0
        assert waiter.wait_until(scene.at_look(150, interrupt)) == "ready"  # asleep
        assert waiter.wait_until(scene.at_look(None), deadline_ns=0) == "timed out"
    assert gate.calls() == ["watch", "polled", "polled", "polled", "never"]
    account = scene.account()
    assert account["interrupts_enabled"] == 1
    assert account["blocks"] > 0
    assert scene.slot.armed == 0
