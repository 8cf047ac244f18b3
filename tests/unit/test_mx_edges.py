"""Limits of the library at their edges, and restarts in the middle of traffic of all kinds."""

from __future__ import annotations

import random

import pytest
from support.virtual_cluster import (
    MILLISECOND,
    NicCluster,
    VirtualCluster,
    frame_type,
    pattern,
    perfect_wire,
)

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

EARLY_WINDOW, THROTTLE, ZOMBIES = 255, 8191, 512  # Open-MX's
SHORT = MxParameters(
    resend_delay_ns=5 * MILLISECOND, ack_delay_ns=MILLISECOND, resends_max=40
)  # fmt: skip
SIZES = (0, 32, 128, 1452, 20_000, 32769, 100_000)
OLD, NEW = 1, 2


def test_the_early_window_ends_behind_its_last_message() -> None:
    cluster = VirtualCluster(tx_ring_entries=1024)
    one, other, partner = cluster.pair()
    lost: list[bytes] = []

    def lose_first(frame: bytes) -> list[tuple[int, bytes]]:
        if frame_type(frame) == "tiny" and not lost:
            lost.append(frame)
            return []
        return perfect_wire(frame)

    cluster.wire = lose_first
    count = 1 + EARLY_WINDOW + 3
    for number in range(count):
        one.isend(number.to_bytes(2, "big"), partner, number)
    cluster.settle()
    counters = other.counters()
    assert (counters["recv_early"], counters["recv_out_of_window"]) == (EARLY_WINDOW, 3)
    for number in range(count):
        buffer = bytearray(2)
        assert cluster.wait(other, other.irecv(buffer, 0, 0)).match == number
        assert int.from_bytes(buffer, "big") == number
    assert other.iprobe(0, 0) is None


def test_half_of_the_sequence_numbers_may_be_in_flight() -> None:
    """8191 messages, not one more, and what is older than that is never taken again."""
    cluster = VirtualCluster(tx_ring_entries=16384, event_ring_entries=16384)
    one, other, partner = cluster.pair()
    cluster.wire = lambda frame: []
    count = THROTTLE + 10
    for number in range(count):
        one.forget(one.isend(number.to_bytes(2, "big"), partner, number))
    cluster.settle()
    first = cluster.frames[0]
    assert partner.unacked == THROTTLE == len(cluster.frames)
    cluster.wire = perfect_wire
    cluster.until(lambda: partner.unacked == 0)
    cluster.handlers[1].handle_frame(first)
    cluster.settle()
    for number in range(count):
        buffer = bytearray(2)
        status = other.test(other.irecv(buffer, 0, 0))
        assert status is not None
        assert (status.match, int.from_bytes(buffer, "big")) == (number, number)
    assert other.iprobe(0, 0) is None


def test_512_sends_complete_before_they_are_acked() -> None:
    cluster = VirtualCluster(tx_ring_entries=1024)
    one, _, partner = cluster.pair()
    cluster.wire = lambda frame: []
    sends = [one.isend(b"", partner, 1) for _ in range(ZOMBIES + 8)]
    done = [one.test(send) is not None for send in sends]
    assert done == [True] * ZOMBIES + [False] * 8
    cluster.wire = perfect_wire
    cluster.until(lambda: partner.unacked == 0)
    assert all(one.test(send) is not None for send in sends[ZOMBIES:])


# -- restarts in mid-traffic ------------------------------------------------------


class Traffic:
    """Messages of all classes both ways between two endpoints that may be restarted."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        faults = LinkFaults(loss=0.03, duplicate=0.05, reorder=0.1, reorder_degree=3, seed=seed)
        self.cluster = NicCluster(
            NicParameters(coalescing="open-mx"), faults, seed=seed,
            pull_resend_delay_ns=5 * MILLISECOND, resends_max=40,
        )  # fmt: skip
        self.ends = [self.cluster.open(node, 0, SHORT) for node in (0, 1)]
        self.connect()

    def connect(self) -> None:
        """Both know each other afterwards."""
        self.partners = [self.cluster.connect(self.ends[i], 1 - i) for i in (0, 1)]

    def send(self, side: int, match: int, count: int) -> list[Request]:
        """Messages whose content tells `match`."""
        return [
            self.ends[side].isend(pattern(SIZES[i % 7], match + i), self.partners[side], match)
            for i in range(count)
        ]

    def receive(self, side: int, match: int, count: int) -> list[tuple[Request, bytearray]]:
        """As many receives, posted."""
        buffers = [bytearray(max(SIZES)) for _ in range(count)]
        return [(self.ends[side].irecv(buffer, match), buffer) for buffer in buffers]


def ended(cluster: VirtualCluster, endpoint: Endpoint, requests: list[Request]) -> set[str]:
    """How they ended."""
    return {cluster.wait(endpoint, request).code for request in requests}


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("seed", range(12))
def test_a_restart_in_mid_traffic(side: int, seed: int) -> None:
    """What was under way ends; nothing of it reaches the new instance, whose traffic arrives."""
    traffic = Traffic(seed)
    cluster, stays = traffic.cluster, traffic.ends[1 - side]
    receives = [traffic.receive(i, OLD, 20) for i in (0, 1)]
    sends = [traffic.send(i, OLD, 28) for i in (0, 1)]
    cluster.advance(traffic.draw.randint(10_000, 2 * MILLISECOND))
    before: Partner = traffic.partners[1 - side]
    old_session = traffic.ends[side].session
    cluster.close(traffic.ends[side])
    traffic.ends[side] = cluster.open(side, 0, SHORT)
    traffic.connect()
    assert before.session == traffic.ends[side].session != old_session
    endings = {"success", "remote-endpoint-unreachable", "bad-session", "endpoint-closed"}
    assert ended(cluster, stays, sends[1 - side]) <= endings
    for request, buffer in receives[1 - side]:
        if not stays.cancel(request):  # of those that matched, the complete ones are whole
            status = cluster.wait(stays, request)
            assert status.code in endings
            if status.code == "success":
                number = SIZES.index(status.length)
                assert any(
                    buffer[: status.length] == pattern(status.length, OLD + n)
                    for n in range(number, 28, 7)
                )
    for i in (0, 1):
        sends[i] = traffic.send(i, NEW, 14)
    for i in (0, 1):
        for number, (request, buffer) in enumerate(traffic.receive(i, NEW, 14)):
            status = cluster.wait(traffic.ends[i], request)
            length = SIZES[number % 7]
            assert (status.code, status.length) == ("success", length)
            assert buffer[:length] == pattern(length, NEW + number)
    for i in (0, 1):
        assert ended(cluster, traffic.ends[i], sends[i]) == {"success"}
    cluster.settle()
    assert traffic.ends[side].iprobe(OLD) is None
