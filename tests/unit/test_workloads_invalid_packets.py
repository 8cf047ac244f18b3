"""The receiver's end of a stream of invalid packets: what it waits for and between which looks."""

from __future__ import annotations

import pytest
from support.host_node import CORE0, CORE1, NIC, HostNode

from shrimpmx.errors import AbortedError
from shrimpmx.shared.host import VirtualHost
from shrimpmx.workloads.invalid_packets import Look, await_invalid_packets, chosen_looks


def looks(*dropped: int) -> list[Look]:
    """A look each 10 ns."""
    return [Look(10 * number, count) for number, count in enumerate(dropped)]


@pytest.mark.parametrize(
    ("dropped", "warmup", "times"),
    [
        ((0, 20, 50, 80, 100), 10, [10, 30]),  # the last look comes too late
        ((0, 20, 50, 80, 100), 0, [0, 30]),
        ((0, 20, 50, 80, 80, 80), 10, [10, 20]),  # the others were lost: quiet is not counted
        ((0, 20, 100), 10, [10, 20]),
        ((0, 5, 100), 10, [0, 10]),  # nothing behind the warm-up: better all than none
        ((0, 100), 10, [0, 10]),
        ((0, 0, 0, 100), 10, [0, 30]),
        ((0, 0, 0), 10, []),
        ((0,), 0, []),
    ],
)
def test_the_looks_that_count(dropped: tuple[int, ...], warmup: int, times: list[int]) -> None:
    assert [look.time_ns for look in chosen_looks(looks(*dropped), warmup)] == times


class Stream:
    """The world of a rank: as each look sleeps, packets are sent and dropped."""

    def __init__(self, node: HostNode, sent: int) -> None:
        self.node, self.sent, self.dropped = node, sent, 0
        self.packets_per_look = 250
        self.abort_ns: int | None = None
        self.host = VirtualHost(node.control, self.sleep)

    def begin(self) -> None:
        self.node.count(NIC, "generated_invalid").value = self.sent

    def sleep(self, until_ns: int | None) -> None:
        assert until_ns is not None
        self.node.control.set_virtual_ns(until_ns)
        if self.abort_ns is not None and until_ns >= self.abort_ns:
            self.node.control.set_stop("abort")
        if self.node.count(NIC, "generated_invalid").value:
            self.dropped = min(self.dropped + self.packets_per_look, 1000)
        # Two cores share the work.
        for core, count in ((CORE0, self.dropped // 2), (CORE1, self.dropped - self.dropped // 2)):
            self.node.count(core, "drop_invalid_type").value = count


def test_it_waits_for_all_that_were_sent() -> None:
    stream = Stream(HostNode.make(), 1000)
    found = await_invalid_packets(stream.host, stream.begin, 1000, 100)
    assert found["count"].tolist() == [1000]
    assert found["timestamps_ns"].tolist() == [2_000_000, 6_000_000]
    assert found["batch"].tolist() == [500]


def test_it_does_not_wait_for_ever_for_lost_ones() -> None:
    stream = Stream(HostNode.make(), 1010)
    found = await_invalid_packets(stream.host, stream.begin, 1010, 100)
    assert found["count"].tolist() == [1000]
    assert found["timestamps_ns"].tolist() == [2_000_000, 6_000_000]
    assert 200_000_000 < stream.host.now_ns() < 230_000_000


def test_it_waits_while_they_are_not_all_sent() -> None:
    """Silence alone does not end it: the sender may be slow."""
    stream = Stream(HostNode.make(), 500)
    stream.abort_ns = 5_000_000_000
    with pytest.raises(AbortedError, match="invalid packets"):
        await_invalid_packets(stream.host, stream.begin, 2000, 0)
    assert stream.host.now_ns() >= stream.abort_ns


def test_without_any_packet_there_is_no_time() -> None:
    stream = Stream(HostNode.make(), 1000)
    stream.packets_per_look = 0
    found = await_invalid_packets(stream.host, stream.begin, 1000, 0)
    assert {name: values.tolist() for name, values in found.items()} == {
        "timestamps_ns": [],
        "batch": [1],
        "count": [0],
    }
