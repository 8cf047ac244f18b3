"""Mis-ordered medium messages: marks that are early, and packets that really overtake."""

from __future__ import annotations

import pytest
from support.virtual_cluster import NicCluster, VirtualCluster, frame_type, is_marked, pattern

from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

MILLISECOND = 1_000_000
FRAGMENT_BYTE = 42  # frag_seqnum in a frame of wire_medium
# Bytes at MTU 1500 and their fragments: 1, 2, 3 and 23, the last ones full and not.
SIZES = {1452: 1, 2000: 2, 3 * 1452: 3, 32768: 23}


def marked_fragments(frames: list[bytes]) -> list[int]:
    return [frame[FRAGMENT_BYTE] for frame in frames if is_marked(frame)]


@pytest.mark.parametrize("early", [0, 1, 3, 22, 31])
@pytest.mark.parametrize("length", SIZES)
def test_the_mark_is_so_many_fragments_early(length: int, early: int) -> None:
    cluster = VirtualCluster(mark_early=early)
    one, other, partner = cluster.pair()
    received = bytearray(length)
    receive = other.irecv(received, 1)
    one.isend(pattern(length), partner, 1)
    assert cluster.wait(other, receive).transferred == length
    assert received == pattern(length)
    frames = cluster.frames_of("medium_frag")
    assert len(frames) == SIZES[length]
    assert marked_fragments(frames) == [max(0, SIZES[length] - 1 - early)]


@pytest.mark.parametrize(("early", "at_9000"), [(0, 3), (1, 2), (9, 0)])
@pytest.mark.parametrize("wire_format", ["native", "compatible"])
def test_at_mtu_9000(wire_format: str, early: int, at_9000: int) -> None:
    cluster = VirtualCluster(mtu=9000, wire_format=wire_format, mark_early=early)
    one, _, partner = cluster.pair()
    fragment = 8192 if wire_format == "native" else 4096
    one.isend(pattern(4 * fragment), partner, 1)
    cluster.settle()
    assert marked_fragments(cluster.frames_of("medium_frag")) == [at_9000]


def test_resends_carry_the_mark_in_the_same_place() -> None:
    cluster = VirtualCluster(mark_early=3)
    one, other, partner = cluster.pair(MxParameters(resend_delay_ns=20 * MILLISECOND))
    lost: list[bytes] = []

    def loses_the_first(frame: bytes) -> list[tuple[int, bytes]]:
        if frame_type(frame) == "medium_frag" and len(lost) < 23:
            lost.append(frame)
            return []
        return [(1000, frame)]

    cluster.wire = loses_the_first
    receive = other.irecv(bytearray(32768), 1)
    one.isend(pattern(32768), partner, 1)
    assert cluster.wait(other, receive).transferred == 32768
    frames = cluster.frames_of("medium_frag")
    assert len(frames) == 46
    assert marked_fragments(frames) == [19, 19]


def test_a_message_without_marks_stays_without() -> None:
    cluster = VirtualCluster(mark_early=1, marks=("tiny",))
    one, _, partner = cluster.pair()
    one.isend(pattern(32768), partner, 1)
    cluster.settle()
    assert len(cluster.frames_of("medium_frag")) == 23
    assert marked_fragments(cluster.frames_of("medium_frag")) == []


@pytest.mark.parametrize("early", [0, 1, 3])
def test_stream_defers_an_early_mark_to_the_end_of_its_message(early: int) -> None:
    # DMA is slower than the line, so that another one is always pending.
    parameters = NicParameters(coalescing="stream", dma_bytes_per_second=500_000_000)
    for cluster in (
        NicCluster(parameters, mark_early=early),
        NicCluster(parameters, LinkFaults(overtake=early)),
    ):
        one, other, partner = cluster.pair()
        cluster.settle()
        before = cluster.nic_counters(1)
        receive = other.irecv(bytearray(32768), 1)
        one.isend(pattern(32768), partner, 1)
        assert cluster.wait(other, receive).transferred == 32768
        after = cluster.nic_counters(1)
        moved = {name: count - before.get(name, 0) for name, count in after.items()}
        assert moved["rx_packets"] == 23
        assert moved["irq_wished"] == moved["irq_raised"] == 1
        assert moved["irq_raised_deferred" if early else "irq_raised_marked"] == 1


@pytest.mark.parametrize("degree", [1, 3, 31])
@pytest.mark.parametrize("coalescing", ["disabled", "open-mx", "stream"])
def test_overtaken_messages_arrive_whole_and_once(coalescing: str, degree: int) -> None:
    faults = LinkFaults(overtake=degree, loss=0.05, duplicate=0.05)
    cluster = NicCluster(NicParameters(coalescing=coalescing), faults)
    one, other, partner = cluster.pair(MxParameters(resend_delay_ns=20 * MILLISECOND))
    for number, length in enumerate((*SIZES, 0, 128)):
        received = bytearray(length)
        receive = other.irecv(received, number)
        one.isend(pattern(length), partner, number)
        assert cluster.wait(other, receive).transferred == length
        assert received == pattern(length)
    assert cluster.nic_counters(0)["link_reordered"] > 0
