"""Lost wake-ups: two processes that hand a flag to and fro, and two threads on one wait slot.

A lost wake-up shows as a wait that reaches its deadline.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import struct
import threading

import pytest
from support.conditions import wait_until
from support.memory import make_control, runner_place

from shrimpmx.native import notify
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.native.segment import Segment
from shrimpmx.settings.strategies import WAIT_NAMES
from shrimpmx.shared.control import Control
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.wait.waiting_strategy import WaitingStrategy

ROUNDS = 400
LIMIT_NS = 30_000_000_000
HEADER_BYTES = 192
RECORD_BYTES = 256


class Mixed(WaitingStrategy):
    """Spins, yields and sleeps by chance, seldom long enough for a hand-over."""

    def __init__(self) -> None:
        self.random = random.Random(3)

    def idle(self, waited_ns: int) -> int | str:
        return self.random.choice(("yield", "sleep", self.random.randrange(1, 20_000)))


def play(control: Control, flags: Segment, me: int, name: str, seed: int) -> int:
    """Wait for each round's flag, then raise the other's; returns the rounds done."""
    control.register_process(me, signal.SIGUSR1)
    generator = random.Random(seed)
    other = WaitSlotView(control.segment.view(), HEADER_BYTES + RECORD_BYTES * (1 - me))
    view = flags.view()
    mine, theirs = 64 + 64 * me, 64 + 64 * (1 - me)
    # A spin limit of about the time that a hand-over takes: both ends of it are met.
    choice = Mixed() if name == "mixed" else name
    waiter = Waiter(control, me, make_strategy(choice, generator.randrange(1, 40_000)))
    done = 0
    with waiter:
        control.set_runner_state(me, "ready")
        while control.runner_info(1 - me)["state"] == "starting":
            waiter.wait_until(lambda: True)
        for number in range(ROUNDS):
            if not (me == 0 and number == 0):
                seen = number - 1 if me == 0 else number
                deadline_ns = control.now_ns() + LIMIT_NS
                if waiter.wait_words([(flags.address + mine, seen)], deadline_ns) != "ready":
                    break
            for _ in range(generator.randrange(0, 200)):
                pass
            struct.pack_into("<I", view, theirs, number + 1)
            other.wake()
            done += 1
    return done


@pytest.mark.parametrize(
    "name", [*(name for name in WAIT_NAMES if name not in ("spin", "sched")), "mixed"]
)
def test_no_wake_up_is_lost(name: str) -> None:
    control = make_control(["a", "b"], [], clock="monotonic")
    flags = Segment.anonymous(4096, 1)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(
        target=lambda: results.put(play(control, flags, 1, name, 2)), daemon=True
    )
    child.start()
    try:
        assert play(control, flags, 0, name, 1) == ROUNDS
        assert results.get() == ROUNDS
    finally:
        notify.remove()
        child.join(10)
        child.kill()
        child.join()


class Sleeper(threading.Thread):
    """Another thread of the process that sleeps until `came`, and what its wait returned."""

    def __init__(self, strategy: str) -> None:
        super().__init__()
        self.control = make_control(["a"], [], clock="monotonic")
        self.control.register_process(0, signal.SIGUSR1)
        self.slot = WaitSlotView(self.control.segment.view(), runner_place(self.control, 0))
        self.waiter = Waiter(self.control, 0, make_strategy(strategy))
        self.came = threading.Event()
        self.result = ""

    def run(self) -> None:
        end_ns = self.control.now_ns() + LIMIT_NS
        # What is found only when the sleep ended by time is no wake-up.
        found = lambda: self.came.is_set() and self.control.now_ns() < end_ns  # noqa: E731
        self.result = self.waiter.wait_until(found, end_ns)

    def until_asleep(self) -> None:
        self.start()
        wait_until(lambda: self.waiter.account()["blocks"], "the other thread sleeps")

    def woken(self) -> str:
        self.came.set()
        self.slot.wake()
        self.join(2 * LIMIT_NS / 1e9)
        return self.result


def test_the_end_of_a_threads_wait_takes_no_wake_up_from_another() -> None:
    sleeper = Sleeper("block")
    sleeper.until_asleep()
    looks = iter([False, True])  # the second look is the one with the slot armed
    assert sleeper.waiter.wait_until(lambda: next(looks)) == "ready"
    assert sleeper.waiter.account()["races"] == 1
    assert sleeper.woken() == "ready"


def test_a_notification_wakes_the_thread_that_waits_though_another_one_handles_it() -> None:
    """The kernel runs the handler on the main thread, if that may take the signal."""
    sleeper = Sleeper("notify")
    before = notify.count()
    try:
        with sleeper.waiter:
            sleeper.until_asleep()
            assert sleeper.woken() == "ready"
        assert notify.count() == before + 1
    finally:
        notify.remove()
