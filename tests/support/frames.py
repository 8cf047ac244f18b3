"""Long traces for pages, and what a frame of their timeline takes."""

from __future__ import annotations

from pathlib import Path

from shrimpmx.cli import main
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.kept_trace import keep_trace
from shrimpmx.show.timeline import Seat, Timeline
from support.results import a_document, a_metric, a_point, write_result

AGENTS = ("rank0", "node0.nic", "node1.nic", "node1.irq0", "rank1")
SEATS = {"rank0": Seat(0, 0, 0), "rank1": Seat(1, 0, 3)}
MESSAGE_NS = 5000
MESSAGE_RECORDS = 14


def a_message(number: int) -> list[TraceRecord]:
    """The records of a message, which takes MESSAGE_NS."""
    at, seqnum = number * MESSAGE_NS, number & 0x3FFF
    word, ends = 37 | seqnum << 16 | 1 << 48, 3 << 48
    rank0, nic0, nic1, irq1, rank1 = range(5)
    records = [
        TraceRecord(at, rank1, "wait_begin", 3, 0),
        TraceRecord(at + 100, rank1, "sleep_begin", 0, 0),
        TraceRecord(at + 200, rank0, "isend", 1 << 32 | 3 << 16 | seqnum, 20),
        TraceRecord(at + 400, nic0, "tx_frame", word, ends | 60),
        TraceRecord(at + 1400, nic1, "rx_frame", word, ends | 60),
        TraceRecord(at + 1700, nic1, "irq_timer", 0, 900),
        TraceRecord(at + 1700, nic1, "dma_complete", word, ends | 60),
        TraceRecord(at + 2600, nic1, "irq_raised", 0, 4),
        TraceRecord(at + 2700, irq1, "interrupt", 1, 0),
        TraceRecord(at + 3000, irq1, "poll_begin", 0, 64),
        TraceRecord(at + 3300, irq1, "event", word, ends | 3),
        TraceRecord(at + 3500, irq1, "poll_end", 0, 1),
        TraceRecord(at + 4000, rank1, "sleep_end", 0, 0),
        TraceRecord(at + 4500, rank1, "received", seqnum, 20),
    ]
    assert len(records) == MESSAGE_RECORDS
    return records


def long_page(directory: Path, messages: int) -> Path:
    """The page of a result whose trace has so many messages, one after another."""
    write_result(directory, a_document("long", [a_point({}, {"half_round_trip": a_metric(5)})]))
    records = [record for number in range(messages) for record in a_message(number)]
    timeline = Timeline(records, AGENTS, seats=SEATS)
    keep_trace(timeline, directory / "traces" / "point0000-seed0.npz")
    assert main(["report", str(directory)]) == 0
    return directory / "report.html"
