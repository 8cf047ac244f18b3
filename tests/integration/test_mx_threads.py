"""Threads that wait for each other, at several endpoints."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from support.peer import LIMIT_NS, data, in_threads
from support.virtual_cluster import VirtualCluster

from shrimpmx.mx.handles import Request
from shrimpmx.native import notify
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

ENDPOINTS, THREADS, MESSAGES = 3, 2, 60
SIZES = (0, 100, 3000, 50_000)
SHIFT = 32


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
