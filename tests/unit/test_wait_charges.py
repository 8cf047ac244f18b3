"""What an emulated host takes for waiting beside this one's own time: CPU time of the process.

Only lower bounds are asserted, by the clock that the burning reads: it never takes less.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest
from support.waiting import Scene

from shrimpmx.native import notify

COST_NS = 2_000_000


@pytest.fixture
def scene() -> Iterator[Scene]:
    yield Scene(clock="monotonic")
    notify.remove()


def found_at(number: int, before: Callable[[int], None] = lambda look: None) -> Callable[[], bool]:
    """A look that is true from the `number`th on."""
    looks = 0

    def look() -> bool:
        nonlocal looks
        looks += 1
        before(looks)
        return looks >= number

    return look


def taken_ns(work: Callable[[], object]) -> int:
    before = time.monotonic_ns()
    work()
    return time.monotonic_ns() - before


def signal_itself(number: int, times: int) -> None:
    for _ in range(times):
        os.kill(os.getpid(), number)


def test_each_yield_is_charged_once(scene: Scene) -> None:
    with scene.waiter("sched", reschedule_cost_ns=COST_NS) as waiter:
        taken = taken_ns(lambda: waiter.wait_until(found_at(4)))
    assert scene.account()["yields"] == 3
    assert taken >= 3 * COST_NS


@pytest.mark.parametrize("name", ["block", "notify"])
def test_each_sleep_is_charged_twice(scene: Scene, name: str) -> None:
    def interrupt(look: int) -> None:
        if look == 2:
            scene.slot.wake()

    with scene.waiter(name, reschedule_cost_ns=COST_NS) as waiter:
        taken = taken_ns(lambda: waiter.wait_until(found_at(3, interrupt)))
    assert scene.account()["blocks"] == 1
    assert taken >= 2 * COST_NS


@pytest.mark.parametrize("name", ["spin", "block", "spin-block", "adaptive"])
def test_what_needs_no_scheduler_is_charged_nothing(scene: Scene, name: str) -> None:
    """The clock of these waits stands still, so that burning anything would never end."""
    still = Scene()
    with still.waiter(name, reschedule_cost_ns=COST_NS) as waiter:
        assert waiter.wait_until(still.at_look(2)) == "ready"
    assert still.account().get("system_calls", 0) == 0


def test_each_run_of_the_handler_is_charged_once(scene: Scene) -> None:
    number = notify.default_signal()
    scene.control.register_process(0, number)
    with scene.waiter("notify", handler_cost_ns=COST_NS):
        before = notify.count()
        taken = taken_ns(lambda: signal_itself(number, 3))
        assert notify.count() == before + 3
    assert taken >= 3 * COST_NS


def test_the_next_waiter_brings_its_own_costs(scene: Scene) -> None:
    number = notify.default_signal()
    scene.control.register_process(0, number)
    hour_ns = 3600 * 10**9
    with scene.waiter("notify", handler_cost_ns=hour_ns):
        pass
    with scene.waiter("notify"):
        before = notify.count()
        os.kill(os.getpid(), number)  # would burn for an hour
        assert notify.count() == before + 1
