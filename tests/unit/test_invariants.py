"""The protocol's invariants, each with the tests that hold it; what no other file tests is here.

1. Every header has Open-MX's size; every frame has at least 60 bytes.
2. The packet counts of each message size, and marks on exactly the latency-sensitive packets.
3. An event's id differs from that of the event one lap later, across the wrap at 2^32 too.
4. No wake-up is lost, and a race between looking and sleeping is never told as an interrupt.
5. Every message arrives once and in matching order under every fault of every packet type.
6. A full unexpected ring loses packets, counts them, and the messages come with the resend.
7. All packets of an endpoint are in one queue, whatever their type, and stay in their order.
8. One interrupt of a vector is outstanding at most; under a stream there are fewer than packets.
9. Algorithm 2 never leaves a deferred mark without an interrupt or the timer.
10. A peer that restarts in mid-traffic gets nothing of the old session, and begins afresh.
12. A spin limit of T_block never costs more than twice the optimum, whatever the delays.
"""

from __future__ import annotations

import re

import pytest
from support.packets import FRAME_MIN_BYTES
from support.tree import ROOT
from support.virtual_cluster import NicCluster, frame_type, pattern

from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import COALESCING_NAMES
from shrimpmx.shared.frames import take_frames

# By number: file and test.
HELD_BY: dict[int, tuple[tuple[str, str], ...]] = {
    1: (
        ("unit/test_wire_packets.py", "test_the_headers_of_wire_h_have_these_sizes"),
        ("unit/test_wire_packets.py", "test_every_header_has_open_mxs_size"),
        ("unit/test_nic_firmware.py", "test_short_frames_are_padded_with_zeros"),
    ),
    2: (
        ("unit/test_mx_large.py", "test_packets_and_marks"),
        ("unit/test_mx_over_nic.py", "test_packets_and_marks_reach_the_far_nic"),
        ("unit/test_wire_tables.py", "test_golden_packet_counts_of_large_messages"),
    ),
    3: (
        ("unit/test_host_event_ring.py", "test_a_slot_never_carries_one_id_in_two_laps_running"),
        ("unit/test_host_event_ring.py", "test_ids_are_one_plus_the_index_modulo_255"),
    ),
    4: (
        ("unit/test_wait_lost_wakeups.py", "test_no_wake_up_is_lost"),
        ("unit/test_mx_waiting.py", "test_a_wakeup_ends_every_kind_of_wait"),
    ),
    5: (
        ("faults/test_fault_matrix.py", "test_every_message_arrives_once_intact_and_in_order"),
        ("unit/test_mx_reliability.py", "test_every_fault_on_every_type_is_survived"),
        ("unit/test_mx_large_faults.py", "test_exactly_once_and_in_order"),
    ),
    6: (
        ("unit/test_mx_reliability.py", "test_a_full_event_ring_is_repaired_by_resends"),
        ("faults/test_full_rings.py", "test_unexpected_events_and_recvq"),
    ),
    7: (
        ("unit/test_nic_steering.py", "test_all_packets_of_an_endpoint_go_to_one_queue"),
        ("unit/test_host_rps.py", "test_an_endpoints_order_is_kept_and_no_frame_is_lost"),
    ),
    8: (
        ("unit/test_nic_firmware.py", "test_one_interrupt_is_outstanding_and_the_wish_is_kept"),
        (
            "unit/test_nic_interrupts.py",
            "test_under_a_stream_there_are_strictly_fewer_interrupts_than_packets",
        ),
    ),
    9: (
        ("unit/test_nic_interrupts.py", "test_any_interleaving_reports_every_packet"),
        ("unit/test_nic_coalescing.py", "test_algorithm_2_defers_to_the_end_of_the_stream"),
    ),
    10: (
        ("unit/test_mx_edges.py", "test_a_restart_in_mid_traffic"),
        ("unit/test_mx_partners.py", "test_a_restarted_partner_gets_nothing_of_the_old_session"),
        ("unit/test_mx_large_faults.py", "test_a_restarted_sender_ends_the_receive"),
    ),
    12: (
        (
            "unit/test_measure_competitive.py",
            "test_a_limit_of_t_block_never_costs_more_than_twice_the_optimum",
        ),
        ("unit/test_wait_adaptive.py", "test_it_spins_for_t_block_until_it_knows_enough"),
    ),
}


@pytest.mark.parametrize("number", sorted(HELD_BY))
def test_each_invariant_is_held_by_tests_that_exist(number: int) -> None:
    assert re.search(rf"^{number}\. ", __doc__ or "", re.M)
    for file, test in HELD_BY[number]:
        text = (ROOT / "tests" / file).read_text()
        assert f"def {test}(" in text, f"{file} has no {test}"


def test_every_frame_that_arrives_has_at_least_60_bytes() -> None:
    cluster = NicCluster(NicParameters(coalescing="timeout", rx_usecs=1_000_000))
    one, other = cluster.open(0), cluster.open(1)
    connect = one.iconnect(1, 0)
    lengths: dict[str, int] = {}
    moved = True
    status = None
    while moved or status is None or status.source is None:
        moved = cluster.step()
        for _, arrived in take_frames(cluster.nodes[1], "rx", 0):
            lengths[frame_type(arrived)] = len(arrived)
            cluster.handlers[1].handle_frame(arrived)
        status = status or one.test(connect)
        if not moved and status is None:
            cluster.control.set_virtual_ns(cluster.now_ns + 1000)
    other.irecv(bytearray(40_000), 5)
    for size in (0, 33, 130, 40_000):
        one.isend(pattern(size), status.source, 5)
    for _ in range(300):
        cluster.step()
        cluster.control.set_virtual_ns(cluster.now_ns + 1000)
        for _, arrived in take_frames(cluster.nodes[1], "rx", 0):
            lengths[frame_type(arrived)] = min(len(arrived), lengths.get(frame_type(arrived), 9000))
            cluster.handlers[1].handle_frame(arrived)
    assert {"connect", "tiny", "small", "medium_frag", "rndv"} <= set(lengths)
    assert min(lengths.values()) == FRAME_MIN_BYTES


# Under these a packet that comes after a pause raises at once.
AT_ONCE = ("disabled", "adaptive", "marks-adaptive", "napi-defer", "irq-suspend")


@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
def test_interrupts_never_outnumber_packets(coalescing: str) -> None:
    cluster = NicCluster(NicParameters(coalescing=coalescing))
    one, other, partner = cluster.pair()
    receives = [other.irecv(bytearray(300_000), 1) for _ in range(20)]
    for number in range(20):
        one.isend(pattern(30_000 * (number % 3), number), partner, 1)
    for receive in receives:
        assert cluster.wait(other, receive).code == "success"
    for node in (0, 1):
        counters = cluster.nic_counters(node)
        assert counters["irq_raised"] <= counters["rx_packets"]
        if coalescing not in AT_ONCE:
            assert counters["irq_raised"] < counters["rx_packets"]
        # What was deferred has been reported by the time all is quiet.
        cluster.settle()
        assert cluster.nodes[node].ring_depths()["rx", 0] == 0
