"""The handler of unexpected messages: what it is told, and what its answer does."""

from __future__ import annotations

from typing import Any

import pytest
from support.virtual_cluster import VirtualCluster, pattern

from shrimpmx.errors import MxError
from shrimpmx.mx.recv import CONTINUE, FINISHED

Call = tuple[int, int, bytes | None]


def recorder(calls: list[Call], answer: int) -> Any:
    def handler(partner: Any, match: int, length: int, data: memoryview | None) -> int:
        assert partner.node == 0
        calls.append((match, length, None if data is None else bytes(data)))
        return answer

    return handler


@pytest.mark.parametrize("length", [0, 16, 100, 1024, 10000])
@pytest.mark.parametrize("answer", [CONTINUE, FINISHED])
def test_it_is_asked_once_and_obeyed(length: int, answer: int) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    calls: list[Call] = []
    other.register_unexp_handler(recorder(calls, answer))
    data = pattern(length)
    one.isend(data, partner, 3)
    cluster.advance(100_000_000)
    at_hand = data if length <= 1024 else None
    assert calls == [(3, length, at_hand)]
    assert (other.iprobe(3) is None) == (answer == FINISHED)
    assert other.counters()["unexpected_handled"] == (answer == FINISHED)
    assert partner.unacked == 0
    assert other.ipeek() is None
    buffer = bytearray(2)
    receive = other.irecv(buffer, 4)
    one.isend(b"ok", partner, 4)
    assert cluster.wait(other, receive).code == "success"
    assert len(calls) == 1, "a posted receive comes first"


def test_it_may_not_call_its_endpoint() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    errors: list[str] = []

    def handler(*arguments: object) -> int:
        try:
            other.progress()
        except MxError as error:
            errors.append(error.status)
        return CONTINUE

    other.register_unexp_handler(handler)
    one.isend(b"", partner, 1)
    cluster.settle()
    assert errors == ["handler-running"]


def test_its_exception_is_reported_and_the_message_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda found: raised.append(found.exc_value))
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    other.register_unexp_handler(lambda *arguments: 1 / 0)
    one.isend(b"kept", partner, 1)
    cluster.settle()
    assert isinstance(raised[0], ZeroDivisionError)
    assert other.iprobe(1) is not None
    other.register_unexp_handler(None)
    one.isend(b"", partner, 2)
    cluster.settle()
    assert len(raised) == 1
