"""Waiting by strategy, with real time: threads of one process on one endpoint."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from support.virtual_cluster import VirtualCluster

from shrimpmx.errors import InputError, MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

LIMIT_S = 20.0


@contextmanager
def carried(strategy: str | None) -> Iterator[tuple[Endpoint, Endpoint, Partner]]:
    """A connected pair whose wire a thread moves; the second waits by `strategy`."""
    cluster = VirtualCluster(clock="tsc")
    waiter = None
    if strategy:
        waiter = Waiter(cluster.control, 2, make_strategy(strategy))
    one = cluster.open(0)
    other = cluster.open(1, waiter=waiter)
    stop = threading.Event()

    def carry() -> None:
        while not stop.wait(0.0005):
            cluster.carry()

    carrier = threading.Thread(target=carry)
    carrier.start()
    try:
        request = one.iconnect(1, 0)
        while (status := one.test(request)) is None:
            other.progress()
        assert status.source is not None
        yield one, other, status.source
    finally:
        stop.set()
        carrier.join(LIMIT_S)
        one.close()
        other.close()


def started(calls: list[Callable[[], object]]) -> tuple[list[threading.Thread], list[object]]:
    results: list[object] = [...] * len(calls)

    def run(index: int) -> None:
        try:
            results[index] = calls[index]()
        except MxError as error:
            results[index] = error.status

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    return threads, results


def finished(threads: list[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(LIMIT_S)
    return not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("strategy", [None, "spin", "block", "sched", "spin-block"])
def test_a_wakeup_ends_every_kind_of_wait(strategy: str | None) -> None:
    with carried(strategy) as (_one, other, _partner):
        request = other.irecv(bytearray(4), 1)
        calls: list[Callable[[], object]] = [
            lambda: other.wait(request),
            lambda: other.probe(2),
            lambda: other.peek(3, 3),
            lambda: other.wait_any(3, 3),
            lambda: other.recv(bytearray(4), 4),
        ]
        threads, results = started(calls)
        deadline = threading.Event()
        for _ in range(400):
            other.wakeup()
            if not any(thread.is_alive() for thread in threads):
                break
            deadline.wait(0.01)
        assert finished(threads)
        assert results == [None, None, None, None, "woken"]
        assert other.cancel(request)


@pytest.mark.parametrize("strategy", [None, "spin", "block", "sched", "spin-block"])
def test_each_thread_gets_its_message(strategy: str | None) -> None:
    with carried(strategy) as (one, other, partner):

        def receive(match: int) -> Callable[[], object]:
            def run() -> object:
                buffer = bytearray(4)
                for turn in range(20):
                    other.recv(buffer, match, timeout_ns=int(LIMIT_S * 1e9))
                    assert buffer == bytes([match, turn, 0, 0])
                return match

            return run

        threads, results = started([receive(i) for i in range(4)])
        for turn in range(20):
            for match in range(4):
                one.send(bytes([match, turn, 0, 0]), partner, match)
        for _ in range(2000):
            one.progress()
            threads[0].join(0.001)
            threads = [thread for thread in threads if thread.is_alive()] or threads[:1]
            if not threads[0].is_alive():
                break
        assert finished(threads)
        assert results == [0, 1, 2, 3]


def test_closing_ends_the_waits_of_other_threads() -> None:
    with carried("block") as (_, other, _partner):
        threads, results = started([lambda: other.recv(bytearray(1), 1)])
        while other.counters()["progress_calls"] < 3:
            pass
        other.close()
        assert finished(threads)
        assert results[0] in ("woken", "endpoint-closed")


def test_notify_is_for_one_thread() -> None:
    cluster = VirtualCluster(clock="tsc")
    waiter = Waiter(cluster.control, 1, make_strategy("spin-notify"))
    one = cluster.open(0, waiter=waiter)
    threads, _results = started([lambda: one.probe(1, timeout_ns=2_000_000_000)])
    refused = False
    while threads[0].is_alive() and not refused:
        try:
            one.probe(2, timeout_ns=1_000_000)
        except InputError:
            refused = True
            one.wakeup()
    assert finished(threads)
    assert refused
    one.close()
