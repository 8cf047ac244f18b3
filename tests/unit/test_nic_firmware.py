"""The NIC's firmware under the virtual clock: traces worked out by hand."""

from __future__ import annotations

import pytest
from support.memory import assert_counts
from support.nic import PLAIN, Handler, Nodes, frame, make_firmware, run, small_frame

from shrimpmx.errors import InputError
from shrimpmx.link.rings import ring_links
from shrimpmx.nic.firmware import Firmware
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.shared.node import put_frame, take_frames

DELAY_NS = 75_000


def arrive(nodes: Nodes, time_ns: int, number: int = 0, marked: bool = True) -> None:
    """A frame from node 1 that is at node 0's NIC at `time_ns`."""
    assert put_frame(nodes[0], "link", 1, frame(number, marked=marked), time_ns)


def rx_times(nodes: Nodes) -> list[int]:
    return [time_ns for time_ns, _ in take_frames(nodes[0], "rx")]


# -- up: arrival, DMA, interrupt ----------------------------------------------


def test_a_stream_of_two_and_a_lone_packet() -> None:
    """60 bytes take the DMA engine 60 ns, and 50 ns later they are in host memory.

    arrival  1000        1010              2000
    engine   1000-1060   1060-1120         2000-2060
    in host  1110        1170              2110
    """
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="stream", dma_bytes_per_second=10**9)
    handler = Handler(nodes)
    for time_ns in (1000, 1010, 2000):
        arrive(nodes, time_ns)
    seen = []
    now_ns = 0
    while nic.step_at(now_ns) or nic.due_ns is not None:
        seen.append((now_ns, nic.due_ns, handler.see_interrupt()))
        if handler.running:
            handler.poll()
            handler.end()
        assert nic.due_ns is None or nic.due_ns > now_ns
        now_ns = nic.due_ns if nic.due_ns is not None else now_ns + 1
    assert seen == [
        (0, 1000, False),
        (1000, 1010, False),
        (1010, 1110, False),
        (1110, 1170, False),  # the second is pending: deferred
        (1170, 2000, True),
        (2000, 2110, False),
        (2110, None, True),  # alone: early
    ]
    assert [time_ns for time_ns, _ in handler.frames] == [1110, 1170, 2110]
    assert_counts(
        nodes.counters(0),
        {
            "rx_packets": 3,
            "rx_bytes": 180,
            "rx_marked": 3,
            "irq_wished": 2,
            "irq_raised": 2,
            "irq_raised_marked": 1,
            "irq_raised_deferred": 1,
            "irq_deferred": 1,
            "irq_deferred_longest_ns": 60,
            "irq_deferred_packets": 1,
        },
    )


@pytest.mark.parametrize("coalescing", ["disabled", "timeout", "open-mx", "stream"])
def test_a_late_step_decides_the_same(coalescing: str) -> None:
    """What a policy wishes depends on when things were due, not on when the NIC ran."""
    wishes = []
    for late in (False, True):
        nodes = Nodes()
        nic = make_firmware(nodes, coalescing=coalescing, dma_bytes_per_second=10**9)
        for number, time_ns in enumerate((1000, 1010, 2000, 2300, 2310, 90_000)):
            arrive(nodes, time_ns, number, number % 3 != 0)
        if late:
            nic.step_at(10**6)
        else:
            run([nic], 0, 10**6, [])
        times = rx_times(nodes)
        assert times == [1110, 1170, 2110, 2410, 2470, 90_110]
        wishes.append(nodes.counters(0))
    assert wishes[0] == wishes[1]


@pytest.mark.parametrize(
    ("mark_ns", "deferred_ns"),
    [
        (30_000, 10),  # until the next packet ends the stream
        (2050 + DELAY_NS - 57, 7),  # until the timer, which the held-back packet has started
    ],
)
def test_a_pause_of_the_nics_process_is_no_deferral(mark_ns: int, deferred_ns: int) -> None:
    nodes = Nodes()
    nic, handler = make_firmware(nodes, coalescing="stream"), Handler(nodes)
    arrive(nodes, 1000)
    nic.step_at(1050)
    assert handler.see_interrupt()
    arrive(nodes, 2000)
    nic.step_at(2050)
    assert nodes.wish()  # its interrupt is held back, since the handler has the token
    arrive(nodes, mark_ns)
    arrive(nodes, mark_ns + 10)
    nic.step_at(mark_ns + 50)
    assert nodes.counters(0)["irq_deferred"] == 1
    handler.end()
    nic.step_at(10**8)  # it did not run meanwhile
    assert handler.see_interrupt()
    assert nodes.counters(0)["irq_deferred_longest_ns"] == deferred_ns


