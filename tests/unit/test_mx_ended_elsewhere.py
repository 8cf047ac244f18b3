"""Requests and endpoints that end while a call waits: by other threads, handlers and signals."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from support.peer import LIMIT_NS, LIMIT_S, in_threads, switches
from support.virtual_cluster import VirtualCluster, frame_type, perfect_wire

from shrimpmx.errors import InputError, MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Request, Status
from shrimpmx.mx.recv import CONTINUE
from shrimpmx.mx.sandbox import join, sandbox
from shrimpmx.settings.mx import MxParameters
from shrimpmx.shared.heap import Heap
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

STRATEGIES = [None, "spin", "block", "sched", "spin-block"]
SIGNAL_S = 0.05


def waiting_endpoint(strategy: str | None) -> Endpoint:
    """An endpoint with real time, and a partner of its own: itself."""
    cluster = VirtualCluster(clock="tsc")
    waiter = Waiter(cluster.control, 1, make_strategy(strategy)) if strategy else None
    return cluster.open(0, parameters=switches("self"), waiter=waiter)


def when_waiting(endpoint: Endpoint, call: Callable[[], object]) -> Callable[[], object]:
    """The call, some passes after another thread has begun to wait."""
    before = endpoint.counters()["progress_calls"]

    def run() -> object:
        pause = threading.Event()
        for _ in range(5000):
            if endpoint.counters()["progress_calls"] >= before + 2:
                break
            pause.wait(0.001)
        pause.wait(0.02)
        return call()

    return run


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_wait_returns_the_status_of_a_request_that_another_thread_ends(
    strategy: str | None,
) -> None:
    """Its place in the pool is a new receive's by then, which nothing ever ends."""
    with waiting_endpoint(strategy) as one:
        partner = one.connect(0, 0, timeout_ns=LIMIT_NS)
        others: list[Request] = []

        def cancel(request: Request) -> object:
            assert one.cancel(request)
            others.append(one.irecv(None, 99))
            return None

        def test_any(request: Request) -> object:
            one.send(b"", partner, 1)
            found = one.test_any(1, 0xFF)
            others.append(one.irecv(None, 99))
            return found

        def forget(request: Request) -> object:
            one.forget(request)
            one.send(b"", partner, 1)
            others.append(one.irecv(None, 99))
            return None

        for end, code in ((cancel, "cancelled"), (test_any, "success"), (forget, "success")):
            request = one.irecv(None, 1)
            found, _ = in_threads(
                partial(one.wait, request, LIMIT_NS), when_waiting(one, partial(end, request))
            )
            assert isinstance(found, Status), f"after {end.__name__}"
            assert found is request.status
            assert found.code == code
        assert [one.test(request) for request in others] == [None] * 3


@contextmanager
def at_a_signal(call: Callable[[], object]) -> Iterator[list[str]]:
    """`call` runs in a signal's handler soon; yields the signals that came."""
    came: list[str] = []

    def handler(number: int, _frame: object) -> None:
        came.append(signal.Signals(number).name)
        call()

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, SIGNAL_S)
    try:
        yield came
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# After a close of the endpoint in the handler, and after a wakeup.
WAITS: dict[str, tuple[Callable[[Endpoint, Request], object], object, object]] = {
    "wait": (lambda one, request: one.wait(request, LIMIT_NS), "endpoint-closed", None),
    "wait_any": (lambda one, _: one.wait_any(timeout_ns=LIMIT_NS), None, None),
    "probe": (lambda one, _: one.probe(timeout_ns=LIMIT_NS), None, None),
    "recv": (lambda one, _: one.recv(bytearray(8), 2, timeout_ns=LIMIT_NS), "woken", "woken"),
}


@pytest.mark.nightly("each call", but=2)
@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("closes", [True, False])
def test_a_signal_handler_may_end_a_wait(name: str, closes: bool) -> None:
    call, closed, woken = WAITS[name]
    one = waiting_endpoint("block")
    request = one.irecv(bytearray(8), 1)
    result: object
    with at_a_signal(one.close if closes else one.wakeup) as came:
        try:
            result = call(one, request)
        except MxError as error:
            result = error.status
    assert came == ["SIGALRM"]
    assert (result.code if isinstance(result, Status) else result) == (closed if closes else woken)
    assert (request.status is not None) == closes
    one.close()


def test_a_signal_handler_may_close_and_raise() -> None:
    one = waiting_endpoint("block")

    def close_and_raise() -> None:
        one.close()
        raise KeyboardInterrupt

    with at_a_signal(close_and_raise), pytest.raises(KeyboardInterrupt):
        one.recv(bytearray(8), 2, timeout_ns=LIMIT_NS)
    one.close()


@pytest.mark.parametrize("memory", ["process-vm", "bounce", "heap"])
def test_nobody_writes_to_a_buffer_that_close_has_given_back(memory: str) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(memory=memory))
    length = 60_000
    buffer: bytearray | memoryview = bytearray(length)
    if memory == "heap":
        buffer = Heap.of_process(other.node, other.index).allocate(length)
    replies: list[bytes] = []
    seen: list[bytes] = []

    def wire(frame: bytes) -> list[tuple[int, bytes]]:
        if frame_type(frame) != "pull_reply":
            return perfect_wire(frame)
        replies.append(frame)
        return []

    class Context:
        def __del__(self) -> None:
            """The request is over: the buffer is the application's again."""
            buffer[:] = bytes(length)
            for frame in replies:
                cluster.handlers[1].handle_frame(frame)
            seen.append(bytes(buffer))

    cluster.wire = wire
    request: Request | None = other.irecv(buffer, 1, context=Context())
    send = one.isend(b"\xab" * length, partner, 1)
    cluster.settle()
    assert replies
    assert request is not None
    request = None
    cluster.close(other)
    assert seen == [bytes(length)]
    assert send.status is None


