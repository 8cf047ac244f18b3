"""Large and synchronous messages: packets, marks, matching, truncation, waiting for room."""

from __future__ import annotations

import pytest
from support.virtual_cluster import (
    MILLISECOND,
    NicCluster,
    VirtualCluster,
    frame_type,
    is_marked,
    pattern,
)

from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

# Bytes: replies, blocks at MTU 1500 (1468 B in a reply, 32 in a block), MTU 9000 (8968, 32) and
# in the format of MX (4096, 8). Total packets are replies + blocks + 2.
GOLDEN = [
    (1500, "native", 32769, 23, 1), (1500, "native", 65536, 45, 2),
    (1500, "native", 131072, 90, 3), (1500, "native", 234880, 160, 5),
    (1500, "native", 262144, 179, 6), (1500, "native", 1 << 20, 715, 23),
    (1500, "native", 4 << 20, 2858, 90), (9000, "native", 65536, 8, 1),
    (9000, "native", 1 << 20, 117, 4), (9000, "native", 4 << 20, 468, 15),
    (9000, "compatible", 65536, 16, 2), (9000, "compatible", 1 << 20, 256, 32),
    (9000, "compatible", 4 << 20, 1024, 128),
]  # fmt: skip
DATA = ("rndv", "pull_request", "pull_reply", "notify")


def data(length: int) -> bytes:
    return pattern(4096, length) * (length // 4096) + pattern(length % 4096, 3)


@pytest.mark.parametrize(("mtu", "wire_format", "length", "replies", "blocks"), GOLDEN)
def test_packets_and_marks(
    mtu: int, wire_format: str, length: int, replies: int, blocks: int
) -> None:
    cluster = VirtualCluster(mtu=mtu, wire_format=wire_format)
    one, other, partner = cluster.pair()
    received = bytearray(length)
    receive = other.irecv(received, 7)
    sent = cluster.wait(one, one.isend(data(length), partner, 7))
    status = cluster.wait(other, receive)
    cluster.settle()
    frames = cluster.frames_of(*DATA)
    kinds = [frame_type(frame) for frame in frames]
    assert {kind: kinds.count(kind) for kind in DATA} == {
        "rndv": 1, "pull_request": blocks, "pull_reply": replies, "notify": 1,
    }  # fmt: skip
    assert not cluster.frames_of("tiny", "small", "medium_frag", "nack_lib", "nack_mcp")
    to_receiver = [f for f in frames if frame_type(f) in ("rndv", "pull_reply")]
    to_sender = [f for f in frames if frame_type(f) in ("pull_request", "notify")]
    assert {f[5] for f in to_receiver} == {1}
    assert {f[5] for f in to_sender} == {0}
    assert sum(is_marked(frame) for frame in to_receiver) == blocks + 1
    assert sum(is_marked(frame) for frame in to_sender) == blocks + 1
    assert received == data(length)
    assert (sent.code, sent.length, sent.transferred) == ("success", length, length)
    assert (status.code, status.match, status.transferred) == ("success", 7, length)


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize("memory", ["heap", "process-vm", "bounce"])
def test_every_way_to_reach_memory(memory: str, expected: bool) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(memory=memory))
    received = bytearray(b"\xaa" * 100_010)
    receive = other.irecv(memoryview(received)[:100_000], 7) if expected else None
    send = one.isend(data(100_000), partner, 7)
    cluster.settle()
    if receive is None:
        assert one.test(send) is None
        status = other.iprobe(7)
        assert status is not None
        assert status.length == 100_000
        receive = other.irecv(memoryview(received)[:100_000], 7)
    assert cluster.wait(other, receive).code == "success"
    assert cluster.wait(one, send).transferred == 100_000
    assert received == data(100_000) + b"\xaa" * 10


@pytest.mark.parametrize("capacity", [0, 1, 40_000])
@pytest.mark.parametrize("expected", [True, False])
def test_both_sides_learn_of_truncation(capacity: int, expected: bool) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    received = bytearray(b"\xaa" * (capacity + 10))
    room = memoryview(received)[:capacity]
    receive = other.irecv(room, 7) if expected else None
    send = one.isend(data(50_000), partner, 7)
    if receive is None:
        cluster.settle()
        receive = other.irecv(room, 7)
    status = cluster.wait(other, receive)
    assert (status.code, status.length, status.transferred) == ("truncated", 50_000, capacity)
    sent = cluster.wait(one, send)
    assert (sent.code, sent.length, sent.transferred) == ("truncated", 50_000, capacity)
    assert received == data(50_000)[:capacity] + b"\xaa" * 10


