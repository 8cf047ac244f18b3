"""Points whose receivers dropped packets are named below the tables."""

from __future__ import annotations

from support.results import a_document, a_point

from shrimpmx.show.notes import overrun_notes, resend_notes
from shrimpmx.show.report import notes


def test_points_whose_rings_were_full_are_named() -> None:
    points = [a_point({"size_bytes": size}, {"message_rate": 1.0}) for size in (0, 32768)]
    document = a_document("x", points, "size_bytes")
    assert overrun_notes(document) == []
    points[1]["counters"] = {
        "node0.irq0": {"unexp_eventq_full": 3},
        "node1.irq0": {"unexp_eventq_full": 4},
    }
    [note] = overrun_notes(document)
    assert "7 packets" in note
    assert "event_ring_entries" in note
    assert "32 KiB" in note
    assert note in notes(document)
    points[0]["counters"] = {"node1.nic": {"rx_drop_ring_full": 5}}
    first, second = overrun_notes(document)
    assert "5 packets" in first
    assert second == note


def test_resends_without_a_loss_are_told_with_their_points() -> None:
    points = [a_point({"size_bytes": size}, {"message_rate": 1.0}) for size in (0, 32768)]
    document = a_document("x", points, "size_bytes")
    assert resend_notes(document) == []
    for point in points:
        point["counters"] = {"rank0": {"resent_messages": 3}}
    points[0]["counters"]["node0.nic"] = {"link_lost": 1}
    [note] = resend_notes(document)
    assert "3 messages" in note
    assert "32 KiB" in note
    assert note in notes(document)
