"""AdaptiveRate coalescing: Intel's classes and rates, alone, with marks and over the firmware."""

from __future__ import annotations

import pytest
from support.nic import Handler, Nodes, frame, make_firmware, run

from shrimpmx.link.rings import ring_links
from shrimpmx.nic.adaptive import AdaptiveRate, MarksAdaptive
from shrimpmx.nic.firmware import Firmware
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import put_frame

SLOW_NS = 250_000  # 4000 interrupts per second
MIDDLE_NS = 50_000  # 20 000


def report(policy: AdaptiveRate, packets: int, length: int, now_ns: int = 0) -> str:
    """Let so many packets of `length` bytes be reported; the class that follows."""
    for _ in range(packets):
        policy.arrival(now_ns, False, length)
    policy.raised(now_ns, "packet")
    return policy.latency_class


# How a policy gets into each class; it begins with low.
INTO = {"lowest": [(1, 60)], "low": [], "bulk": [(9, 1200)]}


def policy_in(name: str) -> AdaptiveRate:
    policy = AdaptiveRate()
    for packets, length in INTO[name]:
        report(policy, packets, length)
    assert policy.latency_class == name
    return policy


@pytest.mark.parametrize(
    ("before", "packets", "length", "after"),
    [
        # lowest: large packets go to bulk, few packets with some bytes to low
        ("lowest", 1, 8001, "bulk"),
        ("lowest", 1, 8000, "low"),
        ("lowest", 4, 129, "low"),  # 516 bytes
        ("lowest", 4, 128, "lowest"),  # 512
        ("lowest", 5, 1500, "lowest"),
        ("lowest", 0, 0, "lowest"),
        # low, more than 10 000 bytes
        ("low", 40, 1201, "bulk"),
        ("low", 9, 1112, "bulk"),  # 10 008 bytes, fewer than 10 packets
        ("low", 10, 1001, "low"),
        ("low", 35, 300, "low"),
        ("low", 36, 300, "lowest"),
        ("low", 36, 1200, "lowest"),
        # low, no more than that
        ("low", 1, 2001, "bulk"),
        ("low", 1, 2000, "low"),
        ("low", 5, 2000, "low"),  # 10 000 bytes
        ("low", 2, 255, "lowest"),
        ("low", 2, 256, "low"),  # 512 bytes
        ("low", 3, 60, "low"),
        ("low", 0, 0, "low"),
        # bulk: many packets, or few bytes, go to low
        ("bulk", 36, 700, "low"),  # 25 200 bytes
        ("bulk", 35, 800, "bulk"),  # 28 000 bytes, 35 packets
        ("bulk", 10, 2500, "bulk"),  # 25 000 bytes
        ("bulk", 4, 1500, "bulk"),  # 6000 bytes
        ("bulk", 1, 5999, "low"),
        ("bulk", 0, 0, "bulk"),
    ],
)
def test_the_class_follows_from_packets_and_bytes(
    before: str, packets: int, length: int, after: str
) -> None:
    assert report(policy_in(before), packets, length) == after


def test_rates_rise_by_a_quarter_of_the_target_and_fall_at_once() -> None:
    policy = AdaptiveRate()
    assert (policy.rate, policy.interval_ns) == (20_000, MIDDLE_NS)
    rates = []
    for _ in range(4):
        assert report(policy, 1, 60) == "lowest"
        rates.append(policy.rate)
    assert rates == [37_500, 55_000, 70_000, 70_000]
    assert policy.interval_ns == 1_000_000_000 // 70_000
    assert report(policy, 1, 9000) == "bulk"
    assert (policy.rate, policy.interval_ns) == (4000, SLOW_NS)
    assert report(policy, 1, 5000) == "low"
    rates = [policy.rate]
    for _ in range(4):
        assert report(policy, 5, 1000) == "low"
        rates.append(policy.rate)
    assert rates == [9000, 14_000, 19_000, 20_000, 20_000]


def test_a_conservative_one_never_uses_the_lowest_class() -> None:
    policy = AdaptiveRate(True)
    for _ in range(3):
        # The next class takes its place, and what comes is judged by that one's row.
        assert report(policy, 1, 60) == "low"
        assert policy.rate == 20_000
    assert report(policy, 5, 1500) == "low"
    assert report(policy, 1, 2001) == "bulk", "lowest would ask for more than 8000"
    assert policy.rate == 4000