def test_an_arrival_comes_before_a_completion_at_the_same_time() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="stream")
    arrive(nodes, 1000)
    arrive(nodes, 1050)  # when the first is in host memory
    nic.step_at(1050)
    assert "irq_wished" not in nodes.counters(0)
    nic.step_at(1100)
    assert nodes.counters(0)["irq_raised_deferred"] == 1


def test_the_timer_reports_what_is_not_marked() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="open-mx")
    arrive(nodes, 1000, marked=False)
    nic.step_at(1050)
    assert nic.due_ns == 1050 + DELAY_NS
    assert nic.step_at(1050 + DELAY_NS - 1) == 0
    assert nic.step_at(1050 + DELAY_NS) == 1
    assert nic.due_ns is None
    assert nodes.counters(0)["irq_raised_timeout"] == 1


def test_packets_in_host_memory_are_visible_without_an_interrupt() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="timeout")
    arrive(nodes, 1000)
    nic.step_at(1049)
    assert rx_times(nodes) == []
    nic.step_at(1050)
    assert rx_times(nodes) == [1050]
    # The host took the packet by itself: nothing is left to report.
    nic.step_at(1050 + DELAY_NS)
    assert nodes.counters(0)["irq_absorbed"] == 1
    assert nodes.take_interrupts() == []
    assert nic.due_ns is None


def test_frames_of_several_links_come_in_order_of_time() -> None:
    nodes = Nodes(3)
    nic = make_firmware(nodes)
    for source, time_ns in ((1, 1000), (1, 1004), (2, 1001), (2, 1002), (0, 1003)):
        put_frame(nodes[0], "link", source, frame(time_ns, source=source), time_ns)
    nic.step_at(5000)
    assert rx_times(nodes) == [1050, 1051, 1052, 1053, 1054]


def test_a_frame_that_was_published_late_comes_after_what_is_done() -> None:
    nodes = Nodes(3)
    nic = make_firmware(nodes, coalescing="timeout")
    put_frame(nodes[0], "link", 1, frame(), 2000)
    nic.step_at(2050)
    put_frame(nodes[0], "link", 2, frame(), 1000)
    nic.step_at(2060)
    nic.step_at(2100)
    assert rx_times(nodes) == [2050, 2100]


def test_a_full_rx_ring_drops_and_counts() -> None:
    nodes = Nodes(rx_ring_entries=16)
    nic = make_firmware(nodes, coalescing="open-mx")
    handler = Handler(nodes)
    for number in range(20):
        arrive(nodes, 1000, number)
    nic.step_at(1049)  # reserved though not yet in host memory
    assert nodes.counters(0)["rx_drop_ring_full"] == 4
    nic.step_at(1050)
    handler.serve()
    arrive(nodes, 2000, 20)
    nic.step_at(2050)
    handler.serve()
    assert [data for _, data in handler.frames] == [frame(i) for i in [*range(16), 20]]


def test_a_frame_of_impossible_length_is_dropped_and_counted() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes)
    for length in (0, 16, 1501, 65535):
        put_frame(nodes[0], "link", 1, frame(), 1000, length)
    arrive(nodes, 1000)
    nic.step_at(2000)
    assert rx_times(nodes) == [1050]
    assert nodes.counters(0)["rx_bad_frame"] == 4


def test_a_step_handles_256_events_and_wants_to_go_on() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="timeout")
    for number in range(300):
        arrive(nodes, 1000, number)
    assert nic.step_at(5000) == 256
    assert nic.due_ns is not None
    assert nic.due_ns <= 5000
    assert nic.step_at(5000) == 256
    assert nic.step_at(5000) == 600 - 512
    assert len(rx_times(nodes)) == 300


# -- the claim token ----------------------------------------------------------


def test_one_interrupt_is_outstanding_and_the_wish_is_kept() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="disabled")
    handler = Handler(nodes)
    arrive(nodes, 1000, 1)
    nic.step_at(1050)
    assert handler.see_interrupt()
    handler.poll()
    arrive(nodes, 2000, 2)
    arrive(nodes, 2001, 3)
    nic.step_at(2051)
    assert nodes.wish() == 1
    assert not nodes.take_interrupts()
    assert nodes.counters(0)["irq_held_back"] == 1
    assert nic.step_at(2060) == 0  # nothing changed
    handler.end()
    assert nic.step_at(2070) == 1
    assert nodes.wish() == 0
    handler.serve()
    assert handler.interrupts == 2
    assert [data for _, data in handler.frames] == [frame(1), frame(2), frame(3)]
    assert nodes.counters(0)["irq_wished"] == nodes.counters(0)["irq_raised"] == 2


