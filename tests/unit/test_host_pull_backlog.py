"""Pull replies that find no room in the tx ring wait for it, in order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.pull_pair import COOKIE, PULLED, PULLER, PullPair
from support.virtual_cluster import NicCluster

from shrimpmx.host import regions
from shrimpmx.params import NicParameters
from shrimpmx.wire.packets import PullReplyPacket

FULL, BLOCK_FRAMES = 1468, 32
SLOTS, BACKLOG_BLOCKS = 16, 1024


def waiting(blocks: int) -> PullPair:
    """The pulled side has sent half of the first block's replies, and the rest has no room."""
    pair = PullPair(tx_ring_entries=SLOTS)
    pair.start(BLOCK_FRAMES * FULL * blocks)
    pair.hosts[PULLED].receive(*pair.requests())
    counters = pair.counters(PULLED)
    assert counters["send_pull_reply"] == SLOTS
    assert counters["send_nomem_pull_reply"] == min(blocks, 4)
    return pair


def replies_until_none(pair: PullPair, carry: bool = True) -> list[int]:
    """Frame numbers of all replies, each batch of which leaves the ring at once."""
    numbers = []
    while frames := pair.replies():
        assert len(frames) <= SLOTS
        for frame in frames:
            reply = pair.decode(frame)
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
    assert replies_until_none(pair, carry=False) == list(range(SLOTS))
    assert pair.counters(PULLED)["send_pull_reply"] == SLOTS


def test_what_a_full_backlog_leaves_out_is_asked_for_again() -> None:
    pair = PullPair(tx_ring_entries=SLOTS)
    pair.start(1000)
    (request,) = pair.requests()
    pair.hosts[PULLED].receive(*[request] * (SLOTS + BACKLOG_BLOCKS + 6))
    assert pair.counters(PULLED)["send_nomem_pull_reply"] == BACKLOG_BLOCKS + 6
    assert len(replies_until_none(pair, carry=False)) == SLOTS + BACKLOG_BLOCKS


def test_many_large_messages_at_once_wait_for_no_timer() -> None:
    cluster = NicCluster(NicParameters(coalescing="open-mx"))
    one, other, partner = cluster.pair()
    content = bytes(range(250)) * 1000
    buffers = [bytearray(len(content)) for _ in range(32)]
    receives = [other.irecv(buffer, 1) for buffer in buffers]
    sends = [one.isend(content, partner, 1) for _ in buffers]
    for receive, send in zip(receives, sends, strict=True):
        assert cluster.wait(other, receive).code == "success"
        assert cluster.wait(one, send).code == "success"
    assert all(buffer == content for buffer in buffers)
    pulled, puller = (cluster.control.agent_counters(node) for node in (0, 1))
    assert pulled["send_nomem_pull_reply"] > 0
    assert puller["pull_timeout_handler_first_block"] == 0
    # 8 MB at 10 Gb/s take 6.8 ms.
    assert cluster.now_ns < 12_000_000
