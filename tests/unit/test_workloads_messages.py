"""The compiled ping-pong and stream loops, between threads over the shuttle."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from support.virtual_cluster import VirtualCluster

from shrimpmx.errors import AbortedError, InputError, MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.messages import pingpong, receive_stream, send_stream


class Ranks:
    """Two ranks that block when they wait, each in a thread; this thread carries frames."""

    def __init__(self) -> None:
        self.cluster = VirtualCluster(clock="monotonic", tx_ring_entries=64)
        control = self.cluster.control
        self.waiters = [Waiter(control, 1 + i, make_strategy("block", 0)) for i in range(2)]
        for waiter in self.waiters:
            waiter.begin()
        self.one, self.other = (self.cluster.open(i, waiter=self.waiters[i]) for i in range(2))
        self.partner = self.cluster.connect(self.one, 1)
        self.back = self.cluster.connect(self.other, 0)

    def run(self, *functions: Callable[[], object]) -> list[object]:
        results: list[object] = [None] * len(functions)

        def call(i: int, function: Callable[[], object]) -> None:
            try:
                results[i] = function()
            except Exception as error:
                results[i] = error

        threads = [
            threading.Thread(target=call, args=(i, function), daemon=True)
            for i, function in enumerate(functions)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if not self.cluster.carry():
                threads[0].join(0.0002)
        return results

    def close(self) -> None:
        self.one.close()
        self.other.close()
        for waiter in self.waiters:
            waiter.end()


@pytest.fixture
def ranks() -> Ranks:
    return Ranks()


@pytest.mark.parametrize("size_bytes", [0, 5, 128, 5000])
def test_pingpong_gives_half_round_trips(ranks: Ranks, size_bytes: int) -> None:
    def rank(endpoint: Endpoint, partner: Partner, initiator: bool) -> Callable[[], object]:
        return lambda: pingpong(endpoint, partner, initiator, size_bytes, 20, 3, delay_ns=1000)

    one, other = ranks.run(
        rank(ranks.one, ranks.partner, True), rank(ranks.other, ranks.back, False)
    )
    assert isinstance(one, np.ndarray)
    assert isinstance(other, np.ndarray)
    assert one.shape == other.shape == (20,)
    assert one.dtype == np.int64
    assert (one > 1000).all()
    ranks.close()


@pytest.mark.parametrize(("size_bytes", "window"), [(0, 1), (128, 64), (3000, 7)])
def test_a_stream_arrives_whole(ranks: Ranks, size_bytes: int, window: int) -> None:
    sent, received = ranks.run(
        lambda: send_stream(ranks.one, ranks.partner, size_bytes, 250, window),
        lambda: receive_stream(ranks.other, size_bytes, 250, window),
    )
    assert isinstance(sent, dict)
    assert isinstance(received, dict)
    assert sent["count"] == received["count"] == 250
    stamps = received["timestamps_ns"]
    assert len(stamps) == 1 + 249 // received["batch"]
    assert (np.diff(stamps) >= 0).all()
    assert received["elapsed_ns"] >= stamps[-1] - stamps[0] > 0
    ranks.close()


def test_a_receiver_notices_what_was_not_sent_by_send_stream(ranks: Ranks) -> None:
    ranks.one.isend(b"not a stamp", ranks.partner, 0)
    (error,) = ranks.run(lambda: receive_stream(ranks.other, 11, 1))
    assert isinstance(error, MxError)
    assert error.status == "corrupted"
    ranks.close()


def test_a_stop_ends_a_workload(ranks: Ranks) -> None:
    ranks.cluster.control.set_stop("abort")
    (error,) = ranks.run(lambda: receive_stream(ranks.other, 128, 10))
    assert isinstance(error, AbortedError)
    (error,) = ranks.run(lambda: ranks.one.wait(ranks.one.irecv(None, 1)))
    assert isinstance(error, AbortedError)
    ranks.close()


def test_workloads_refuse_what_they_cannot_do(ranks: Ranks) -> None:
    with pytest.raises(InputError, match="too long"):
        pingpong(ranks.one, ranks.partner, True, 1 << 31, 1, 0)
    with pytest.raises(InputError, match="another endpoint"):
        send_stream(ranks.other, ranks.partner, 1, 1)
    with pytest.raises(InputError, match="window"):
        receive_stream(ranks.other, 1, 1, window=0)
    with pytest.raises(InputError, match="iteration"):
        pingpong(ranks.one, ranks.partner, True, 1, 0, 0)
    ranks.close()