@pytest.mark.parametrize("dilation", [0.5, 1.0, 6.0])
def test_intervals_are_dilated(dilation: float) -> None:
    policy = AdaptiveRate(False, dilation)
    assert policy.interval_ns == dilation * MIDDLE_NS
    report(policy, 1, 9000)
    assert policy.interval_ns == dilation * SLOW_NS


def test_a_packet_after_a_pause_raises_at_once_and_others_wait_for_their_turn() -> None:
    policy = AdaptiveRate()
    policy.arrival(900, False, 1500)
    assert policy.dma_complete(1000, False, 0) == "packet"
    policy.raised(1000, "packet")
    assert policy.due_ns is None
    for now_ns in (1100, 30_000):
        policy.arrival(now_ns, True, 1500)
        assert policy.dma_complete(now_ns, True, 0) == "none"
        assert policy.due_ns == 1000 + MIDDLE_NS
    assert policy.deadline(51_000) == "timeout"
    assert policy.due_ns is None
    policy.raised(51_000, "timeout")
    assert policy.dma_complete(100_999, False, 0) == "none"
    assert policy.due_ns == 101_000
    policy.deadline(101_000)
    policy.raised(101_000, "timeout")
    assert policy.dma_complete(151_000, False, 0) == "packet"


def test_a_late_report_moves_the_interval() -> None:
    policy = AdaptiveRate()
    assert policy.dma_complete(1000, False, 0) == "packet"
    # The interrupt before it is not finished: the wish is kept, and further packets wish too.
    assert policy.dma_complete(2000, False, 0) == "packet"
    policy.raised(9000, "packet")
    policy.dma_complete(9500, False, 0)
    assert policy.due_ns == 9000 + MIDDLE_NS


# -- with marks -------------------------------------------------------------


def test_marks_raise_at_once_and_others_by_the_rate() -> None:
    policy = MarksAdaptive()
    policy.arrival(0, True, 1500)
    assert policy.dma_complete(1000, True, 2) == "marked"
    policy.raised(1000, "marked")
    assert policy.dma_complete(1100, False, 1) == "none"
    assert policy.due_ns == 1000 + MIDDLE_NS
    # A mark within the interval: at once; it reports the packet before it too.
    assert policy.dma_complete(1200, True, 0) == "marked"
    policy.raised(1200, "marked")
    assert policy.due_ns is None
    assert policy.dma_complete(1300, False, 0) == "none"
    assert policy.due_ns == 1200 + MIDDLE_NS
    assert policy.deadline(51_200) == "timeout"
    policy.raised(51_200, "timeout")
    # After a pause an unmarked one needs no mark.
    assert policy.dma_complete(200_000, False, 0) == "packet"


def test_the_interrupts_of_marks_count_for_the_class() -> None:
    policy = MarksAdaptive()
    policy.arrival(0, True, 9000)
    policy.dma_complete(10, True, 0)
    policy.raised(10, "marked")
    assert policy.latency_class == "bulk"
    assert policy.rate == 4000


# -- over the firmware ------------------------------------------------------


def test_a_nic_keeps_the_rate() -> None:
    """A tiny packet is in host memory every 10 us, from 1050 ns on: class lowest.

    The first raises at once. The next interrupts follow after 26 666 ns (37 500 per second), after
    18 181 (55 000), and then, with 70 000, every 14 285: the 67th of them is the first behind the
    last packet, at 991 050.
    """
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="adaptive")
    handler = Handler(nodes)
    for number in range(100):
        put_frame(nodes[0], "link", 1, frame(number), 1000 + 10_000 * number)
    run([nic], 0, 2_000_000, [handler])
    assert len(handler.frames) == 100
    assert handler.interrupts == 3 + 67
    assert nodes.counters(0)["irq_raised_packet"] == 1
    assert nodes.counters(0)["irq_raised_timeout"] == 2 + 67


def test_the_firmware_passes_its_dilation_on() -> None:
    nodes = Nodes()
    parameters = NicParameters(coalescing="adaptive")
    links = ring_links(nodes.nodes, 0, parameters)
    nic = Firmware(nodes[0], *links, parameters, dilation=6.0)
    assert isinstance(nic.queues[0].policy, AdaptiveRate)
    assert nic.queues[0].policy.interval_ns == 6 * MIDDLE_NS
