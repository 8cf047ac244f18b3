"""Pulling large messages: the sequence of requests, repair, timers, ends, limits."""

from __future__ import annotations

import random

import pytest
from support.host_node import CORE0, RANK, SESSION
from support.packets import NackMcpPacket, PullReplyPacket, PullRequestPacket
from support.pull_pair import COOKIE, MILLISECOND, PULLED, PULLER, PullPair

from shrimpmx.host import pull, regions
from shrimpmx.wire.tables import wire_geometry

FORMATS = [(1500, "native"), (9000, "native"), (9000, "compatible")]
DELAY = 1000 * MILLISECOND
OK, ABORTED, TIMED_OUT = 0, 5, 6
MAGIC = 0x21071980
FULL = 1468  # bytes of a full pull reply at MTU 1500
MIB = 1 << 20


def requests(pair: PullPair) -> list[PullRequestPacket]:
    packets = [pair.decode(frame) for frame in pair.requests()]
    assert all(isinstance(packet, PullRequestPacket) for packet in packets)
    return packets  # type: ignore[return-value]


def blocks(pair: PullPair) -> list[tuple[int, int]]:
    """(first frame, length) of the requests that were sent."""
    return [(packet.frame_index, packet.block_length) for packet in requests(pair)]


def done(pair: PullPair) -> bool:
    """Whether the one pull ended well with the right bytes, and left nothing behind."""
    assert pair.ends() == [(COOKIE, pair.length, OK)]
    assert bytes(pair.result) == pair.data
    assert pull.active(pair.hosts[PULLER].node, 0) == 0
    return True


# -- what travels -----------------------------------------------------------


@pytest.mark.parametrize("marked", [True, False])
def test_a_request_and_its_replies_field_by_field(marked: bool) -> None:
    marks = ("pull-request", "pull-reply") if marked else ()
    pair = PullPair(marks=marks)
    assert pair.start(3000, remote_offset=2000) == 1
    frames = pair.requests()
    (request,) = (pair.decode(frame) for frame in frames)
    assert isinstance(request, PullRequestPacket)
    assert (request.dst_endpoint, request.src_endpoint, request.session) == (0, 0, SESSION)
    assert (request.total_length, request.rdma_id, request.rdma_seqnum) == (3000, 0, 1)
    assert (request.rdma_offset, request.first_frame_offset) == (2000, 2000 - FULL)
    assert (request.block_length, request.frame_index) == (3000, 0)
    assert (request.src_pull_handle, request.src_magic) == (0x23 << 10, MAGIC)
    assert request.marked == marked
    pair.hosts[PULLED].receive(*frames)
    replies = [pair.decode(frame) for frame in pair.replies()]
    offset = 0
    for number, reply in enumerate(replies):
        assert isinstance(reply, PullReplyPacket)
        assert (reply.frame_seqnum, reply.message_offset) == (number, offset)
        assert (reply.dst_pull_handle, reply.dst_magic) == (0x23 << 10, MAGIC)
        assert reply.data == pair.data[offset : offset + len(reply.data)]
        offset += len(reply.data)
    assert [len(reply.data) for reply in replies] == [936, 1468, 596]  # type: ignore[attr-defined]
    assert [reply.marked for reply in replies] == [False, False, marked]


