"""Pull replies that find no room in the tx ring wait for it, in order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.host_node import frame
from support.packets import PullReplyPacket
from support.pull_pair import COOKIE, PULLED, PULLER, PullPair
from support.virtual_cluster import NicCluster

from shrimpmx.host import regions
from shrimpmx.settings.nic import NicParameters

FULL, BLOCK_FRAMES = 1468, 32
SLOTS, BACKLOG_BLOCKS = 16, 1024
REPLY_SLOTS = 14  # an eighth is kept for what does not wait


def waiting(blocks: int) -> PullPair:
    """The pulled side has sent some of the first block's replies, and the rest has no room."""
    pair = PullPair(tx_ring_entries=SLOTS)
    pair.start(BLOCK_FRAMES * FULL * blocks)
    pair.hosts[PULLED].receive(*pair.requests())
    counters = pair.counters(PULLED)
    assert counters["send_pull_reply"] == REPLY_SLOTS
    assert "send_nomem_pull_reply" not in counters, "they wait, and none is left out"
    return pair


def replies_until_none(pair: PullPair, carry: bool = True) -> list[int]:
    """Frame numbers of all replies, each batch of which leaves the ring at once."""
    numbers = []
    while frames := pair.replies():
        assert len(frames) <= REPLY_SLOTS
        for data in frames:
            reply = pair.decode(data)
            assert isinstance(reply, PullReplyPacket)
            numbers.append(reply.frame_seqnum)
        if carry:
            pair.hosts[PULLER].receive(*frames)
            pair.hosts[PULLED].receive(*pair.requests())
        pair.hosts[PULLED].handlers[0].tick_at(0)
    return numbers


@pytest.mark.parametrize("blocks", [1, 4, 6, 9])
def test_they_go_in_order_and_nobody_asks_again(blocks: int) -> None:
    pair = waiting(blocks)
    assert replies_until_none(pair) == [n % 256 for n in range(BLOCK_FRAMES * blocks)]
    assert pair.ends() == [(COOKIE, BLOCK_FRAMES * FULL * blocks, 0)]
    assert pair.result == pair.data
    assert pair.counters()["send_pull_request"] == blocks


def destroy_region(pair: PullPair) -> None:
    regions.destroy(pair.hosts[PULLED].endpoint, pair.remote_region[0])


def use_region_again(pair: PullPair) -> None:
    destroy_region(pair)
    for _ in range(regions_left := 256):
        number, _ = regions.create(pair.hosts[PULLED].endpoint, pair.heap(PULLED, 0, 10))
        if number == pair.remote_region[0]:
            return
    raise AssertionError(f"not among {regions_left}")


def close(pair: PullPair) -> None:
    pair.hosts[PULLED].endpoint.close()


def reopen(pair: PullPair) -> None:
    close(pair)
    pair.hosts[PULLED].endpoint.open(77)


@pytest.mark.parametrize("change", [destroy_region, use_region_again, close, reopen])
def test_nothing_is_sent_from_what_is_gone(change: Callable[[PullPair], None]) -> None:
    pair = waiting(4)
    change(pair)
    assert replies_until_none(pair, carry=False) == list(range(REPLY_SLOTS))
    assert pair.counters(PULLED)["send_pull_reply"] == REPLY_SLOTS


def test_what_a_full_backlog_leaves_out_is_asked_for_again() -> None:
    pair = PullPair(tx_ring_entries=SLOTS)
    pair.start(1000)
    (request,) = pair.requests()
    pair.hosts[PULLED].receive(*[request] * (REPLY_SLOTS + BACKLOG_BLOCKS + 6))
    assert pair.counters(PULLED)["send_nomem_pull_reply"] == 6
    assert len(replies_until_none(pair, carry=False)) == REPLY_SLOTS + BACKLOG_BLOCKS


def test_waiting_replies_leave_room_for_what_does_not_wait() -> None:
    pair = waiting(4)
    refused = frame("tiny", dst_endpoint=9)
    pair.hosts[PULLED].receive(*[refused] * 3)
    counters = pair.counters(PULLED)
    assert (counters["send_nack_lib"], counters["send_nomem_nack_lib"]) == (SLOTS - REPLY_SLOTS, 1)


@pytest.mark.parametrize("both_ways", [False, True], ids=["one-way", "both-ways"])
def test_many_large_messages_at_once_wait_for_no_timer(both_ways: bool) -> None:
    cluster = NicCluster(NicParameters(coalescing="open-mx"))
    one, other, partner = cluster.pair()
    ways = [(one, other, partner)]
    if both_ways:
        ways.append((other, one, cluster.connect(other, 0)))
    content = bytes(range(250)) * 1000
    buffers = [[bytearray(len(content)) for _ in range(32)] for _ in ways]
    requests = []
    for (_, receiver, _), targets in zip(ways, buffers, strict=True):
        requests += [(receiver, receiver.irecv(target, 1)) for target in targets]
    for sender, _, target in ways:
        requests += [(sender, sender.isend(content, target, 1)) for _ in range(32)]
    for endpoint, request in requests:
        assert cluster.wait(endpoint, request).code == "success"
    assert all(buffer == content for targets in buffers for buffer in targets)
    for node in (0, 1):
        counters = cluster.control.agent_counters(node)
        assert counters["pull_timeout_handler_first_block"] == 0
        assert counters["pull_timeout_handler_nonfirst_block"] == 0
        assert counters["send_nomem_pull_request"] == 0
    # 8 MB at 10 Gb/s take 6.8 ms.
    assert cluster.now_ns < 12_000_000
