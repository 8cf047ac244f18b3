"""Threads that wait for each other, at several endpoints; a message between look and sleep."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable

import pytest
from support.conditions import patient
from support.peer import LIMIT_NS, data, in_threads
from support.virtual_cluster import VirtualCluster

from shrimpmx.mx.handles import Request
from shrimpmx.native import notify
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

ENDPOINTS, THREADS, MESSAGES = 3, 2, 60
SIZES = (0, 100, 3000, 50_000)
SHIFT = 32
# Rounds until data has come between look and sleep: some thousands where both sides
# have a CPU, more where others want it too.
ROUNDS_MAX = 500_000
RACES = 3
READY, GO, END, DATA = range(4)


def content(number: int, sender: int) -> bytes:
    return data(SIZES[number % len(SIZES)], number + 7 * sender)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "strategy", [None, "spin", "sched", "block", "spin-block", "notify", "spin-notify"]
)
def test_endpoints_of_one_process_serve_each_other(strategy: str | None) -> None:
    """Each of two threads per endpoint sends to the next endpoint, and receives from the last."""
    cluster = VirtualCluster(endpoints=ENDPOINTS, clock="tsc")
    cluster.control.register_process(1, signal.SIGUSR1)
    waiter = Waiter(cluster.control, 1, make_strategy(strategy)) if strategy else None
    if waiter:
        waiter.begin()
    endpoints = [cluster.open(0, index, waiter=waiter) for index in range(ENDPOINTS)]
    partners = [
        cluster.connect(endpoint, 0, (index + 1) % ENDPOINTS)
        for index, endpoint in enumerate(endpoints)
    ]

    def work(index: int, thread: int) -> None:
        endpoint, sender = endpoints[index], (index - 1) % ENDPOINTS
        sends: list[Request] = []
        for number in range(MESSAGES):
            match = thread << SHIFT | number
            start = endpoint.issend if number % 5 == 0 else endpoint.isend
            sends.append(start(content(number, index), partners[index], match))
            buffer = bytearray(max(SIZES))
            status = endpoint.recv(buffer, match, timeout_ns=LIMIT_NS)
            assert buffer[: status.length] == content(number, sender)
        for send in sends:
            found = endpoint.wait(send, LIMIT_NS)
            assert found is not None
            assert found.code == "success"

    calls: list[Callable[[], None]] = [
        lambda index=index, thread=thread: work(index, thread)
        for index in range(ENDPOINTS)
        for thread in range(THREADS)
    ]
    in_threads(*calls)
    for endpoint in endpoints:
        assert endpoint.ipeek() is None
        assert endpoint.counters()["recv_messages"] == THREADS * MESSAGES
        endpoint.close()
    if waiter:
        waiter.end()
    notify.remove()


def answer(cluster: VirtualCluster, cpu: int) -> None:
    """The other process: a message after each GO."""
    os.sched_setaffinity(0, {cpu})
    endpoint = cluster.open(0, 1)
    partner = endpoint.connect(0, 0, timeout_ns=LIMIT_NS)
    endpoint.send(b"", partner, READY)
    while True:
        match = endpoint.recv(None, 0, 0, timeout_ns=LIMIT_NS).match
        if match == END:
            return
        endpoint.send(b"news", partner, DATA)


@pytest.mark.timeout(120)
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes must run at once")
def test_what_comes_between_look_and_sleep_is_a_race_and_is_returned() -> None:
    allowed = os.sched_getaffinity(0)
    cpus = sorted(allowed)
    os.sched_setaffinity(0, {cpus[0]})
    cluster = VirtualCluster(nodes=1, endpoints=2, clock="tsc")
    waiter = Waiter(cluster.control, 1, make_strategy("block"))
    one = cluster.open(0, 0, waiter=waiter)
    child = multiprocessing.get_context("fork").Process(target=answer, args=(cluster, cpus[1]))
    child.start()
    try:
        one.recv(None, READY, timeout_ns=LIMIT_NS)
        partner = one.connect(0, 1, timeout_ns=LIMIT_NS)
        end_s = time.monotonic() + patient(60)
        generator = random.Random(1)
        rounds = 0
        while waiter.account()["races"] < RACES and rounds < ROUNDS_MAX:
            assert time.monotonic() < end_s, f"no race in {rounds} rounds"
            buffer = bytearray(4)
            receive = one.irecv(buffer, DATA)
            one.send(b"", partner, GO)
            for _ in range(generator.randrange(0, 60)):
                pass  # so that the answer comes at any moment of the wait that follows
            status = one.wait(receive, LIMIT_NS)
            assert status is not None, "a race was taken for a timeout"
            assert (status.code, buffer) == ("success", b"news")
            rounds += 1
        account = waiter.account()
        assert account["races"] >= RACES
        assert account["waits"] >= account["races"] + account["at_once"]
        one.send(b"", partner, END)
        child.join(patient(10))
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
        one.close()
        os.sched_setaffinity(0, allowed)
