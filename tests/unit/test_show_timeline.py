"""The timeline of one message from records made by hand, as text."""

from __future__ import annotations

import pytest

from shrimpmx.errors import InputError
from shrimpmx.native.trace import TraceRecord
from shrimpmx.nic.strategies import CAUSE_NAMES
from shrimpmx.show.timeline import Timeline, message_timeline
from shrimpmx.wire.tables import wire_geometry

AGENTS = ["rank0", "node0.nic", "node0.irq0", "node1.nic", "node1.irq0", "rank1"]
RANK0, NIC0, IRQ0, NIC1, IRQ1, RANK1 = range(6)
RNDV, PULL_REQUEST, PULL_REPLY, NOTIFY, MARK = 40, 41, 42, 43, 0x80
MARKED, TIMEOUT = CAUSE_NAMES.index("marked"), CAUSE_NAMES.index("timeout")
FRAME = 1500
REPLIES = 33


def word(ptype: int, source: int, fragment: int = 0, seqnum: int = 0) -> int:
    return ptype | fragment << 8 | seqnum << 16 | source << 32 | (1 - source) << 48


def flown(time_ns: int, packet: int, size_bytes: int) -> list[TraceRecord]:
    """A packet sent, arrived a microsecond later, and in memory half a microsecond after."""
    source, destination = (NIC0, NIC1) if packet >> 32 & 0xFFFF == 0 else (NIC1, NIC0)
    return [
        TraceRecord(time_ns, source, "tx_frame", packet, size_bytes),
        TraceRecord(time_ns + 1000, destination, "rx_frame", packet, size_bytes),
        TraceRecord(time_ns + 1500, destination, "dma_complete", packet, size_bytes),
    ]


def polled(time_ns: int, nic: int, why: int, count: int) -> list[TraceRecord]:
    """An interrupt and the poll that it leads to."""
    return [
        TraceRecord(time_ns, nic, "irq_wished", 0, why),
        TraceRecord(time_ns, nic, "irq_raised", 0, why),
        TraceRecord(time_ns + 3000, nic + 1, "interrupt", 1, 0),
        TraceRecord(time_ns + 3000, nic + 1, "poll_begin", 0, 64),
        TraceRecord(time_ns + 3500, nic + 1, "poll_end", 0, count),
    ]


def large_message(start_ns: int = 1_000_000) -> list[TraceRecord]:
    """33 frames in two blocks, the second request with the first."""
    at = start_ns
    records = [TraceRecord(at, RANK0, "isend", 1 << 32 | 7, REPLIES * 1468)]
    records += flown(at + 2_000, word(RNDV | MARK, 0, seqnum=7), 64)
    records += polled(at + 3_500, NIC1, MARKED, 1)
    records += [
        TraceRecord(at + 8_000, RANK1, "rndv_matched", 7, REPLIES * 1468),
        TraceRecord(at + 8_100, RANK1, "pull_start", 0, REPLIES * 1468),
    ]
    for block in range(2):
        records += flown(at + 8_500, word(PULL_REQUEST | MARK, 1, seqnum=32 * block), 60)
    records += polled(at + 10_000, NIC0, MARKED, 2)
    for frame in range(REPLIES):
        ptype = PULL_REPLY | (MARK if frame in (31, 32) else 0)
        records += flown(at + 14_000, word(ptype, 0, fragment=frame), FRAME)
    records += polled(at + 50_000, NIC1, MARKED, REPLIES)
    records.append(TraceRecord(at + 55_000, RANK1, "pull_done", 0, REPLIES * 1468))
    records += flown(at + 56_000, word(NOTIFY | MARK, 1, seqnum=3), 60)
    return records


def timeline() -> Timeline:
    return message_timeline(large_message(), AGENTS)


def test_each_packet_is_one_line_that_says_what_it_carries() -> None:
    lines = timeline().text(full=True).splitlines()
    packets = [line for line in lines if "in memory at" in line]
    assert len(packets) == 1 + 2 + REPLIES + 1
    assert packets[0].split() == (
        ["2.0", "node0.nic", "rndv", "7,", "marked,", "to", "node1:", "in", "memory", "at", "3.5"]
    )
    assert "pull request, block 1 (from frame 32 on), marked, to node0" in packets[2]
    assert "pull reply 17 (block 0, bytes 24956..26423), to node1" in packets[3 + 17]
    assert "pull reply 32 (block 1, bytes 46976..48443), marked" in packets[3 + 32]
    assert "notify 3, marked, to node0" in packets[-1]


def test_interrupts_are_told_with_their_cause_and_what_they_found() -> None:
    text = timeline().text(full=True)
    assert text.count("INTERRUPT, cause marked") == 3
    assert "poll ends, vector 0: 33 packets" in text
    assert "rendezvous matched: message 7" in text
    assert "pull done, all there: 48444 bytes" in text


def test_runs_of_like_packets_are_folded_and_times_never_go_back() -> None:
    lines = timeline().text().splitlines()
    # 31 frames without a mark are three lines, the two marked ones after them two more.
    assert sum("pull reply" in line for line in lines) == 4
    assert any("... 29 more like it" in line for line in lines)
    times = [float(line.split()[0]) for line in lines]
    assert times[0] == 0
    assert times == sorted(times)


def test_a_long_text_ends_with_how_much_is_left() -> None:
    whole = timeline().text().splitlines()
    some = timeline().text(most=5).splitlines()
    assert some[:5] == whole[:5]
    assert f"{len(whole) - 5} more lines" in some[5]
    assert len(some) == 6


def test_a_packet_that_was_lost_is_told() -> None:
    records = [
        record for record in large_message() if record.kind not in ("rx_frame", "dma_complete")
    ]
    text = message_timeline(records, AGENTS).text(full=True)
    assert text.count("did not arrive") == 1 + 2 + REPLIES + 1


def test_only_the_last_message_is_shown() -> None:
    records = large_message(1_000_000) + large_message(5_000_000)
    shown = message_timeline(records, AGENTS)
    assert shown.start_ns == 5_000_000
    assert len(shown.flights()) == 1 + 2 + REPLIES + 1


def test_a_trace_without_a_message_is_refused() -> None:
    records = [record for record in large_message() if record.kind != "isend"]
    with pytest.raises(InputError, match="holds no message that rank0 sent"):
        message_timeline(records, AGENTS)


def test_frames_are_numbered_by_the_geometry() -> None:
    shown = message_timeline(large_message(), AGENTS, wire_geometry(9000, "compatible"))
    assert "pull request, block 4 (from frame 32 on)" in shown.text(full=True)


def test_an_agent_that_nobody_named_has_a_number() -> None:
    records = [*large_message(), TraceRecord(2_000_000, 9, "note", 1, 2)]
    assert "agent9" in message_timeline(records, AGENTS).text(full=True)