@pytest.mark.parametrize("timeout_ns", [sys.maxsize, 1 << 63, 1 << 200])
def test_a_timeout_beyond_the_clock_never_passes(timeout_ns: int) -> None:
    with waiting_endpoint("block") as one:
        request = one.irecv(None, 1)
        calls: list[Callable[[], object]] = [
            lambda: one.wait(request, timeout_ns),
            when_waiting(one, lambda: one.cancel_notest(request)),
        ]
        found, cancelled = in_threads(*calls)
        assert cancelled
        assert isinstance(found, Status)
    with sandbox() as (one, other):
        assert one.connect(0, other.index, timeout_ns=timeout_ns).endpoint == 1


@pytest.mark.parametrize("timeout_ns", [0, -1, -(1 << 200)])
def test_a_timeout_below_zero_is_one_look(timeout_ns: int) -> None:
    with sandbox() as (one, other):
        assert one.wait(one.irecv(None, 1), timeout_ns) is None
        assert one.peek(timeout_ns=timeout_ns) is None
        assert one.probe(timeout_ns=timeout_ns) is None
        with pytest.raises(MxError, match="within"):
            one.recv(None, 2, timeout_ns=timeout_ns)
        with pytest.raises(MxError, match="did not answer"):
            one.connect(0, other.index, key=0, timeout_ns=timeout_ns)
        with pytest.raises(TypeError):
            one.wait(one.irecv(None, 3), "soon")  # type: ignore[arg-type]
        assert one.progress() >= 0, "the lock was given back"


def test_another_endpoint_may_connect_in_an_unexpected_handler() -> None:
    results: list[object] = []
    with sandbox() as (one, other), sandbox() as (third, _fourth):
        partner, _ = join(one, other)

        def handler(*_: object) -> int:
            try:
                results.append(third.connect(0, 1, timeout_ns=LIMIT_NS).endpoint)
            except MxError as error:
                results.append(error.status)
            return CONTINUE

        other.register_unexp_handler(handler)
        one.send(b"", partner, 1)
        other.progress()
        other.register_unexp_handler(None)
        assert results == [1]


def test_a_timeout_of_another_endpoints_request_is_refused() -> None:
    with sandbox() as (one, other):
        request = one.irecv(None, 1)
        with pytest.raises(InputError, match="another endpoint"):
            other.set_request_timeout(request, 1_000_000)
        one.set_request_timeout(request, 1_000_000)


def test_the_error_handler_hears_of_refused_calls() -> None:
    codes: list[str] = []
    with sandbox() as (one, other):
        partner, _ = join(one, other)

        def told(_message: str, code: str) -> None:
            codes.append(code)
            if code == "progression-disabled":
                other.reenable_progression()  # the lock is free meanwhile

        def handler(*_: object) -> int:
            with pytest.raises(MxError, match="in the middle of a pass"):
                other.progress()
            with pytest.raises(MxError, match="in the middle of a pass"):
                other.close()
            return CONTINUE

        other.set_error_handler(told)
        other.disable_progression()
        with pytest.raises(MxError, match="progression is disabled"):
            other.recv(None, 9)
        other.register_unexp_handler(handler)
        one.send(b"", partner, 1)
        other.progress()
    assert codes == ["progression-disabled", "handler-running", "handler-running"]


def test_a_replaced_handler_may_call_the_endpoint_when_it_goes() -> None:
    taken: list[int] = []
    with sandbox() as (one, _other):

        class Handler:
            def __call__(self, *_: object) -> int:
                return CONTINUE

            def __del__(self) -> None:
                taken.append(one.progress())

        one.register_unexp_handler(Handler())
        one.register_unexp_handler(None)
        assert len(taken) == 1


def test_forgotten_requests_may_call_the_endpoint_when_they_go() -> None:
    taken: list[int] = []
    with sandbox() as (one, other):
        partner, _ = join(one, other)

        class Context:
            def __del__(self) -> None:
                taken.append(other.progress())

        for match in range(3):
            other.forget(other.irecv(None, match, context=Context()))
        for match in range(3):
            one.send(b"", partner, match)
        other.progress()
        assert len(taken) == 3


def test_threads_may_close_at_the_same_time() -> None:
    """While another one waits, so that they let each other in."""
    for _ in range(20):
        one = waiting_endpoint("block")

        def receive(one: Endpoint = one) -> object:
            with pytest.raises(MxError) as caught:
                one.recv(None, 1, timeout_ns=LIMIT_NS)
            return caught.value.status

        together = threading.Barrier(4)

        def close(one: Endpoint = one, together: threading.Barrier = together) -> None:
            together.wait(LIMIT_S)
            one.close()

        calls = [receive, *[when_waiting(one, close)] * 4]
        assert in_threads(*calls) == ["woken", None, None, None, None]
