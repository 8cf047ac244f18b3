"""Rings far too small for what is sent: drops are counted, nothing is lost, nothing hangs."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import posix_ipc
import pytest
from support import resends
from support.clusters import ENDLESS, generator_stream, pingpong_pair, run, stream_pair
from support.users import needs_namespaces, with_own_mounts

from shrimpmx.cluster.engine.ending import FirstInterrupt
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.engine.leftovers import find_leftovers
from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.mx_workloads import WORKLOADS
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.cluster.spec import ClusterSpec, GeneratorSpec, RankSpec
from shrimpmx.errors import (
    AgentError,
    DeadlineError,
    InterruptedRunError,
    MachineError,
    SegmentError,
)
from shrimpmx.native.segment import SEGMENT_NODE, Segment, list_segments
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.control import Control
from shrimpmx.shared.node import Node

BLOCK = WaitParameters(strategy="block")
QUICK = MxParameters(resend_delay_ns=10_000_000, ack_delay_ns=500_000)
# So long a handler leaves packets in their ring that a sender fills it meanwhile, and not so long
# that all come again before it takes some.
RARE = NicParameters(coalescing="timeout", rx_usecs=500)


@pytest.mark.parametrize("event_ring", ["lock-free", "reset"])
def test_a_full_event_ring(event_ring: str) -> None:
    host = HostParameters(event_ring_entries=16, event_ring=event_ring)
    result = run(stream_pair(600, 32, 256, wait=BLOCK, host=host, nic=RARE, mx=QUICK))
    assert result.counters["rank1"]["recv_messages"] == 600
    assert result.counters["node1.irq0"]["unexp_eventq_full"] > 0


def test_a_full_rx_ring() -> None:
    nic = RARE.model_copy(update={"rx_ring_entries": 16})
    result = run(stream_pair(600, 1000, 256, wait=BLOCK, nic=nic, mx=QUICK))
    assert result.counters["rank1"]["recv_messages"] == 600
    assert result.counters["node1.nic"]["rx_drop_ring_full"] > 0
    assert result.counters["rank0"]["resent_messages"] > 0


@pytest.mark.nightly("seconds of a full ring")
def test_a_run_that_ends_late_tells_which_ring_lost_packets() -> None:
    # A sender that is held up in the middle of a message for longer than that gets it through.
    nic = NicParameters(coalescing="timeout", rx_usecs=10_000, rx_ring_entries=16)
    mx = MxParameters(resend_delay_ns=50_000_000, resends_max=100_000)
    spec = stream_pair(ENDLESS, 30_000, 4, wait=BLOCK, nic=nic, mx=mx)
    with pytest.raises(DeadlineError, match=r"\d+ packets .*rx_ring_entries=16"):
        run(spec, deadline_s=6)


# Where Python looks for room for temporary files.
PLACES = ("/tmp", "/var/tmp")


@needs_namespaces
def test_a_full_scratch_directory_is_one_sentence(tmp_path: Path) -> None:
    def work() -> None:
        tempfile.tempdir = str(tmp_path)
        with pytest.raises(AgentError, match="No space left on device; set TMPDIR") as caught:
            run(pingpong_pair(200, wait=BLOCK))
        assert caught.value.traceback.rstrip().rpartition("\n")[2].startswith("shrimpmx.errors.")
        assert not list(tmp_path.iterdir())

    # Processes of another namespace of pids would take the run for dead by its names.
    shm = ("tmpfs", "size=512m", "/dev/shm")
    with_own_mounts(work, ("tmpfs", "size=4k", str(tmp_path)), shm)


@needs_namespaces
def test_a_full_disk_is_one_sentence() -> None:
    def work() -> None:
        for place in PLACES:
            (Path(place) / "filling").write_bytes(bytes(4096))
        os.chdir(PLACES[0])
        os.environ.pop("TMPDIR", None)
        tempfile.tempdir = None
        assert not find_leftovers().directories
        with pytest.raises(MachineError, match="No usable temporary directory"):
            run(pingpong_pair(200, wait=BLOCK))
        assert not find_leftovers().directories

    with_own_mounts(work, *[("tmpfs", "size=4k", place) for place in PLACES])


def _burst(context: MxRank) -> RankSamples:
    """Rank 0 sends all its messages at once, and notes the most frames that it saw on the link."""
    count = context.options["count"]
    endpoint, data = context.endpoint, np.zeros(1000, np.uint8)
    requests, deepest = [], 0
    with _every_node(context.control) as nodes:
        for number in range(count):
            if context.number == 0:
                requests.append(endpoint.isend(data, context.partner, number))
                deepest = max(deepest, nodes[1].ring_depths()["link", 0])
            else:
                requests.append(endpoint.irecv(np.empty(1000, np.uint8), number))
        while requests:
            endpoint.progress()
            deepest = max(deepest, nodes[1].ring_depths()["link", 0])
            requests = [request for request in requests if endpoint.test(request) is None]
    return {"link_frames": np.array([deepest], np.int64)}


@contextmanager
def _every_node(control: Control) -> Iterator[list[Node]]:
    """The nodes of the run that this process is a rank of, mapped once more."""
    names = [
        name
        for name, identity, what in list_segments()
        if identity.pid == os.getppid() and what.startswith("node")
    ]
    segments = [Segment.attach(name, SEGMENT_NODE) for name in names]
    try:
        yield [Node.attach(segment, control) for segment in segments]
    finally:
        for segment in segments:
            segment.close()


def test_full_tx_and_link_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "burst", _burst)
    # What is sent stays on the link for so long that the link's ring fills under any schedule.
    nic = NicParameters(tx_ring_entries=16, link_ring_entries=16, link_delay_ns=200_000_000)
    # Each time 64 messages go at once, into 16 places of either ring.
    mx = MxParameters(
        throttle=64,
        notacked_max=64,
        ack_delay_ns=200_000_000,
        resend_delay_ns=resends.RESEND_DELAY_NS,
    )
    ranks = tuple(RankSpec(node, "burst", options={"count": 100}) for node in (0, 1))
    result = run(ClusterSpec(ranks=ranks, wait=BLOCK, nic=nic, mx=mx))
    assert result.samples["rank0"]["link_frames"].tolist() == [16]
    assert result.counters["rank0"]["send_no_tx_slot"] > 0
    assert result.counters["rank1"]["recv_messages"] == 100
    assert result.counters["node1.nic"]["rx_drop_ring_full"] == 0


def test_the_generator_overruns_a_small_rx_ring() -> None:
    nic = NicParameters(coalescing="timeout", rx_ring_entries=16)
    generator = GeneratorSpec(window=64, resend_delay_ns=2_000_000)
    spec = generator_stream(1000, wait=BLOCK, nic=nic, mx=QUICK, generator=generator)
    result = run(spec)
    assert result.counters["rank0"]["recv_messages"] >= 1000
    assert result.counters["node0.nic"]["rx_drop_ring_full"] > 0


def test_a_full_dev_shm_is_told_and_leaves_nothing() -> None:
    nic = NicParameters(rx_ring_entries=65536, tx_ring_entries=65536, link_ring_entries=65536)
    spec = stream_pair(nodes=256, nic=nic)
    with pytest.raises(SegmentError, match=r"not enough (room in /dev/shm|memory): .* MB needed"):
        Forked().run(spec)


@pytest.mark.parametrize("which", [1, 2, 4])
def test_an_interrupt_while_segments_are_made_leaves_none(
    which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes when the segment exists and nothing knows of it yet."""
    make, made = posix_ipc.SharedMemory, list[str]()

    def interrupted(*arguments: Any, **more: Any) -> posix_ipc.SharedMemory:
        shared = make(*arguments, **more)
        made.append(shared.name)
        if len(made) == which:
            os.kill(os.getpid(), signal.SIGTERM)
        return shared

    monkeypatch.setattr(posix_ipc, "SharedMemory", interrupted)
    with pytest.raises(InterruptedRunError), FirstInterrupt((signal.SIGTERM,)):
        run(stream_pair(1, 8, 1, wait=BLOCK))
    assert len(made) >= which
    assert [name for name, identity, _ in list_segments() if identity.pid == os.getpid()] == []
