"""Waiting by strategy: threads of one process on one endpoint, with real time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.conditions import wait_until
from support.virtual_cluster import DELAY_NS, VirtualCluster

from shrimpmx.errors import MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.native import notify
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import RecordedGate, Waiter

LIMIT_S = 20.0
LIMIT_NS = int(LIMIT_S * 1e9)
ALL_BITS = (1 << 64) - 1
STRATEGIES = (None, "spin", "block", "sched", "spin-block", "notify", "spin-notify")
# Of struct control_header and struct runner_record, whose first part is the wait slot.
HEADER_BYTES, RECORD_BYTES = 192, 256


@contextmanager
def carried(strategy: str | None) -> Iterator[tuple[Endpoint, Endpoint, Partner]]:
    """A connected pair whose wire a thread moves; the second waits by `strategy`."""
    cluster = VirtualCluster(clock="tsc")
    waiter = None
    if strategy:
        cluster.control.register_process(2, signal.SIGUSR1)
        waiter = Waiter(cluster.control, 2, make_strategy(strategy))
        waiter.begin()
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
        if waiter:
            waiter.end()
        notify.remove()


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


@pytest.mark.parametrize("strategy", ["block", "spin-block", "adaptive", "conditional"])
def test_what_comes_between_look_and_sleep_is_a_race_and_is_returned(strategy: str) -> None:
    cluster = VirtualCluster()
    parameters = {} if strategy == "block" else {"spin_ns": 0}
    waiter = Waiter(cluster.control, 2, make_strategy(strategy, **parameters))
    one, other = cluster.open(0), cluster.open(1, waiter=waiter)
    partner = cluster.connect(one, 1)

    def arrive() -> None:
        one.isend(b"news", partner, 7)
        cluster.carry()
        cluster.control.set_virtual_ns(cluster.now_ns + DELAY_NS)
        cluster.carry()

    gate = RecordedGate(waiter, arrive)
    buffer = bytearray(4)
    status = other.recv(buffer, 7, timeout_ns=LIMIT_NS)
    assert (status.code, buffer) == ("success", b"news")
    assert gate.calls() == ["enable", "disable"]
    account = waiter.account()
    assert (account["waits"], account["races"], account["blocks"]) == (1, 1, 0)
    one.close()
    other.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
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


@pytest.mark.parametrize("strategy", STRATEGIES)
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


def slot_of(cluster: VirtualCluster) -> WaitSlotView:
    """The wait slot that the process's threads share."""
    return WaitSlotView(cluster.control.segment.view(), HEADER_BYTES + RECORD_BYTES)


def until_asleep(thread: threading.Thread, waiter: Waiter, slot: WaitSlotView, before: int) -> None:
    """A thread has begun a sleep since `blocks` was `before`, and it goes on.

    A thread that waits for the interpreter's lock does not run either: it has disarmed the slot.
    """
    stat = Path(f"/proc/self/task/{thread.native_id}/stat")

    def asleep() -> bool:
        sleeps = stat.read_text().rpartition(")")[2].split()[0] == "S"
        return waiter.account()["blocks"] > before and sleeps and slot.armed != 0

    wait_until(asleep, "the thread sleeps", LIMIT_S)


def test_a_thread_between_two_sleeps_takes_no_wake_up_from_another_endpoint() -> None:
    """It is held there by a signal's handler, which it runs when a sleep has ended by time."""
    cluster = VirtualCluster(nodes=1, endpoints=3, clock="tsc")
    waiter = Waiter(cluster.control, 1, make_strategy("block"))
    slot = slot_of(cluster)
    one, other = (cluster.open(0, index, waiter=waiter) for index in (0, 1))
    sender = cluster.open(0, 2)
    to_one, to_other = (cluster.connect(sender, 0, index) for index in (0, 1))
    results: list[str] = []
    came = threading.Event()
    heard: list[bool] = []

    def hear() -> None:
        end_ns = cluster.now_ns + LIMIT_NS // 2
        # What is found only when the sleep ended by time is no wake-up.
        found = lambda: other.iprobe(1, ALL_BITS) and cluster.now_ns < end_ns  # noqa: E731
        results.append(waiter.wait_until(found, end_ns))
        came.set()

    def hold(_number: int, _frame: object) -> None:
        sender.send(b"", to_other, 1)
        heard.append(came.wait(LIMIT_S))
        sender.send(b"", to_one, 2)

    def interrupt() -> None:
        until_asleep(threading.main_thread(), waiter, slot, asleep)
        os.kill(os.getpid(), signal.SIGUSR1)

    kept = signal.signal(signal.SIGUSR1, hold)
    try:
        before = waiter.account()["blocks"]
        threads, _ = started([hear])
        until_asleep(threads[0], waiter, slot, before)
        asleep = waiter.account()["blocks"]
        threads += started([interrupt])[0]
        assert one.recv(None, 2, timeout_ns=LIMIT_NS).code == "success"
        assert finished(threads)
    finally:
        signal.signal(signal.SIGUSR1, kept)
    assert heard == [True]
    assert results == ["ready"]
    for endpoint in (one, other, sender):
        endpoint.close()


def test_a_pull_that_one_thread_ends_wakes_another() -> None:
    """In a few rounds the thread may have woken by itself just then, to look for signals."""
    rounds, length = 5, 100_000
    cluster = VirtualCluster(nodes=1, endpoints=2, clock="tsc")
    waiter = Waiter(cluster.control, 1, make_strategy("block"))
    slot = slot_of(cluster)
    other = cluster.open(0, 0, waiter=waiter)
    one = cluster.open(0, 1)
    partner = cluster.connect(one, 0, 0)
    woken = 0
    for number in range(rounds):
        send = one.isend(bytes([number]) * length, partner, 5)
        before = waiter.account()["blocks"]
        threads, results = started([lambda: other.wait_any(5, ALL_BITS, LIMIT_NS)])
        while other.iprobe(5, ALL_BITS) is None:
            pass
        until_asleep(threads[0], waiter, slot, before)
        wakes = slot.wakes
        buffer = bytearray(length)
        other.irecv(buffer, 5)
        woken += slot.wakes > wakes
        assert finished(threads)
        assert getattr(results[0], "code", None) == "success"
        assert buffer == bytes([number]) * length
        assert cluster.wait(one, send).code == "success"
    assert woken > rounds // 2
    one.close()
    other.close()
