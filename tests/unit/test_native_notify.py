"""Notifications: counted one by one, never lost, and gone without a trace."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from shrimpmx.errors import InputError, MachineError
from shrimpmx.native import notify


@pytest.fixture
def number() -> Iterator[int]:
    installed = notify.install()
    yield installed
    notify.remove()


def test_each_signal_is_counted_once(number: int) -> None:
    before = notify.count()
    for _ in range(100):
        os.kill(os.getpid(), number)
    assert notify.count() == before + 100


def test_signals_held_back_are_all_there_when_let_in(number: int) -> None:
    before = notify.count()
    notify.block()
    for _ in range(10):
        os.kill(os.getpid(), number)
    assert notify.count() == before
    notify.unblock()
    assert notify.count() == before + 10


def test_a_signal_between_the_look_and_the_sleep_ends_it_at_once(number: int) -> None:
    before = notify.count()
    notify.block()
    os.kill(os.getpid(), number)
    assert notify.wait(-1)
    assert notify.count() == before + 1
    notify.unblock()


def test_without_a_signal_the_sleep_ends_at_its_limit(number: int) -> None:
    notify.block()
    assert not notify.wait(1_000_000)
    assert not notify.wait(0)
    notify.unblock()


def test_no_notification_is_lost_however_it_falls(number: int) -> None:
    """Another thread signals, this one sleeps until the next has come: never for ever."""
    rounds, start = 300, notify.count()
    may_send = threading.Semaphore(0)
    pid = os.getpid()

    def sender() -> None:
        notify.block()  # the handler is for the main thread
        for _ in range(rounds):
            may_send.acquire()
            os.kill(pid, number)

    thread = threading.Thread(target=sender)
    thread.start()
    notify.block()
    for done in range(rounds):
        may_send.release()
        while notify.count() == start + done:
            notify.wait(-1)
    notify.unblock()
    thread.join()
    assert notify.count() == start + rounds


def test_the_disposition_before_comes_back() -> None:
    number = notify.default_signal()
    before = signal.getsignal(number)
    assert notify.install(number) == number
    assert notify.install(number) == number
    notify.remove()
    notify.remove()
    assert signal.getsignal(number) == before


def test_two_signals_at_once_are_refused(number: int) -> None:
    with pytest.raises(MachineError, match=f"already use signal {number}"):
        notify.install(number + 1)


def test_a_signal_without_a_handler_is_refused() -> None:
    with pytest.raises(InputError, match="signal 9 cannot have a handler"):
        notify.install(signal.SIGKILL)
