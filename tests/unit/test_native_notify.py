"""Notifications: counted one by one, and gone without a trace."""

from __future__ import annotations

import os
import signal
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