@pytest.mark.parametrize(
    ("mtu", "wire_format", "length", "frames", "requests_count"),
    [
        (1500, "native", 32769, 23, 1),
        (1500, "native", 65536, 45, 2),
        (1500, "native", 131072, 90, 3),
        (1500, "native", 234880, 160, 5),
        (1500, "native", 262144, 179, 6),
        (1500, "native", MIB, 715, 23),
        (1500, "native", 4 * MIB, 2858, 90),
        (9000, "native", 65536, 8, 1),
        (9000, "native", MIB, 117, 4),
        (9000, "native", 4 * MIB, 468, 15),
        (9000, "compatible", 65536, 16, 2),
        (9000, "compatible", MIB, 256, 32),
        (9000, "compatible", 4 * MIB, 1024, 128),
    ],
)
def test_golden_packet_counts(
    mtu: int, wire_format: str, length: int, frames: int, requests_count: int
) -> None:
    pair = PullPair(mtu, wire_format, heap_bytes=8 * MIB)
    pair.start(length)
    pair.carry_all()
    assert done(pair)
    puller, pulled = pair.counters(PULLER), pair.counters(PULLED)
    assert puller == {
        "send_pull_request": requests_count, "recv_packets": frames, "recv_pull_reply": frames,
        "pull_done": 1,
    }  # fmt: skip
    assert pulled == {
        "recv_packets": requests_count, "recv_pull_request": requests_count,
        "send_pull_reply": frames,
    }  # fmt: skip


@pytest.mark.nightly("each offset", but=10)
@pytest.mark.parametrize(("mtu", "wire_format"), FORMATS)
@pytest.mark.parametrize("length", [1, 32769, 234880, MIB])
@pytest.mark.parametrize("offset", [0, 1, 1467, 1468, 4095, 65535])
def test_the_blocks_of_every_offset(mtu: int, wire_format: str, length: int, offset: int) -> None:
    pair = PullPair(mtu, wire_format)
    geometry = wire_geometry(mtu, wire_format)
    full = geometry.pull_frame_bytes
    block = full * geometry.pull_block_frames
    expected = [(0, min(length, block - offset % full))]
    while (end := sum(size for _, size in expected)) < length:
        frame = len(expected) * geometry.pull_block_frames
        expected.append((frame, min(block, length - end)))
    pair.start(length, offset)
    seen = blocks(pair)
    assert seen == expected[:4], "four in flight"
    pair.at(DELAY)  # ask again, since the test took the requests
    while replies := pair.answer():
        for reply in replies:
            pair.hosts[PULLER].receive(reply)
    assert done(pair)
    assert pair.counters()["send_pull_request"] == len(expected) + min(4, len(expected))


def test_a_complete_first_block_is_followed_by_one_more_request() -> None:
    pair = PullPair()
    pair.start(MIB)
    window = pair.requests()
    assert len(window) == 4
    for number in range(4, 23):
        pair.hosts[PULLED].receive(window.pop(0))
        replies = pair.replies()
        pair.hosts[PULLER].receive(*replies[:-1])
        assert pair.requests() == []
        pair.hosts[PULLER].receive(replies[-1])
        sent = pair.requests()
        requested = [getattr(pair.decode(frame), "frame_index", None) for frame in sent]
        assert requested == [32 * number]
        window += sent


def test_a_message_without_data_is_done_at_once() -> None:
    pair = PullPair()
    assert pair.start(0) == 1
    assert pair.requests() == []
    assert done(pair)


# -- repair -----------------------------------------------------------------


def test_a_lost_frame_is_asked_for_when_a_later_block_is_complete() -> None:
    pair = PullPair()
    pair.start(32 * FULL * 4)
    replies = pair.answer()
    pair.hosts[PULLER].receive(*(replies[:5] + replies[6:64]))
    assert blocks(pair) == [(0, 32 * FULL)]
    pair.hosts[PULLER].receive(*replies[64:96])
    assert blocks(pair) == [], "once in a timeout period"
    counters = pair.counters()
    assert counters["pull_nonfirst_block_done_early"] == 2
    assert "pull_request_notonlyfirst_blocks" not in counters
    pair.hosts[PULLER].receive(replies[5], *replies[96:])
    assert done(pair)


def test_all_earlier_incomplete_blocks_are_asked_for() -> None:
    pair = PullPair()
    pair.start(MIB)
    replies = pair.answer()
    late = [replies[3], replies[40]]
    pair.hosts[PULLER].receive(*[frame for frame in replies[:96] if frame not in late])
    assert blocks(pair) == [(0, 32 * FULL), (32, 32 * FULL)]
    assert pair.counters()["pull_request_notonlyfirst_blocks"] == 1
    pair.hosts[PULLER].receive(*late)
    assert [frame for frame, _ in blocks(pair)] == [128, 160, 192], "three complete blocks go"


