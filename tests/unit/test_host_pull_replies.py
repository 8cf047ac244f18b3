"""What a pull request or reply must be, and the counter of each that is not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from support.host_node import SESSION
from support.memory import assert_counts
from support.packets import NackMcpPacket, Packet, PullReplyPacket, PullRequestPacket, node_address
from support.protected import protected
from support.pull_pair import PULLED, PULLER, PullPair

from shrimpmx.host import regions
from shrimpmx.shared.node import take_frames
from shrimpmx.shared.sizes import HEAP_START_BYTES

FULL = 1468
MIB = 1 << 20
FORMATS = [(1500, "native"), (9000, "native"), (9000, "compatible")]


def request_of(pair: PullPair, length: int = 100_000, offset: int = 0) -> PullRequestPacket:
    """A good request for the first block, not handled yet."""
    pair.start(length, offset)
    request = pair.decode(pair.requests()[0])
    assert isinstance(request, PullRequestPacket)
    return request


def replies_of(pair: PullPair, length: int = MIB) -> list[PullReplyPacket]:
    """The replies to the first four requests."""
    pair.start(length)
    replies = [pair.decode(data) for data in pair.answer()]
    assert all(isinstance(reply, PullReplyPacket) for reply in replies)
    return replies  # type: ignore[return-value]


# -- requests -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason", "nack_type"),
    [
        ({"dst_endpoint": 2}, "bad_endpoint", 1),
        ({"dst_endpoint": 255}, "bad_endpoint", 1),
        ({"dst_endpoint": 1}, "bad_endpoint", 2),
        ({"session": SESSION + 1}, "bad_session", 3),
        ({"rdma_id": 1}, "pull_bad_region", 4),
        ({"rdma_id": 255}, "pull_bad_region", 4),
        ({"rdma_seqnum": 2}, "pull_bad_region", 4),
        ({"rdma_seqnum": 0}, "pull_bad_region", 4),
    ],
)
@pytest.mark.parametrize(("mtu", "wire_format"), FORMATS)
def test_a_request_that_is_refused_is_nacked(
    mtu: int, wire_format: str, changes: dict[str, Any], reason: str, nack_type: int
) -> None:
    pair = PullPair(mtu, wire_format)
    request = request_of(pair)
    pair.send(PULLED, replace(request, **changes))
    (nack,) = (pair.decode(data) for data in pair.replies())
    assert isinstance(nack, NackMcpPacket)
    assert (nack.nack_type, nack.src_endpoint) == (nack_type, changes.get("dst_endpoint", 0))
    assert (nack.src_pull_handle, nack.src_magic) == (request.src_pull_handle, request.src_magic)
    assert (nack.destination, nack.marked) == (node_address(PULLER), False)
    assert_counts(
        pair.counters(PULLED), {"recv_packets": 1, f"drop_{reason}": 1, "send_nack_mcp": 1}
    )
    pair.send(PULLER, nack)
    assert [status for _, _, status in pair.ends()] == [nack_type]


@pytest.mark.parametrize("rdma_id", [256, 2**32 - 1])
def test_an_id_beyond_the_table_is_a_bad_region(rdma_id: int) -> None:
    pair = PullPair()
    pair.send(PULLED, replace(request_of(pair), rdma_id=rdma_id))
    assert pair.counters(PULLED)["drop_pull_bad_region"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"total_length": 100_001},
        {"rdma_offset": 1},
        {"rdma_offset": 2, "first_frame_offset": 2, "block_length": 9},
        {"rdma_offset": 1468, "total_length": 100_000},
        {"first_frame_offset": 1, "block_length": 9},
        {"frame_index": 40},
        {"frame_index": 2**31},
        {"frame_index": 2**32 - 1},
        {"frame_index": 1, "first_frame_offset": 5, "block_length": 9},
    ],
)
def test_a_bad_offset_or_length_is_not_answered(changes: dict[str, Any]) -> None:
    pair = PullPair()
    pair.send(PULLED, replace(request_of(pair), **changes))
    assert pair.replies() == []
    assert_counts(pair.counters(PULLED), {"recv_packets": 1, "drop_pull_bad_offset_length": 1})


@pytest.mark.parametrize("offset", [0, 7, 1467, 60_000])
def test_the_last_byte_of_a_region_can_be_pulled_and_no_more(offset: int) -> None:
    pair = PullPair()
    request = request_of(pair, 1000, offset)
    pair.send(PULLED, request)
    replies = [pair.decode(data) for data in pair.replies()]
    assert b"".join(reply.data for reply in replies) == pair.data  # type: ignore[attr-defined]
    pair.send(PULLED, replace(request, total_length=1001))
    assert pair.replies() == []


def test_without_room_a_refusal_is_counted() -> None:
    pair = PullPair(tx_ring_entries=16)
    request = replace(request_of(pair), rdma_id=9)
    pair.send(PULLED, *[request] * 20)
    assert pair.counters(PULLED)["send_nack_mcp"] == 16
    assert pair.counters(PULLED)["send_nomem_nack_mcp"] == 4


def test_a_rank_is_told_once_of_memory_that_cannot_be_read() -> None:
    pair = PullPair()
    request = request_of(pair)
    host = pair.hosts[PULLED]
    for use in (1, 2):
        memory = protected(100_000, 0)
        number, seqnum = regions.create(host.endpoint, memory, "process")
        asked = replace(request, rdma_id=number, rdma_seqnum=seqnum)
        pair.send(PULLED, asked)
        pair.send(PULLED, asked)
        assert pair.replies() == []
        (event,) = host.events()
        assert event["type"] == "unreadable"
        assert (event["rdma_id"], event["rdma_seqnum"]) == (number, seqnum)
        regions.destroy(host.endpoint, number)
        assert pair.counters(PULLED)["pull_reply_fill_failed"] == 2 * use
    pair.send(PULLED, asked)
    assert isinstance(pair.decode(pair.replies()[0]), NackMcpPacket)


def test_a_rank_whose_ring_is_full_is_told_when_the_data_is_asked_for_again() -> None:
    pair = PullPair()
    request = request_of(pair)
    host = pair.hosts[PULLED]
    told = []
    for _ in range(20):
        number, seqnum = regions.create(host.endpoint, protected(100_000, 0), "process")
        told.append(replace(request, rdma_id=number, rdma_seqnum=seqnum))
    pair.send(PULLED, *told)
    events = host.events()
    assert 0 < len(events) < len(told)
    pair.send(PULLED, *told)
    events += host.events()
    assert [event["rdma_id"] for event in events] == [asked.rdma_id for asked in told]


def test_memory_of_a_process_that_is_gone_is_counted() -> None:
    pair = PullPair()
    request = request_of(pair)
    host = pair.hosts[PULLED]
    number, seqnum = regions.create(host.endpoint, bytearray(100_000), "process")
    host.set_pid(0)  # a process that does not exist
    pair.send(PULLED, replace(request, rdma_id=number, rdma_seqnum=seqnum))
    assert pair.replies() == []
    expected = {"recv_packets": 1, "recv_pull_request": 1, "pull_reply_fill_failed": 1}
    assert_counts(pair.counters(PULLED), expected)
    assert host.events() == []


def test_a_process_region_is_pulled_into_a_process_region() -> None:
    pair = PullPair()
    request = request_of(pair)
    data = bytearray(b"shared by no CPU" * 100)
    number, seqnum = regions.create(pair.hosts[PULLED].endpoint, data, "process")
    changes = {"rdma_id": number, "rdma_seqnum": seqnum, "total_length": 1600, "block_length": 1600}
    pair.send(PULLED, replace(request, **changes))
    replies = [pair.decode(frame).data for frame in pair.replies()]  # type: ignore[attr-defined]
    assert b"".join(replies) == data


@pytest.mark.parametrize("format_at", FORMATS)
def test_one_doorbell_for_all_replies_of_a_batch(format_at: tuple[int, str]) -> None:
    pair = PullPair(*format_at)
    pair.start(MIB)
    nic = pair.hosts[PULLED].wait_slot(0)
    nic.arm()
    after_each = []
    for data in pair.requests():
        pair.hosts[PULLED].handlers[0].handle_frame(data, finish=False)
        replies = take_frames(pair.hosts[PULLED].node, "core_tx", 0)
        after_each.append((nic.wakes, len(replies)))
    pair.hosts[PULLED].receive(pair.nacked())
    blocks = {1500: [32] * 4, 9000: [32, 32, 32, 21]}[format_at[0]]
    if format_at[1] == "compatible":
        blocks = [8] * 4
    # A NIC that is awake finds each block at once.
    assert after_each == [(0, frames) for frames in blocks]
    assert nic.wakes == 1


# -- replies ------------------------------------------------------------------


def patched(reply: PullReplyPacket, **changes: Any) -> Packet:
    return replace(reply, **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dst_magic": 0}, "pull_reply_bad_magic_endpoint"),
        ({"dst_magic": 0x21071980 ^ 1}, "pull_reply_bad_magic_endpoint"),
        ({"dst_pull_handle": 0x24 << 10}, "pull_reply_bad_wire_handle"),
        ({"dst_pull_handle": 0x23 << 10 | 1}, "pull_reply_bad_wire_handle"),
        ({"dst_pull_handle": 0}, "pull_reply_bad_wire_handle"),
        ({"source": node_address(2), "peer_index": 2}, "pull_reply_bad_wire_handle"),
        ({"frame_seqnum": 4}, "pull_reply_bad_seqnum_wraparound"),
        ({"message_offset": 3 * FULL + 1}, "pull_reply_bad_seqnum_wraparound"),
        ({"message_offset": 259 * FULL}, "pull_reply_bad_seqnum_wraparound"),
        ({"frame_seqnum": 128, "message_offset": 128 * FULL}, "pull_reply_bad_seqnum"),
        ({"frame_seqnum": 255, "message_offset": 255 * FULL}, "pull_reply_bad_seqnum"),
        ({"data": b"short"}, "pull_bad_replies"),
    ],
)
def test_each_reply_that_is_not_wanted_has_its_counter(
    changes: dict[str, Any], reason: str
) -> None:
    pair = PullPair()
    replies = replies_of(pair)
    pair.send(PULLER, patched(replies[3], **changes))
    counters = pair.counters()
    counters.pop("send_pull_request")
    assert_counts(counters, {"recv_packets": 1, f"drop_{reason}": 1})
    assert bytes(pair.result) == bytes(MIB)
    pair.send(PULLER, *replies[:32])
    assert pair.counters()["recv_pull_reply"] == 32, "the good one is taken still"


def test_a_frame_that_comes_twice_is_a_duplicate() -> None:
    pair = PullPair()
    replies = replies_of(pair)
    pair.send(PULLER, replies[5], replies[5], replies[100], replies[100])
    assert pair.counters()["drop_pull_reply_duplicate"] == 2
    assert pair.counters()["recv_pull_reply"] == 2


def test_a_frame_of_a_block_that_is_complete_lies_outside_the_window() -> None:
    pair = PullPair()
    replies = replies_of(pair)
    pair.send(PULLER, *replies[:32], replies[31], replies[0])
    assert pair.counters()["drop_pull_reply_bad_seqnum"] == 2


def test_a_frame_of_256_frames_ago_is_told_from_the_one_that_is_wanted() -> None:
    pair = PullPair()
    replies = replies_of(pair)
    old = replies[0]
    pair.send(PULLER, *replies)
    frames = pair.answer()
    pair.send(PULLER, *[pair.decode(data) for data in frames])  # 256 frames have come
    before = bytes(pair.result[: FULL * 256])
    pair.send(PULLER, replace(old, data=bytes(FULL)))
    assert pair.counters()["drop_pull_reply_bad_seqnum_wraparound"] == 1
    assert bytes(pair.result[: FULL * 256]) == before == pair.data[: FULL * 256]


def test_the_last_frame_has_the_rest_and_not_a_byte_more() -> None:
    pair = PullPair()
    replies = replies_of(pair, FULL + 10)
    pair.send(PULLER, replace(replies[1], data=bytes(11)), replace(replies[1], data=bytes(9)))
    assert pair.counters()["drop_pull_bad_replies"] == 2
    pair.send(PULLER, *replies)
    assert len(pair.ends()) == 1
    assert bytes(pair.result) == pair.data


# -- hostile frames -----------------------------------------------------------


def mutated(draw: random.Random, good: list[bytes]) -> bytes:
    """A good frame with up to six bytes of its header changed, or its length."""
    data = bytearray(draw.choice(good))
    for _ in range(draw.randint(0, 6)):
        data[draw.randrange(12, 60)] = draw.choice((0, 1, 0x23, 0x80, 0xFF, draw.randrange(256)))
    return bytes(data[: draw.choice((len(data), len(data), 60, draw.randint(0, len(data))))])


@pytest.mark.parametrize("kind", ["heap", "process"])
def test_hostile_pull_frames_write_only_into_the_region(kind: str) -> None:
    draw = random.Random(5)
    pair = PullPair()
    pair.start(200_000)
    requests = pair.requests()
    pair.hosts[PULLED].receive(*requests)
    replies = pair.replies()
    host = pair.hosts[PULLER]
    memory = memoryview(bytearray(300_000))
    if kind == "process":
        pair.region, _ = regions.create(host.endpoint, memory[50_000:250_000], "process")
    heap = host.node.heap_segment.view()
    before = bytes(heap)
    for _ in range(30):
        pair.start(200_000, region=pair.region)
        for frame in pair.requests():  # to be pulled from as well
            requests.append(frame)
        handle = pair.decode(requests[-1]).src_pull_handle  # type: ignore[attr-defined]
        good = [data[:24] + handle.to_bytes(4, "big") + data[28:] for data in replies]
        host.receive(*[mutated(draw, good) for _ in range(150)])
        pair.hosts[PULLED].receive(*[mutated(draw, requests) for _ in range(20)])
        pair.replies()
        host.events()
        take_frames(host.node, "core_tx", 0)
    counters = host.counters()
    total = counters.pop("recv_packets")
    assert total == 30 * 150
    kept = sum(n for name, n in counters.items() if name.startswith(("recv_", "drop_", "unexp_")))
    assert kept == total
    assert counters["recv_pull_reply"] > 500
    after = bytes(heap)
    start = HEAP_START_BYTES + 128
    assert after[:start] == before[:start]
    assert after[start + 200_000 :] == before[start + 200_000 :]
    assert bytes(memory[:50_000]) == bytes(50_000) == bytes(memory[250_000:])
