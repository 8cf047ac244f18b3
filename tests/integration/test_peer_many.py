"""omx_many: 1000 messages each of 13, 111, 1234 and 12 345 bytes, fewer of 123 456 and 1 234 567.

Between two real processes, over the wire and by shared memory; each arrives whole and in order.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.clusters import on_both_engines, run
from support.peer import data, switches

from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.mx_workloads import WORKLOADS
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.mx.handles import Request, Status
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.nic import NicParameters

COUNTS = {13: 1000, 111: 1000, 1234: 1000, 12_345: 1000, 123_456: 300, 1_234_567: 100}
COUNT = sum(COUNTS.values())
# Messages under way.
WINDOW = 16
NUMBER_BYTES = 4


def numbered(size: int) -> NDArray[np.uint8]:
    """Room for a message; its number stands at both ends."""
    return np.frombuffer(data(size), np.uint8).copy()


def mark(message: NDArray[np.uint8], number: int) -> None:
    place = np.frombuffer(number.to_bytes(NUMBER_BYTES, "little"), np.uint8)
    message[:NUMBER_BYTES] = place
    message[-NUMBER_BYTES:] = place


def finish(context: MxRank, request: Request, size: int) -> Status:
    status = context.endpoint.wait(request)
    assert status is not None
    assert (status.code, status.length) == ("success", size)
    return status


def send_all(context: MxRank, size: int) -> None:
    buffers = [numbered(size) for _ in range(WINDOW)]
    requests: list[Request] = []
    for number in range(COUNTS[size]):
        if number >= WINDOW:
            finish(context, requests[number - WINDOW], size)
        buffer = buffers[number % WINDOW]
        mark(buffer, number)
        requests.append(context.endpoint.isend(buffer, context.partner, size))
    for request in requests[-WINDOW:]:
        finish(context, request, size)


def receive_all(context: MxRank, size: int) -> None:
    expected, endpoint = numbered(size), context.endpoint
    buffers = [np.zeros(size, np.uint8) for _ in range(WINDOW)]
    requests = [endpoint.irecv(buffer, size) for buffer in buffers]
    for number in range(COUNTS[size]):
        finish(context, requests[number], size)
        buffer = buffers[number % WINDOW]
        mark(expected, number)
        assert np.array_equal(buffer, expected)
        if len(requests) < COUNTS[size]:
            buffer[:] = 0
            requests.append(endpoint.irecv(buffer, size))


def many(context: MxRank) -> RankSamples:
    for size in COUNTS:
        if context.number < context.peer:
            send_all(context, size)
        else:
            receive_all(context, size)
    return {"count": np.array([COUNT], np.int64)}


@pytest.mark.nightly("each strategy", but=2)
@on_both_engines
@pytest.mark.parametrize("path", ["native", "shared"])
def test_thousands_of_messages(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "omx_many", many)
    nodes = (0, 1) if path == "native" else (0, 0)
    spec = ClusterSpec(
        ranks=tuple(RankSpec(node, "omx_many") for node in nodes),
        mx=switches(path),
        nic=NicParameters(mtu=9000),
        wait=WaitParameters(strategy="block"),
    )
    result = run(spec)
    assert result.counters["rank1"]["recv_messages"] == COUNT
    shared = result.counters["rank0"]["sent_shared"]
    assert shared == (COUNT if path == "shared" else 0)