def test_a_wish_ends_when_the_handler_takes_its_packets_by_itself() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="open-mx")
    handler = Handler(nodes)
    arrive(nodes, 1000, 1)
    nic.step_at(1050)
    handler.see_interrupt()
    arrive(nodes, 2000, 2)
    nic.step_at(2050)
    assert nodes.wish() == 1
    assert handler.poll() == 2
    assert nic.step_at(2060) == 1
    assert nodes.wish() == 0
    handler.end()
    nic.step_at(2070)
    assert not nodes.take_interrupts()
    counters = nodes.counters(0)
    assert (counters["irq_wished"], counters["irq_raised"], counters["irq_absorbed"]) == (2, 1, 1)
    assert nic.due_ns is None


def test_a_packet_behind_an_absorbed_wish_keeps_its_timer() -> None:
    """An unmarked packet becomes visible just after the handler looked for the last time."""
    nodes = Nodes()
    nic = make_firmware(nodes, coalescing="open-mx")
    handler = Handler(nodes)
    arrive(nodes, 1000, 1)
    nic.step_at(1050)
    handler.see_interrupt()
    arrive(nodes, 2000, 2)
    arrive(nodes, 2010, 3, marked=False)
    nic.step_at(2060)
    assert nodes.wish() == 1
    assert handler.poll(2) == 2
    handler.end()
    nic.step_at(2070)
    assert nodes.wish() == 0
    assert nodes.counters(0)["irq_absorbed"] == 1
    assert nic.due_ns == 2050 + DELAY_NS
    nic.step_at(2050 + DELAY_NS)
    handler.serve()
    assert handler.frames[-1][1] == frame(3, marked=False)
    assert handler.interrupts == 2


def test_the_literal_timer_raises_with_nothing_to_report() -> None:
    for literal in (False, True):
        nodes = Nodes()
        nic = make_firmware(nodes, coalescing="open-mx", mark_resets_timer=not literal)
        handler = Handler(nodes)
        arrive(nodes, 1000)
        run([nic], 1000, 10**6, [handler])
        assert handler.interrupts == (2 if literal else 1)
        assert nodes.counters(0).get("irq_raised_timeout", 0) == literal


def test_interrupts_go_round_the_cores() -> None:
    nodes = Nodes(cores=3)
    nic = make_firmware(nodes, coalescing="disabled")
    cores = []
    for i in range(5):
        arrive(nodes, 1000 * i, i)
        nic.step_at(1000 * i + 50)
        cores += nodes.take_interrupts()
        nodes.token().value = 1
    assert cores == [0, 1, 2, 0, 1]
    assert nodes[0].interrupt_counts() == [[2], [2], [1]]


def test_interrupts_go_to_the_bound_core() -> None:
    nodes = Nodes(cores=3, irq_binding="2")
    nic = make_firmware(nodes, coalescing="disabled")
    for i in range(3):
        arrive(nodes, 1000 * i, i)
        nic.step_at(1000 * i + 50)
        assert nodes.take_interrupts() == [2]
        nodes.token().value = 1
    assert nodes[0].interrupt_counts() == [[0], [0], [3]]


# -- down: tx rings and link ----------------------------------------------------


def test_from_a_tx_ring_to_the_other_nodes_memory() -> None:
    """192 bytes on a 10 Gb/s line: 153.6 ns; delay 500; DMA 168 bytes at 2 GB/s: 84 + 500."""
    nodes = Nodes()
    changes = {
        "link_bits_per_second": 10**10,
        "link_delay_ns": 500,
        "dma_latency_ns": 500,
        "dma_bytes_per_second": 2 * 10**9,
        "coalescing": "open-mx",
    }
    nics = [make_firmware(nodes, i, **changes) for i in range(2)]
    handler = Handler(nodes, 0)
    put_frame(nodes[1], "endpoint_tx", 0, small_frame(128), 900)
    run(nics, 1000, 10**6, [handler])
    assert handler.frames == [(1000 + 153 + 500 + 84 + 500, small_frame(128))]
    assert_counts(nodes.counters(1), {"tx_packets": 1, "tx_bytes": 168})
    assert_counts(
        nodes.counters(0),
        {
            "rx_packets": 1,
            "rx_bytes": 168,
            "rx_marked": 1,
            "irq_wished": 1,
            "irq_raised": 1,
            "irq_raised_marked": 1,
        },
    )


def test_the_nics_processor_takes_its_time_for_one_packet_after_the_other() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, 0, firmware_ns=300, dma_latency_ns=500, coalescing="open-mx")
    handler = Handler(nodes, 0)
    for number, arrival_ns in enumerate((1000, 1000, 2000)):
        arrive(nodes, arrival_ns, number)
    run([nic], 1000, 10**6, [handler])
    assert [time_ns for time_ns, _ in handler.frames] == [1800, 2100, 2800]