def test_a_timeout_asks_for_every_incomplete_block() -> None:
    pair = PullPair()
    pair.start(MIB)
    replies = pair.answer()
    late = [replies[3], replies[40], replies[127]]
    pair.hosts[PULLER].receive(*[frame for frame in replies if frame not in late])
    pair.requests()
    pair.at(DELAY - 1)
    assert blocks(pair) == []
    pair.at(DELAY)
    assert [frame for frame, _ in blocks(pair)] == [0, 32, 96]
    counters = pair.counters()
    assert counters["pull_timeout_handler_first_block"] == 1
    assert counters["pull_timeout_handler_nonfirst_block"] == 2
    pair.at(2 * DELAY - 1)
    assert blocks(pair) == []
    pair.at(2 * DELAY)
    assert [frame for frame, _ in blocks(pair)] == [0, 32, 96]


def test_every_accepted_reply_moves_the_timeout() -> None:
    pair = PullPair()
    pair.start(MIB)
    replies = pair.answer()
    for number in range(5):
        pair.at(number * DELAY // 2)
        pair.hosts[PULLER].receive(replies[number])
    pair.hosts[PULLER].receive(replies[0])  # a duplicate does not
    pair.at(3 * DELAY - 1)
    assert blocks(pair) == []
    pair.at(3 * DELAY)
    assert len(blocks(pair)) == 4


def test_a_timeout_allows_early_requests_again() -> None:
    pair = PullPair()
    pair.start(32 * FULL * 4)
    replies = pair.answer()
    pair.hosts[PULLER].receive(*replies[1:64])
    assert blocks(pair) == [(0, 32 * FULL)]
    pair.at(DELAY)
    pair.requests()
    pair.hosts[PULLER].receive(*replies[64:96])
    assert blocks(pair) == [(0, 32 * FULL)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("mtu", "wire_format"), FORMATS)
def test_loss_duplication_and_disorder_are_repaired(seed: int, mtu: int, wire_format: str) -> None:
    draw = random.Random(seed)
    pair = PullPair(mtu, wire_format)
    length, rate = draw.randint(1, MIB), draw.choice((0.01, 0.1, 0.3))
    pair.start(length, draw.randint(0, 5000))

    def spoil(frames: list[bytes]) -> list[bytes]:
        kept = [frame for frame in frames for _ in range(draw.choice((1, 1, 2)))]
        kept = [frame for frame in kept if draw.random() > rate]
        places = [(number + draw.choice((0, 0, 3, 40)), number) for number in range(len(kept))]
        return [kept[number] for _, number in sorted(places)]

    now_ns = 0
    while pull.active(pair.hosts[PULLER].node, 0):
        pair.hosts[PULLED].receive(*spoil(pair.requests()))
        if replies := spoil(pair.replies()):
            pair.hosts[PULLER].receive(*replies)
            continue
        now_ns += DELAY
        assert now_ns < 500 * DELAY
        pair.at(now_ns)
    assert done(pair)


# -- ends -------------------------------------------------------------------


def test_a_pull_without_an_answer_is_given_up() -> None:
    pair = PullPair(resends_max=3)
    pair.start(100_000)
    for count in range(1, 3):
        pair.at(count * DELAY)
        assert len(blocks(pair)) == (6, 3)[count - 1], "those of the start too"
    pair.at(3 * DELAY)
    assert blocks(pair) == []
    assert pair.ends() == [(COOKIE, 0, TIMED_OUT)]
    assert pair.counters()["pull_timeout_abort"] == 1


@pytest.mark.parametrize(("nack_type", "status"), [(1, 1), (2, 2), (3, 3), (4, 4), (0, 5), (5, 5)])
def test_a_refusal_ends_the_pull(nack_type: int, status: int) -> None:
    pair = PullPair()
    pair.start(100_000)
    request = requests(pair)[0]
    answer = NackMcpPacket(
        destination=request.source, source=request.destination, peer_index=PULLED,
        nack_type=nack_type, src_pull_handle=request.src_pull_handle, src_magic=request.src_magic,
    )  # fmt: skip
    pair.send(PULLER, answer)
    assert pair.ends() == [(COOKIE, 0, status)]
    pair.send(PULLER, answer)
    assert pair.ends() == []
    counters = pair.counters()
    assert (counters["recv_nack_mcp"], counters["drop_nack_mcp_bad_wire_handle"]) == (1, 1)


@pytest.mark.parametrize("again", [False, True])
def test_a_region_that_is_destroyed_in_mid_pull_ends_it(again: bool) -> None:
    pair = PullPair()
    pair.start(100_000)
    replies = pair.answer()
    pair.hosts[PULLER].receive(*replies[:10])
    endpoint = pair.hosts[PULLER].endpoint
    regions.destroy(endpoint, pair.region)
    before = bytes(pair.result)
    for _ in range(256 if again else 0):  # until the id is used again, for other data
        regions.create(endpoint, pair.result)
    pair.hosts[PULLER].receive(*replies[10:])
    assert pair.ends() == [(COOKIE, 10 * FULL, ABORTED)]
    assert bytes(pair.result) == before
    assert pair.counters()["drop_pull_reply_bad_wire_handle"] == len(replies) - 11


def test_memory_that_cannot_be_written_ends_the_pull() -> None:
    pair = PullPair()
    endpoint = pair.hosts[PULLER].endpoint
    memory = bytearray(5000)
    region, _ = regions.create(endpoint, memory, "process")
    pair.start(5000, region=region)
    replies = pair.answer()
    pair.hosts[PULLER].receive(replies[0])
    assert memory[:FULL] == pair.data[:FULL]
    pair.hosts[PULLER].set_pid(0)  # a process that does not exist
    pair.hosts[PULLER].receive(*replies[1:])
    assert pair.ends() == [(COOKIE, FULL, ABORTED)]


def test_a_pull_with_any_number_of_resends_is_not_given_up_early() -> None:
    pair = PullPair(resends_max=2**32 - 1, pull_resend_delay_ns=60 * DELAY)
    pair.start(5000)
    pair.at(60 * DELAY)
    assert pair.ends() == []
    pair.carry_all()
    assert done(pair)


def test_a_closed_endpoint_pulls_no_more() -> None:
    pair = PullPair()
    pair.start(100_000)
    replies = pair.answer()
    host = pair.hosts[PULLER]
    host.endpoint.close()
    host.receive(replies[0])
    assert pair.counters()["drop_pull_reply_bad_magic_endpoint"] == 1
    host.endpoint.open(77)
    assert pull.active(host.node, 0) == 0
    host.receive(replies[0])
    assert pair.counters()["drop_pull_reply_bad_wire_handle"] == 1
    assert bytes(pair.result) == bytes(100_000)


def test_an_end_that_finds_the_expected_ring_full_is_told_later() -> None:
    pair = PullPair(event_ring_entries=16)
    for _ in range(17):
        assert pair.start(0) == 1
    assert pair.counters()["exp_eventq_full"] == 1
    pair.at(MILLISECOND)
    assert pair.counters()["exp_eventq_full"] == 2
    assert pull.active(pair.hosts[PULLER].node, 0) == 1
    assert len(pair.ends()) == 16
    rank = pair.hosts[PULLER].wait_slot(RANK)
    rank.arm()
    pair.at(2 * MILLISECOND)
    assert pair.ends() == [(COOKIE, 0, OK)]
    assert rank.wakes == 1
    assert pull.active(pair.hosts[PULLER].node, 0) == 0


def test_the_end_wakes_the_rank_and_nothing_before_it() -> None:
    pair = PullPair()
    pair.start(5000)
    replies = pair.answer()
    rank = pair.hosts[PULLER].wait_slot(RANK)
    rank.arm()
    pair.hosts[PULLER].receive(*replies[:-1])
    assert rank.wakes == 0
    pair.hosts[PULLER].receive(replies[-1])
    assert rank.wakes == 1


# -- limits -----------------------------------------------------------------


def test_there_are_1024_handles_and_generations_begin_with_0x23() -> None:
    pair = PullPair(tx_ring_entries=2048)
    numbers = []
    for _ in range(1024):
        assert pair.start(10) == 1
        numbers += [packet.src_pull_handle for packet in requests(pair)]
    assert numbers == [0x23 << 10 | index for index in range(1024)]
    pair.start(10)
    assert pair.start(10) == 0
    assert requests(pair) == []


def test_a_handle_has_a_new_generation_each_time() -> None:
    pair = PullPair()
    old = None
    for use in range(3):
        pair.start(10)
        frames = pair.requests()
        number = pair.decode(frames[0]).src_pull_handle  # type: ignore[attr-defined]
        assert number == 0x23 + use << 10
        pair.hosts[PULLED].receive(*frames)
        replies = pair.replies()
        if old is not None:
            pair.hosts[PULLER].receive(*old)  # late, for the use before
            assert pair.ends() == []
        pair.hosts[PULLER].receive(*replies)
        assert done(pair)
        old = replies
    assert pair.counters()["drop_pull_reply_bad_wire_handle"] == 2


def test_without_room_for_the_first_requests_nothing_starts() -> None:
    pair = PullPair(tx_ring_entries=16)
    for _ in range(3):
        assert pair.start(MIB) == 1
    assert pair.start(MIB) == 1
    assert pair.start(10) == 0
    assert pair.counters()["send_nomem_pull_request"] == 1
    assert pull.active(pair.hosts[PULLER].node, 0) == 4
    pair.requests()
    assert pair.start(10) == 1


def test_a_request_that_finds_no_room_later_is_sent_after_a_timeout() -> None:
    pair = PullPair(tx_ring_entries=256)
    pair.start(MIB)
    replies = pair.answer()
    nacked = [pair.nacked() for _ in range(256)]
    pair.hosts[PULLER].receive(*nacked, *replies[:32])  # the handler's ring is full of nacks
    assert pair.counters()["send_nomem_pull_request"] == 1
    pair.hosts[PULLER].receive(*replies[32:])
    while pair.hosts[PULLER].node.ring_depths()["core_tx", 0]:
        pair.requests()
    pair.at(DELAY)
    pair.carry_all()
    assert done(pair)


def test_the_ledger_counts_changes_of_core() -> None:
    pair = PullPair()
    pair.start(10 * FULL)
    replies = pair.answer()
    for number, core in enumerate((0, 0, 1, 1, 0, 1, 1, 1, 0, 0)):
        pair.hosts[PULLER].receive(replies[number], core=core)
    assert pull.handovers(pair.hosts[PULLER].node) == 4
    assert pair.hosts[PULLER].node.endpoint_handovers(0) == 4
    assert pull.handovers(pair.hosts[PULLED].node) == 0
    with pytest.raises(IndexError, match="no endpoint 9"):
        pull.active(pair.hosts[PULLER].node, 9)


def test_the_irq_agent_repairs_a_pull_whose_first_requests_are_lost() -> None:
    pair = PullPair()
    irq = pair.hosts[PULLER].irq()
    irq.step_at(0)
    pair.start(100_000)
    assert len(pair.requests()) == 3
    while not pair.counters().get("pull_timeout_handler_first_block"):
        now_ns = irq.due_ns
        assert now_ns is not None
        assert now_ns <= 2 * DELAY
        irq.step_at(now_ns)
    assert len(blocks(pair)) == 3
    assert pair.hosts[PULLER].counters(CORE0)["timer_ticks"] == 4
