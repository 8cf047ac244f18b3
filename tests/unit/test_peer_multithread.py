"""omx_multithread_wait_any and omx_multithread_ep_test: many threads, one or several endpoints."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from support.conditions import patient
from support.peer import LIMIT_NS, data, ends, in_threads
from support.virtual_cluster import VirtualCluster

from shrimpmx.mx.handles import Request, Status

THREADS, MESSAGES = 4, 80
SIZES = (0, 16, 100, 3000, 70_000)
SHIFT = 32
STOP = 1 << 63


def size_of(number: int) -> int:
    return SIZES[number % len(SIZES)]


def found(status: Status | None) -> Status:
    assert status is not None
    assert status.code == "success"
    return status


def test_each_thread_waits_for_its_own_on_one_endpoint() -> None:
    _, one, other, partner = ends("shared", clock="tsc")

    def receive(thread: int) -> None:
        own = thread << SHIFT
        for number in range(MESSAGES):
            buffer = bytearray(size_of(number))
            other.irecv(buffer, own | number)
            status = found(other.wait_any(own, 0xFF << SHIFT, timeout_ns=LIMIT_NS))
            assert status.match == own | number
            assert buffer == data(len(buffer), number + thread)

    def send() -> None:
        for number in range(MESSAGES):
            for thread in range(THREADS):
                content = data(size_of(number), number + thread)
                request = one.isend(content, partner, thread << SHIFT | number)
                found(one.wait(request, LIMIT_NS))

    in_threads(send, *[lambda thread=thread: receive(thread) for thread in range(THREADS)])
    assert other.ipeek() is None


def test_threads_that_wait_for_anything_share_what_comes() -> None:
    _, one, other, partner = ends("shared", clock="tsc")
    taken: Counter[int] = Counter()
    lock = threading.Lock()

    def receive() -> int:
        count = 0
        while True:
            buffer = bytearray(max(SIZES))
            other.irecv(buffer, 0, 0, context=buffer)
            status = found(other.wait_any(timeout_ns=LIMIT_NS))
            if status.match == STOP:
                return count
            content = status.context
            assert isinstance(content, bytearray)
            assert content[: status.length] == data(size_of(status.match), status.match)
            count += 1
            with lock:
                taken[status.match] += 1

    def send() -> int:
        for number in range(MESSAGES):
            one.send(data(size_of(number), number), partner, number)
        for _ in range(THREADS):
            one.send(b"", partner, STOP)
        return 0

    counts = in_threads(send, *[receive] * THREADS)
    assert sum(counts) == MESSAGES
    assert taken == Counter(range(MESSAGES))
    assert other.ipeek() is None


@pytest.mark.parametrize("turns", [3])
def test_each_thread_has_an_endpoint_of_its_own(turns: int) -> None:
    cluster = VirtualCluster(endpoints=THREADS, clock="tsc")
    barrier = threading.Barrier(THREADS, timeout=patient(20))

    def ring(index: int) -> None:
        for turn in range(turns):
            endpoint = cluster.open(0, index)
            barrier.wait()
            partner = endpoint.connect(0, (index + 1) % THREADS, timeout_ns=LIMIT_NS)
            requests: list[Request] = []
            for number in range(MESSAGES // 4):
                buffer = bytearray(size_of(number))
                receive = endpoint.irecv(buffer, number)
                content = data(size_of(number), number + index + turn)
                requests.append(endpoint.isend(content, partner, number))
                found(endpoint.wait(receive, LIMIT_NS))
                sender = (index - 1) % THREADS
                assert buffer == data(len(buffer), number + sender + turn)
            for request in requests:
                found(endpoint.wait(request, LIMIT_NS))
            barrier.wait()
            endpoint.close()
            barrier.wait()

    in_threads(*[lambda index=index: ring(index) for index in range(THREADS)])
