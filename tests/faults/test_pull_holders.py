"""A process that dies in the middle of a pull that it carries on for a neighbour.

A handler that runs in a rank's process, or a local sender, has the lock of another rank's endpoint
when it is killed. The pulls there must end with all their bytes, and be told of once.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import time
from collections.abc import Callable

import pytest
from support.agents import make_irq
from support.deaths import die_holding_the_lock
from support.host_node import CORE0, CORE1, RANK, SESSION, HostNode, frame
from support.pull_pair import COOKIE, MILLISECOND, PULLER, PullPair

from shrimpmx.host import pull
from shrimpmx.host.endpoint import DriverEndpoint, close_dead
from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.shared.node import put_frame

# Of layout.h and pull.h.
EXPECTED_NEXT_AT, PULLS_OFFSET_AT, PULLS_ACTIVE_AT = 108, 136, 148
RECEIVED_AT, NEXT_FRAME_AT, BLOCKS_COUNT_AT, BLOCKS_AT, TELLING_INDEX_AT = 72, 76, 80, 104, 200
BLOCK_BYTES, MISSING_IN_BLOCK = 24, 16
TELLING = 3
DELAY = 1000 * MILLISECOND
LENGTH = 300_000
OK, ABORTED = 0, 5
WATCHDOG, OF_RANK = 1, 65536 + RANK
MIB = 1 << 20
RUNS, RUNS_MAX = 30, 200


class Memory:
    """What a node's segment holds of endpoint 0 and its first pull."""

    def __init__(self, host: HostNode) -> None:
        self.view = host.node.segment.view()
        self.endpoint = host.layout.endpoints_offset
        self.pull: int = struct.unpack_from("<Q", self.view, self.endpoint + PULLS_OFFSET_AT)[0]

    def get(self, place: int, kind: str = "I") -> int:
        value: int = struct.unpack_from("<" + kind, self.view, place)[0]
        return value

    def put(self, place: int, value: int, kind: str = "I") -> None:
        struct.pack_into("<" + kind, self.view, place, value)

    def block(self, number: int) -> int:
        return self.pull + BLOCKS_AT + BLOCK_BYTES * number


def frame_taken_not_stored(memory: Memory) -> None:
    place = memory.block(0) + MISSING_IN_BLOCK
    missing = memory.get(place, "Q")
    memory.put(place, missing & (missing - 1), "Q")


def last_frame_taken_not_stored(memory: Memory) -> None:
    """The block is complete, and still among those in flight."""
    memory.put(memory.block(0) + MISSING_IN_BLOCK, 0, "Q")


def block_dropped_not_moved(memory: Memory) -> None:
    last_frame_taken_not_stored(memory)
    memory.put(memory.pull + BLOCKS_COUNT_AT, memory.get(memory.pull + BLOCKS_COUNT_AT) - 1)


def blocks_half_moved(memory: Memory) -> None:
    block_dropped_not_moved(memory)
    start, end = memory.block(0), memory.block(1)
    memory.view[start : start + 30] = bytes(memory.view[end : end + 30])


def block_appended_not_counted(memory: Memory) -> None:
    memory.put(memory.pull + NEXT_FRAME_AT, memory.get(memory.pull + NEXT_FRAME_AT) + 32)


def stored_not_counted(memory: Memory) -> None:
    frame_taken_not_stored(memory)
    memory.put(memory.pull + RECEIVED_AT, memory.get(memory.pull + RECEIVED_AT) - 7)


@pytest.mark.parametrize(
    "torn",
    [
        frame_taken_not_stored,
        last_frame_taken_not_stored,
        block_dropped_not_moved,
        blocks_half_moved,
        block_appended_not_counted,
        stored_not_counted,
    ],
)
def test_a_pull_that_its_handler_left_torn_ends_well(torn: Callable[[Memory], None]) -> None:
    pair = PullPair()
    pair.start(LENGTH)
    replies = pair.answer()
    pair.hosts[PULLER].receive(*replies[:10])
    torn(Memory(pair.hosts[PULLER]))
    die_holding_the_lock(pair.hosts[PULLER])
    pair.hosts[PULLER].receive(*replies[10:])
    assert pair.counters()["drop_pull_reply_bad_wire_handle"] == len(replies) - 10
    pair.at(DELAY)
    pair.carry_all()
    check_done(pair)


def check_done(pair: PullPair) -> None:
    assert pair.ends() == [(COOKIE, pair.length, OK)]
    assert bytes(pair.result) == pair.data
    assert pull.active(pair.hosts[PULLER].node, 0) == 0


def test_a_hole_that_nobody_noticed_is_an_error() -> None:
    pair = PullPair()
    pair.start(LENGTH)
    frame_taken_not_stored(Memory(pair.hosts[PULLER]))
    pair.carry_all()
    ((_, transferred, status),) = pair.ends()
    assert (transferred, status) == (LENGTH - 1468, ABORTED)