@pytest.mark.parametrize("length", [0, 1, 128, 4096])
def test_synchronous_sends_are_done_when_received(length: int) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    send = one.issend(data(length), partner, 7)
    cluster.settle()
    cluster.advance(100 * MILLISECOND)
    assert one.test(send) is None
    received = bytearray(length)
    assert cluster.wait(other, other.irecv(received, 7)).code == "success"
    assert cluster.wait(one, send).transferred == length
    assert received == data(length)
    assert {frame_type(f) for f in cluster.frames} - {"truc"} == (
        {"rndv", "notify", "pull_request", "pull_reply"} if length else {"rndv", "notify"}
    )


def test_thresholds() -> None:
    def kinds(length: int, threshold: int, mtu: int = 1500) -> set[str]:
        cluster = VirtualCluster(mtu=mtu)
        one, other, partner = cluster.pair(MxParameters(rndv_threshold=threshold))
        received = bytearray(length)
        receive = other.irecv(received, 1)
        cluster.wait(one, one.isend(data(length), partner, 1))
        cluster.wait(other, receive)
        assert received == data(length)
        return {frame_type(f) for f in cluster.frames} & {"medium_frag", "small", "rndv"}

    assert kinds(128, 128) == {"small"}
    assert kinds(129, 128) == {"rndv"}
    # Fragments can carry no more, however high the threshold is.
    assert kinds(46_464, 1 << 20) == {"medium_frag"}
    assert kinds(46_465, 1 << 20) == {"rndv"}
    assert kinds(262_144, 1 << 20, 9000) == {"medium_frag"}
    assert kinds(262_145, 1 << 20, 9000) == {"rndv"}


def test_the_longest_eager_message_waits_for_its_receive() -> None:
    cluster = VirtualCluster(mtu=9000)
    one, other, partner = cluster.pair(MxParameters(rndv_threshold=1 << 20))
    cluster.wait(one, one.isend(data(262_144), partner, 1))
    cluster.settle()
    received = bytearray(262_144)
    assert cluster.wait(other, other.irecv(received, 1)).code == "success"
    assert received == data(262_144)


@pytest.mark.parametrize("memory", ["auto", "bounce"])
def test_300_sends_both_ways_wait_for_regions(memory: str) -> None:
    cluster = VirtualCluster(tx_ring_entries=64)
    one, other, partner = cluster.pair(MxParameters(memory=memory))
    back = cluster.connect(other, 0)
    sends, receives = [], []
    for i in range(300):
        sends.append((one, one.isend(data(33_000 + i), partner, i)))
        sends.append((other, other.isend(data(34_000 + i), back, i)))
    for i in reversed(range(300)):
        for end, length in ((other, 33_000 + i), (one, 34_000 + i)):
            buffer = bytearray(length)
            receives.append((end, end.irecv(buffer, i), buffer))
    for end, request in sends:
        assert cluster.wait(end, request).code == "success"
    for end, request, buffer in receives:
        assert cluster.wait(end, request).code == "success"
        assert buffer == data(len(buffer))


def test_later_sends_do_not_overtake_one_that_waits() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    large = [one.isend(data(40_000), partner, 5) for _ in range(130)]
    small = one.isend(b"last", partner, 5)
    cluster.settle()
    lengths = []
    for _ in range(131):
        lengths.append(cluster.wait(other, other.irecv(bytearray(40_000), 5)).length)
    assert lengths == [40_000] * 130 + [4]
    assert all(cluster.wait(one, request).code == "success" for request in (*large, small))


def test_a_bounced_message_must_fit_into_half_of_the_heap() -> None:
    cluster = VirtualCluster(heap_bytes=1 << 20)
    one, other, partner = cluster.pair(MxParameters(memory="bounce"))
    status = cluster.wait(one, one.isend(bytes(600_000), partner, 1))
    assert (status.code, status.transferred) == ("no-resources", 0)
    receive = other.irecv(bytearray(200_000), 1)
    assert cluster.wait(one, one.isend(data(200_000), partner, 1)).code == "success"
    assert cluster.wait(other, receive).code == "success"


def test_over_nics_with_coalescing() -> None:
    cluster = NicCluster(NicParameters())
    one, other, partner = cluster.pair()
    received = bytearray(234_880)
    receive = other.irecv(received, 7)
    cluster.wait(one, one.isend(data(234_880), partner, 7))
    cluster.wait(other, receive)
    assert received == data(234_880)
