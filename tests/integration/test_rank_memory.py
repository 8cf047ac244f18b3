"""What a rank's memory is there for: its arrays, and messages that it keeps for a resend."""

from __future__ import annotations

import numpy as np
import pytest
from support.clusters import run, stream_pair
from support.dead_runs import dead_here

from shrimpmx.cluster.engine.leftovers import find_leftovers, remove_leftovers
from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.mx_workloads import WORKLOADS
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.native.segment import Segment
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.shared.heap import Heap


def _where(context: MxRank) -> RankSamples:
    """Which endpoint's part the rank has, whether a new array lies in it, and its counts."""
    heap = Heap.of_process(context.endpoint.node, context.endpoint.index)
    figures = [heap.endpoint, heap.holds(np.zeros(100_000)), heap.outside, heap.errors]
    return {"where": np.array(figures, np.int64)}


@pytest.mark.parametrize(
    ("memory", "inside"), [("auto", 1), ("heap", 1), ("process-vm", 0), ("bounce", 0)]
)
def test_arrays_of_a_workload(memory: str, inside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "where", _where)
    ranks = tuple(RankSpec(node, "where") for node in (0, 0, 1, 1))
    spec = ClusterSpec(
        ranks=ranks,
        mx=MxParameters.model_validate({"memory": memory}),
        wait=WaitParameters(strategy="block"),
    )
    result = run(spec)
    found = [result.samples[f"rank{number}"]["where"].tolist() for number in range(4)]
    assert found == [[part, inside, 0, 0] for part in (0, 1, 0, 1)]


def _faults(size_bytes: int) -> int:
    """Page faults of a sender whose messages are all kept until the last one is acknowledged."""
    mx = MxParameters(notacked_max=1000, ack_delay_ns=300_000_000)
    spec = stream_pair(128, size_bytes, mx=mx, wait=WaitParameters(strategy="block"))
    result = run(spec)
    assert result.counters["rank0"]["zombies"] == 128
    return int(result.usage["rank0"]["minor_faults"])


def test_no_page_faults_under_a_message_that_is_kept() -> None:
    """128 messages of 16 KiB lie on 512 pages; their window of 64 user buffers on 256."""
    assert _faults(16_384) - _faults(0) < 512


def test_a_dead_runs_heap_is_a_leftover(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = dead_here(monkeypatch)
    heap = Segment.create(dead, "heap0", 1 << 30, 4, reserve=False)
    heap.close()
    found = find_leftovers()
    assert heap.name in found.segments
    found.segments, found.queues, found.processes = [heap.name], [], []
    remove_leftovers(found)
    assert heap.name not in find_leftovers().segments