@pytest.mark.parametrize("published", [True, False])
def test_an_end_is_told_once(published: bool) -> None:
    """A handler dies between noting the event of an end and freeing the handle."""
    pair = PullPair()
    host = pair.hosts[PULLER]
    pair.start(LENGTH)
    pair.carry_all()
    if not published:
        pair.ends()
    memory = Memory(host)
    index = memory.get(memory.endpoint + EXPECTED_NEXT_AT)
    memory.put(memory.pull, TELLING)
    memory.put(memory.pull + TELLING_INDEX_AT, index - published)
    memory.put(memory.endpoint + PULLS_ACTIVE_AT, 1)
    die_holding_the_lock(host)
    host.receive(frame("tiny", session=SESSION + 1))  # the handler takes the lock
    pair.at(DELAY)
    check_done(pair)


# -- real deaths -----------------------------------------------------------------------


def polled_for(pair: PullPair, replies: list[bytes]) -> int:
    """A process whose endpoint 1 polls, and carries the pull of endpoint 0 on; its pid."""
    node = pair.hosts[PULLER].node
    for reply in replies:
        assert put_frame(node, "rx", 0, reply)
    pid = os.fork()
    if pid == 0:
        try:
            busy = BusyPoll(node, 0)
            with Endpoint(node, 1, RANK, agent=RANK, session_id=77, busy_poll=busy) as endpoint:
                while True:
                    endpoint.progress()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    return pid


def has_polled(host: HostNode) -> bool:
    return host.counters().get("busy_polls", 0) > 0


def test_a_rank_killed_while_it_carries_its_neighbours_pull() -> None:
    draw = random.Random(7)
    settings = {"tx_ring_entries": 1024, "rx_ring_entries": 4096, "heap_bytes": 5 * MIB}
    twin = PullPair(**settings)
    twin.start(4 * MIB)
    replies = []
    while some := twin.answer():
        replies += some
        twin.hosts[PULLER].receive(*some)
    in_poll = runs = 0
    while runs < RUNS or (in_poll == 0 and runs < RUNS_MAX):
        runs += 1
        pair = PullPair(busy_poll=WATCHDOG, **settings)
        host = pair.hosts[PULLER]
        pair.start(4 * MIB)
        pid = polled_for(pair, replies)
        while not has_polled(host):  # to sleep between looks would miss the polls with frames
            pass
        time.sleep(draw.uniform(0.0, 0.002))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        in_poll += host.token() == OF_RANK
        close_dead(host.node, 1)
        take_over(pair)
        check_done(pair)
    assert in_poll > 0, "none was caught in the middle of a poll"


def take_over(pair: PullPair) -> None:
    """The irq agent takes the frames that are left, and its tick asks for those that are not."""
    host = pair.hosts[PULLER]
    irq = make_irq(host.node, 0, CORE0)
    host.raise_interrupt()
    while host.node.ring_depths()["rx", 0]:
        irq.step_at(0)
    while pull.active(host.node, 0):
        host.control.set_virtual_ns(host.control.now_ns() + DELAY)
        irq.step_at(host.control.now_ns())
        while replies := pair.answer():
            host.receive(*replies, core=1)


def test_frames_stay_until_those_they_wake_are_awake() -> None:
    """The rank that polls dies as it wakes the first of two neighbours."""
    host = HostNode.make(
        opened=False, busy_poll=WATCHDOG, endpoints=3, tx_ring_entries=1024, rx_ring_entries=64
    )
    neighbours = [DriverEndpoint(host.node, 0, CORE0), DriverEndpoint(host.node, 1, CORE1)]
    for number, endpoint in enumerate(neighbours):
        endpoint.open(SESSION)
        assert put_frame(host.node, "rx", 0, frame("tiny", dst_endpoint=number))
    first, second = host.wait_slot(CORE0), host.wait_slot(CORE1)
    word = second.arm()
    pid = os.fork()
    if pid == 0:
        try:
            first.set_owner(os.getpid(), signal.SIGKILL)
            first.arm_notify()
            busy = BusyPoll(host.node, 0)
            Endpoint(host.node, 2, RANK, agent=RANK, session_id=7, busy_poll=busy).progress()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "it was killed by its notification"
    first.disarm()
    assert (second.wakes, host.node.ring_depths()["rx", 0]) == (0, 2)
    close_dead(host.node, 2)
    assert second.sleep(word, 0) == 0, "it was woken"
    second.arm()
    host.raise_interrupt()
    make_irq(host.node, 0, CORE0).step_at(0)
    assert host.node.ring_depths()["rx", 0] == 0
    assert second.wakes == 1
    event = neighbours[1].take_event()
    assert event is not None
    assert event["type"] == "tiny"
