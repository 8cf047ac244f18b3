"""mx_wakeup_test.

The peer is stopped, and a thread is blocked in each call that can block: wait for a
synchronous send, wait for a receive, probe, peek, and wait for a connect. A wakeup makes all
of them return without a result, and what they waited for goes on.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.peer import ALL_BITS, data, switches, woken_until_done
from support.virtual_cluster import VirtualCluster

from shrimpmx.errors import MxError
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter


@pytest.mark.parametrize("path", ["native", "shared"])
@pytest.mark.parametrize("strategy", [None, "block", "sched", "spin-block"])
def test_a_wakeup_ends_all_waits(strategy: str | None, path: str) -> None:
    cluster = VirtualCluster(endpoints=2, clock="tsc")
    waiter = Waiter(cluster.control, 1, make_strategy(strategy)) if strategy else None
    one = cluster.open(0, parameters=switches(path), waiter=waiter)
    place = (1, 0) if path == "native" else (0, 1)
    other = cluster.open(*place, parameters=switches(path))
    partner = cluster.connect(one, *place)
    send, receive = one.issend(data(100), partner, 1), one.irecv(bytearray(4), 2)
    connect = one.iconnect(*place)

    def connected() -> object:
        try:
            return one.connect(*place)
        except MxError as error:
            return error.status

    blocked: list[Callable[[], object]] = [
        lambda: one.wait(send),
        lambda: one.wait(receive),
        lambda: one.probe(3),
        lambda: one.peek(4, ALL_BITS),
        lambda: one.wait(connect),
    ]
    expected: list[object] = [None] * 5
    if path == "native":
        # By shared memory it would be answered: it polls all endpoints of its process.
        blocked.append(connected)
        expected.append("woken")
    assert woken_until_done(one.wakeup, blocked) == expected
    assert one.cancel(receive)
    buffer = bytearray(100)
    other.irecv(buffer, 1)
    assert cluster.wait(one, send).code == "success"
    assert cluster.wait(one, connect).code == "success"
    assert buffer == data(100)
    one.close()
    other.close()