def test_tx_rings_have_turns_of_32_frames() -> None:
    nodes = Nodes(endpoints=2)
    nic = make_firmware(nodes, 1)
    for number in range(40):
        put_frame(nodes[1], "core_tx", 0, frame(number))
        put_frame(nodes[1], "endpoint_tx", 1, frame(100 + number))
    assert nic.step_at(1000) == 64
    assert nic.due_ns == 1000  # there is more to send
    assert nic.step_at(1001) == 16
    assert nic.due_ns is None
    sent = [data[40] for _, data in take_frames(nodes[0], "link", 1)]
    # In the second step another ring is first.
    assert sent == [*range(32), *range(100, 132), *range(132, 140), *range(32, 40)]


def test_bad_frames_and_unknown_destinations_are_dropped_and_counted() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, 1)
    for length in (0, 15, 1501, 65535):
        put_frame(nodes[1], "core_tx", 0, frame(), 0, length)
    foreign = b"\x00\x11\x22\x33\x00\x00" + frame()[6:]
    for unknown in (frame(destination=2), frame(destination=65535), foreign, b"\xff" * 60):
        put_frame(nodes[1], "core_tx", 0, unknown)
    put_frame(nodes[1], "core_tx", 0, frame(7))
    nic.step_at(0)
    assert [data for _, data in take_frames(nodes[0], "link", 1)] == [frame(7)]
    counters = nodes.counters(1)
    assert_counts(counters, {"tx_packets": 1, "tx_bytes": 60, "tx_bad_frame": 4, "tx_no_route": 4})


def test_short_frames_are_padded_with_zeros() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, 1)
    put_frame(nodes[1], "core_tx", 0, frame(1)[:14] + b"\x01" * 46, 0, 16)
    nic.step_at(0)
    assert take_frames(nodes[0], "link", 1)[0][1] == frame(1)[:14] + b"\x01\x01" + bytes(44)


def test_a_node_reaches_itself_through_the_link() -> None:
    nodes = Nodes()
    nic = make_firmware(nodes, 0, coalescing="open-mx")
    handler = Handler(nodes)
    put_frame(nodes[0], "endpoint_tx", 0, frame(5, destination=0, source=0))
    run([nic], 1000, 10**6, [handler])
    assert handler.frames == [(1150, frame(5, destination=0, source=0))]


def test_a_full_link_ring_holds_frames_back_in_order() -> None:
    nodes = Nodes(link_ring_entries=16)
    nic = make_firmware(nodes, 1)
    for number in range(30):
        put_frame(nodes[1], "core_tx", 0, frame(number))
    assert nic.step_at(1000) == 16
    assert nic.due_ns == 6000
    assert nic.step_at(6000) == 0
    first = take_frames(nodes[0], "link", 1)
    assert nic.step_at(6000) == 14
    assert nic.due_ns is None
    sent = [data for _, data in first + take_frames(nodes[0], "link", 1)]
    assert sent == [frame(number) for number in range(30)]
    assert nodes.counters(1)["tx_packets"] == 30


def test_a_full_link_ring_is_not_looked_at_before_a_frame_can_have_arrived() -> None:
    nodes = Nodes(link_ring_entries=16)
    nic = make_firmware(nodes, 1, link_delay_ns=2_000_000)
    for number in range(17):
        put_frame(nodes[1], "core_tx", 0, frame(number))
    assert nic.step_at(1000) == 16
    assert nic.due_ns == 2_001_000


def test_held_frames_are_due_to_the_nanosecond() -> None:
    nodes = Nodes()
    faults = LinkFaults(reorder=1.0)
    nic = Firmware(nodes[1], *ring_links(nodes.nodes, 1, PLAIN, faults), PLAIN)
    put_frame(nodes[1], "core_tx", 0, frame())
    nic.step_at(1000)
    assert nic.due_ns == 101_000
    nic.step_at(101_000)
    assert take_frames(nodes[0], "link", 1) == [(101_100, frame())]
    assert nodes.counters(1)["link_reordered"] == 1


def test_there_is_no_such_node() -> None:
    with pytest.raises(InputError, match="no node 2; nodes go from 0 to 1"):
        make_firmware(Nodes(), 2)


def test_jumbo_frames_pass() -> None:
    nodes = Nodes(mtu=9000, link_ring_entries=16, rx_ring_entries=16, tx_ring_entries=16)
    nics = [make_firmware(nodes, i, mtu=9000, coalescing="open-mx") for i in range(2)]
    handler = Handler(nodes)
    jumbo = frame().ljust(9000, b"j")
    put_frame(nodes[1], "core_tx", 0, jumbo)
    run(nics, 1000, 10**6, [handler])
    assert handler.frames == [(1150, jumbo)]
