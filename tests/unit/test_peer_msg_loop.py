"""mx_msg_loop -R -P 11: messages of random size both ways.

At most 100 000 bytes each and 128 under way, in buffers between guard pads of 4096 bytes. Every
byte is checked, and no pad is touched.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import pytest
from support.peer import data, ends, switches
from support.virtual_cluster import NicCluster, VirtualCluster

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request
from shrimpmx.settings.nic import NicParameters

LENGTH_MAX, OUTSTANDING, PAD_BYTES = 100_000, 128, 4096
MESSAGES = 400
# Before a buffer, behind it, and in it before anything comes.
BEFORE, BEHIND, EMPTY = 0xFE, 0xFD, 0xFC


@dataclass
class Padded:
    """A buffer between two guard pads."""

    whole: bytearray
    length: int

    @classmethod
    def of(cls, length: int, content: bytes | None = None) -> Padded:
        inner = bytes([EMPTY]) * length if content is None else content
        return cls(
            bytearray(bytes([BEFORE]) * PAD_BYTES + inner + bytes([BEHIND]) * PAD_BYTES), length
        )

    @property
    def room(self) -> memoryview:
        return memoryview(self.whole)[PAD_BYTES : PAD_BYTES + self.length]

    def check(self, content: bytes) -> None:
        """The message is there, and nothing but it was written."""
        assert self.whole[:PAD_BYTES] == bytes([BEFORE]) * PAD_BYTES
        assert self.whole[-PAD_BYTES:] == bytes([BEHIND]) * PAD_BYTES
        assert self.room[: len(content)] == content
        rest = self.length - len(content)
        assert self.room[len(content) :] == bytes([EMPTY]) * rest


@dataclass
class Direction:
    """One endpoint's messages to another, by number."""

    one: Endpoint
    other: Endpoint
    partner: Partner
    lengths: list[int]
    match: int

    def __post_init__(self) -> None:
        self.sends: deque[tuple[Request, Padded, int]] = deque()
        self.receives: deque[tuple[Request, Padded]] = deque()
        self.posted = self.sent = self.received = 0

    def step(self, rng: random.Random) -> None:
        """Start what may be started: receives are sometimes late, buffers longer than needed."""
        while self.posted < MESSAGES and len(self.receives) < OUTSTANDING:
            length = min(self.lengths[self.posted] + rng.randint(0, 99), LENGTH_MAX)
            buffer = Padded.of(length)
            self.receives.append((self.other.irecv(buffer.room, self.match | self.posted), buffer))
            self.posted += 1
            if rng.random() < 0.02:
                break
        while self.sent < MESSAGES and len(self.sends) < OUTSTANDING:
            length = self.lengths[self.sent]
            buffer = Padded.of(length, data(length, self.sent))
            request = self.one.isend(buffer.room, self.partner, self.match | self.sent)
            self.sends.append((request, buffer, self.sent))
            self.sent += 1

    def finish(self) -> bool:
        """Take what is done; whether all is."""
        while self.sends and (status := self.one.test(self.sends[0][0])):
            _, buffer, number = self.sends.popleft()
            assert (status.code, status.length) == ("success", self.lengths[number])
            buffer.check(data(self.lengths[number], number))
        while self.receives and (status := self.other.test(self.receives[0][0])):
            _, buffer = self.receives.popleft()
            assert (status.code, status.match) == ("success", self.match | self.received)
            assert status.length == self.lengths[self.received]
            buffer.check(data(status.length, self.received))
            self.received += 1
        return self.received == MESSAGES and not self.sends


def loop(
    cluster: VirtualCluster, one: Endpoint, other: Endpoint, there: Partner, back: Partner
) -> None:
    rng = random.Random(11)

    def lengths() -> list[int]:
        return [rng.randint(0, LENGTH_MAX) for _ in range(MESSAGES)]

    directions = [
        Direction(one, other, there, lengths(), 1 << 32),
        Direction(other, one, back, lengths(), 2 << 32),
    ]
    while sum(one_way.finish() for one_way in directions) < len(directions):
        for one_way in directions:
            one_way.step(rng)
        due_ns = None if cluster.step() else cluster.next_due_ns()
        if due_ns is not None:
            cluster.control.set_virtual_ns(max(due_ns, cluster.now_ns + 1))
    assert one.ipeek() is None
    assert other.ipeek() is None


@pytest.mark.parametrize("path", ["native", "shared", "self"])
def test_random_sizes(path: str) -> None:
    cluster, one, other, partner = ends(path)
    back = cluster.connect(other, 0, 0)
    loop(cluster, one, other, partner, back)


def test_random_sizes_over_nics() -> None:
    cluster = NicCluster(NicParameters(mtu=9000, coalescing="open-mx"))
    one, other = (cluster.open(node, parameters=switches("native")) for node in (0, 1))
    loop(cluster, one, other, cluster.connect(one, 1), cluster.connect(other, 0))
