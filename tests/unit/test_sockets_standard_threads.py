"""Threads of the standard library in a thread of a Scheduler: user-level ones in virtual time."""

from __future__ import annotations

import socketserver
import threading
from typing import Any

import pytest
from support.fake_network import FakeNetwork

from shrimpmx.sockets.standard_threads import user_level_threads
from shrimpmx.sockets.threads import Scheduler


def in_a_user_level_thread(work: Any) -> Any:
    """What `work` gives there; and when, ns."""
    network: Any = FakeNetwork()
    scheduler = Scheduler(network)
    with user_level_threads(network):
        thread = scheduler.spawn(work)
        scheduler.run()
    return thread.result, network.now_ns()


def test_a_thread_is_started_once_and_joined_when_it_has_ended() -> None:
    def work() -> list[Any]:
        done: list[int] = []
        thread = threading.Thread(target=done.append, args=(1,))
        thread.start()
        before = thread.is_alive(), list(done)
        with pytest.raises(RuntimeError, match="only be started once"):
            thread.start()
        thread.join()
        return [before, thread.is_alive(), done]

    assert in_a_user_level_thread(work)[0] == [(True, []), False, [1]]


def test_a_join_and_a_wait_end_at_their_timeouts() -> None:
    def work() -> list[bool]:
        told = threading.Condition()
        event = threading.Event()
        waiting = threading.Thread(target=event.wait)
        waiting.start()
        with told:
            notified = told.wait(0.01)
        waiting.join(0.02)
        alive = waiting.is_alive()
        event.set()
        waiting.join(0.02)
        return [notified, alive, waiting.is_alive()]

    found, now_ns = in_a_user_level_thread(work)
    assert found == [False, True, False]
    assert 30_000_000 <= now_ns < 31_000_000


def test_outside_of_a_scheduler_a_second_thread_is_refused() -> None:
    network: Any = FakeNetwork()
    real = threading.Thread(target=int)
    real.start()
    with user_level_threads(network):
        real.join()
        assert not real.is_alive()
        condition = threading.Condition()
        with condition:
            assert not condition.wait(0.0)
        with pytest.raises(OSError, match="is a second thread"):
            threading.Thread(target=int).start()
        with pytest.raises(OSError, match="ThreadingTCPServer starts threads"):
            socketserver.ThreadingTCPServer(("", 0), socketserver.BaseRequestHandler)
