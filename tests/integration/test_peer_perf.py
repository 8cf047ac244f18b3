"""omx_perf: two real processes, sizes 0 to 4 MiB doubling, buffers aligned to 64 KiB.

Ping-pong; -U, one way and an answer; -Y, synchronous sends; -w, a wait that sleeps; -y, one that
yields. Counts and bytes are asserted, not times: 6 turns a size instead of 1010, and no pause
between sizes, do for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.clusters import on_both_engines, run
from support.peer import data

from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.mx_workloads import WORKLOADS
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import WaitParameters

SIZES = [0, *(1 << power for power in range(23))]
TURNS = 6
ALIGNMENT = 65536
LARGE = sum(size > 32768 for size in SIZES)
ANSWER = 1


def aligned(size: int) -> NDArray[np.uint8]:
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


class Pair:
    """One side of the exchange: sends its content, checks what comes."""

    def __init__(self, context: MxRank, size: int) -> None:
        self.endpoint, self.partner = context.endpoint, context.partner
        self.synchronous = context.options["mode"] == "synchronous"
        self.outgoing, self.incoming = aligned(size), aligned(size)
        self.outgoing[:] = np.frombuffer(data(size), np.uint8)

    def send(self) -> None:
        if not self.synchronous:
            self.endpoint.send(self.outgoing, self.partner)
            return
        status = self.endpoint.wait(self.endpoint.issend(self.outgoing, self.partner))
        assert status is not None
        assert status.code == "success"

    def receive(self) -> None:
        self.incoming[:] = 0
        status = self.endpoint.recv(self.incoming, 0)
        assert status.length == self.incoming.size
        assert np.array_equal(self.incoming, self.outgoing)


def perf(context: MxRank) -> RankSamples:
    begins = context.number < context.peer
    for size in SIZES:
        pair = Pair(context, size)
        for _ in range(TURNS):
            if begins:
                pair.send()
            else:
                pair.receive()
            if context.options["mode"] == "one way":
                continue
            if begins:
                pair.receive()
            else:
                pair.send()
        if context.options["mode"] == "one way":
            if begins:
                context.endpoint.recv(None, ANSWER)
            else:
                context.endpoint.send(None, context.partner, ANSWER)
    return {"sizes": np.array(SIZES, np.int64)}


def check_wait(strategy: str, account: dict[str, int]) -> None:
    """Only the sleeping wait blocks, only the yielding one yields."""
    assert (account["blocks"] > 0) == (strategy == "block")
    assert (account["yields"] > 0) == (strategy == "sched")
    assert account["waits"] > 0


@pytest.mark.nightly("each size", but=4)
@on_both_engines
@pytest.mark.parametrize(
    ("mode", "strategy"),
    [
        ("ping-pong", "spin"),
        ("one way", "spin"),
        ("synchronous", "spin"),
        ("ping-pong", "block"),
        ("ping-pong", "sched"),
    ],
    ids=["", "-U", "-Y", "-w", "-y"],
)
def test_every_size(mode: str, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "omx_perf", perf)
    options: dict[str, Any] = {"mode": mode}
    result = run(
        ClusterSpec(
            ranks=tuple(RankSpec(node, "omx_perf", options=options) for node in range(2)),
            wait=WaitParameters(strategy=strategy),
        )
    )
    sent = TURNS * len(SIZES)
    one_way = mode == "one way"
    # By rank: messages received, large ones sent.
    expected = {"rank0": (len(SIZES), TURNS * LARGE), "rank1": (sent, 0)}
    if not one_way:
        large = sent if mode == "synchronous" else TURNS * LARGE
        expected = {"rank0": (sent, large), "rank1": (sent, large)}
    for rank, counts in expected.items():
        counters = result.counters[rank]
        assert (counters["recv_messages"], counters["sent_large"]) == counts
        assert counters["pulls_failed"] == 0
        check_wait(strategy, result.accounts[rank])
