"""Wait slots: arm, look, sleep; no wake-up lost, none sent without request."""

from __future__ import annotations

import errno
import mmap
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from shrimpmx.errors import InputError
from shrimpmx.native import notify
from shrimpmx.native.futex import WaitSlotView, hammer

ROUNDS = 2000
# A wake-up that takes longer than this is lost. Never waited for when all is well.
LOST_NS = 30_000_000_000


@pytest.fixture
def memory() -> mmap.mmap:
    return mmap.mmap(-1, 4096)


@pytest.fixture
def slot(memory: mmap.mmap) -> WaitSlotView:
    return WaitSlotView(memory)


def test_nobody_is_woken_who_did_not_arm(slot: WaitSlotView) -> None:
    assert not slot.wake()
    assert (slot.armed, slot.wakes) == (0, 0)


def test_one_sleep_takes_one_wake_up(slot: WaitSlotView) -> None:
    slot.arm()
    assert slot.armed == 1
    assert slot.wake()
    assert not slot.wake()
    assert (slot.armed, slot.wakes) == (0, 1)


def test_a_wake_up_between_arming_and_sleeping_ends_the_sleep_at_once(slot: WaitSlotView) -> None:
    seen = slot.arm()
    slot.wake()
    assert slot.sleep(seen, LOST_NS) == 0


def test_an_old_wake_up_does_not_end_a_new_sleep(slot: WaitSlotView) -> None:
    slot.arm()
    slot.wake()
    assert slot.sleep(slot.arm(), 1_000_000) == errno.ETIMEDOUT
    assert slot.armed == 0


def test_disarming_takes_the_wish_back(slot: WaitSlotView) -> None:
    slot.arm()
    slot.disarm()
    assert not slot.wake()


def test_a_sleeper_that_looks_at_the_word_is_woken_once_like_any_other(
    slot: WaitSlotView, memory: mmap.mmap
) -> None:
    seen = slot.arm()
    slot.arm_word()
    assert slot.armed == 3
    assert slot.wake()
    assert not slot.wake()
    assert (slot.armed, slot.wakes) == (0, 1)
    assert int.from_bytes(memory[4:8], "little") == seen + 1


def test_a_slot_must_fit_its_memory() -> None:
    with pytest.raises(InputError, match="does not fit 64 bytes"):
        WaitSlotView(bytearray(64))


@pytest.fixture
def notification() -> Iterator[int]:
    number = notify.install(int(signal.SIGRTMIN))
    yield number
    notify.remove()


def test_an_armed_notification_is_sent_each_time(slot: WaitSlotView, notification: int) -> None:
    before = notify.count()
    slot.set_owner(os.getpid(), notification)
    slot.arm_notify()
    assert all(slot.wake() for _ in range(3))
    assert slot.armed == 2
    slot.disarm()
    assert not slot.wake()
    assert (slot.notifications, notify.count() - before) == (3, 3)


@pytest.mark.parametrize("delay_turns", [0, 30, 1000])
def test_no_wake_up_is_lost_between_threads(memory: mmap.mmap, delay_turns: int) -> None:
    ping, pong = WaitSlotView(memory), WaitSlotView(memory, WaitSlotView.SIZE_BYTES)
    done: list[int] = []

    def other_side() -> None:
        done.append(hammer(pong, ping, ROUNDS, False, 2, delay_turns, LOST_NS))

    thread = threading.Thread(target=other_side)
    thread.start()
    assert hammer(ping, pong, ROUNDS, True, 1, delay_turns, LOST_NS) == ROUNDS
    thread.join()
    assert done == [ROUNDS]


@pytest.mark.parametrize("delay_turns", [0, 30, 1000])
def test_no_wake_up_is_lost_between_processes(memory: mmap.mmap, delay_turns: int) -> None:
    ping, pong = WaitSlotView(memory), WaitSlotView(memory, WaitSlotView.SIZE_BYTES)
    child = os.fork()
    if child == 0:
        done = hammer(pong, ping, ROUNDS, False, 2, delay_turns, LOST_NS)
        os._exit(0 if done == ROUNDS else 1)
    assert hammer(ping, pong, ROUNDS, True, 1, delay_turns, LOST_NS) == ROUNDS
    assert os.waitpid(child, 0)[1] == 0
