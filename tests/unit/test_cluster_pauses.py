"""Pauses of a whole run, as its supervisor finds them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from shrimpmx.cluster.engine.standstill import LATE_S, PULSE_S, Pauses


@pytest.fixture
def pauses() -> Iterator[Pauses]:
    found = Pauses()
    with found.watched():
        yield found


def test_looks_that_come_by_the_pulse_or_a_little_late_are_no_pause(pauses: Pauses) -> None:
    now_s = time.monotonic()
    for step_s in (0.0, PULSE_S, PULSE_S + 0.9 * LATE_S, 0.0, PULSE_S):
        now_s += step_s
        assert pauses.look(now_s) == 0.0
    assert (pauses.count, pauses.seconds) == (0, 0.0)


def test_what_comes_far_too_late_has_stood_still(pauses: Pauses) -> None:
    now_s = time.monotonic()
    pauses.look(now_s)
    assert pauses.look(now_s + PULSE_S + 60) == pytest.approx(60)
    assert pauses.look(now_s + 2 * PULSE_S + 60) == 0.0
    assert pauses.look(now_s + 3 * PULSE_S + 65) == pytest.approx(5)
    assert (pauses.count, pauses.seconds) == (2, pytest.approx(65))


@pytest.mark.parametrize("stopped_s", [0.0, 0.3])
def test_the_shortest_pause_shows_by_its_signal(pauses: Pauses, stopped_s: float) -> None:
    now_s = time.monotonic()
    pauses.look(now_s)
    os.kill(os.getpid(), signal.SIGCONT)
    assert pauses.look(now_s + PULSE_S + stopped_s) == pytest.approx(stopped_s)
    assert pauses.look(now_s + 2 * PULSE_S + stopped_s) == 0.0
    assert pauses.count == 1


def test_a_user_who_listens_for_the_signal_still_hears_it() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGCONT, lambda number, frame: heard.append(number))
    try:
        with Pauses().watched():
            os.kill(os.getpid(), signal.SIGCONT)
        os.kill(os.getpid(), signal.SIGCONT)
    finally:
        signal.signal(signal.SIGCONT, before)
    assert heard == [signal.SIGCONT] * 2
