"""mx_wakeup_test with a peer that is really stopped (SIGSTOP), a process of its own.

Every call that can block is ended by a wakeup; when the peer goes on, so does what it owed.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from support.clusters import run
from support.conditions import wait_until
from support.peer import ALL_BITS, data, woken_until_done

from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.mx_workloads import WORKLOADS
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import MxError
from shrimpmx.settings.host import WaitParameters

PID, MESSAGE, NEVER = 1, 2, 3
PID_BYTES = 8
CONTENT = data(1000)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def stop_and_go_on(context: MxRank) -> None:
    """The peer: sends its pid, stops, and when it is continued receives."""
    context.endpoint.send(os.getpid().to_bytes(PID_BYTES, "little"), context.partner, PID)
    os.kill(os.getpid(), signal.SIGSTOP)
    buffer = bytearray(len(CONTENT))
    context.endpoint.recv(buffer, MESSAGE)
    assert buffer == CONTENT


def block_and_wake(context: MxRank) -> None:
    endpoint, partner = context.endpoint, context.partner
    name = bytearray(PID_BYTES)
    endpoint.recv(name, PID)
    peer = int.from_bytes(name, "little")
    wait_until(lambda: is_stopped(peer), "the peer is stopped")

    def connected() -> object:
        try:
            return endpoint.connect(partner.node, partner.endpoint)
        except MxError as error:
            return error.status

    try:
        send = endpoint.issend(CONTENT, partner, MESSAGE)
        receive = endpoint.irecv(bytearray(4), NEVER)
        connect = endpoint.iconnect(partner.node, partner.endpoint)
        results = woken_until_done(
            endpoint.wakeup,
            [
                lambda: endpoint.wait(send),
                lambda: endpoint.wait(receive),
                lambda: endpoint.probe(NEVER),
                lambda: endpoint.peek(NEVER, ALL_BITS),
                lambda: endpoint.wait(connect),
                connected,
            ],
        )
        assert is_stopped(peer)
    finally:
        os.kill(peer, signal.SIGCONT)
    assert results == [None, None, None, None, None, "woken"]
    assert endpoint.cancel(receive)
    for request in (send, connect):
        status = endpoint.wait(request)
        assert status is not None
        assert status.code == "success"


def wakeup(context: MxRank) -> RankSamples:
    if context.number == 0:
        block_and_wake(context)
    else:
        stop_and_go_on(context)
    return {"done": np.ones(1, np.int64)}


@pytest.mark.parametrize("nodes", [(0, 1), (0, 0)], ids=["native", "shared"])
@pytest.mark.parametrize("strategy", ["spin", "block"])
def test_a_stopped_peer_holds_nobody(
    strategy: str, nodes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKLOADS, "mx_wakeup", wakeup)
    result = run(
        ClusterSpec(
            ranks=tuple(RankSpec(node, "mx_wakeup") for node in nodes),
            wait=WaitParameters(strategy=strategy),
        )
    )
    assert [result.samples[rank]["done"].tolist() for rank in ("rank0", "rank1")] == [[1], [1]]
