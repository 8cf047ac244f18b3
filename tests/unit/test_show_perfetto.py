"""A timeline as a Perfetto trace, of records made by hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from support.perfetto import check_slices, events, flows, instants, trace_of, tracks

from shrimpmx.cluster.engine.mpi_calls import MpiCall
from shrimpmx.cluster.engine.switches import Switches
from shrimpmx.cluster.engine.trace_text import words
from shrimpmx.native.perf import IDLE, UNKNOWN
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.perfetto import write_perfetto
from shrimpmx.show.timeline import Seat, Timeline

AGENTS = ["rank0", "node0.nic", "node1.nic", "node1.irq0", "rank1"]
RANK0, NIC0, NIC1, IRQ1, RANK1 = range(5)
SEATS = {"rank0": Seat(0, 0, 0), "rank1": Seat(1, 2, 3)}
PACKET = 34 | 7 << 16 | 1 << 48


def message(at: int) -> list[TraceRecord]:
    """A message of one packet from rank 0 to endpoint 3 of node 1."""
    return [
        TraceRecord(at, RANK0, "isend", 1 << 32 | 3 << 16 | 7, 100),
        TraceRecord(at + 10, NIC0, "tx_frame", PACKET, 140),
        TraceRecord(at + 20, NIC1, "rx_frame", PACKET, 140),
        TraceRecord(at + 30, NIC1, "dma_complete", PACKET, 140),
        TraceRecord(at + 30, NIC1, "irq_raised", 0, 0),
        TraceRecord(at + 40, IRQ1, "interrupt", 1, 0),
        TraceRecord(at + 40, IRQ1, "poll_begin", 0, 64),
        TraceRecord(at + 40, IRQ1, "event", PACKET, 3),
        TraceRecord(at + 40, IRQ1, "poll_end", 0, 1),
        TraceRecord(at + 50, RANK1, "received", 0 << 32 | 0 << 16 | 7, 100),
    ]


def written(tmp_path: Path, records: list[TraceRecord], **more: dict[int, int]) -> Path:
    path = tmp_path / "trace"
    write_perfetto(Timeline(records, AGENTS, seats=SEATS, **more), path)
    return path


def test_tracks_are_agents_by_node_and_core(tmp_path: Path) -> None:
    trace = trace_of(written(tmp_path, message(5_000)))
    assert set(tracks(trace).values()) == {
        *("node0", "node1", "node0/node0.nic", "node0/core 0: rank0", "node1/node1.nic"),
        *("node1/core 0: node1.irq0", "node1/core 2: rank1"),
        "node1/node1: frames in host memory",
    }
    assert events(trace)[0].timestamp == 0
    assert events(trace)[-1].timestamp == 50


def test_flows_join_what_happens_to_a_packet_and_to_a_message(tmp_path: Path) -> None:
    found = flows(trace_of(written(tmp_path, message(0) + message(100))))
    packet = ["tx_frame", "rx_frame", "dma_complete", "event"]
    assert sorted(found.values()) == sorted([packet, packet] + 2 * [["isend", "received"]])


def test_a_poll_is_a_slice_and_an_interrupt_an_instant(tmp_path: Path) -> None:
    trace = trace_of(written(tmp_path, message(0)))
    assert check_slices(trace) == 1
    assert instants(trace, "interrupt") == {"node1/core 0: node1.irq0": 1}
    assert instants(trace, "irq_raised") == {"node1/node1.nic": 1}


def test_the_end_of_a_poll_whose_begin_is_overwritten_ends_nothing(tmp_path: Path) -> None:
    trace = trace_of(written(tmp_path, message(0)[7:], overwritten={IRQ1: 7}))
    assert check_slices(trace) == 0
    name = "node1/core 0: node1.irq0 (the first 7 records are overwritten)"
    assert instants(trace, "poll_end") == {name: 1}
    assert flows(trace) == {}


def test_the_counter_is_what_no_poll_has_taken(tmp_path: Path) -> None:
    # Of a first frame the trace has only the poll that took it.
    trace = trace_of(written(tmp_path, [message(0)[8], *message(100)]))
    counted = [
        packet.track_event.counter_value
        for packet in events(trace)
        if packet.track_event.type == TrackEvent.TYPE_COUNTER
    ]
    assert counted == [0, 1, 0]


def test_a_counter_is_of_one_of_several_queues(tmp_path: Path) -> None:
    first, second = PACKET, PACKET + (1 << 16)
    records = [
        TraceRecord(0, NIC1, "dma_complete", first, 140),
        TraceRecord(1, NIC1, "dma_complete", second, 2 << 32 | 140),
        TraceRecord(2, NIC1, "dma_complete", second, 2 << 32 | 140),
        TraceRecord(3, IRQ1, "poll_end", 2, 2),
        TraceRecord(4, IRQ1, "poll_end", 0, 1),
    ]
    trace = trace_of(written(tmp_path, records))
    names, counted = tracks(trace), defaultdict(list)
    for packet in events(trace):
        if packet.track_event.type == TrackEvent.TYPE_COUNTER:
            name = names[packet.track_event.track_uuid].split(", ")[1]
            counted[name].append((packet.timestamp, packet.track_event.counter_value))
    assert counted == {"queue 0": [(0, 1), (4, 0)], "queue 2": [(1, 1), (2, 2), (3, 0)]}
    assert words(records[1]).endswith("140 bytes, queue 2")


def test_a_cpu_has_a_slice_for_each_time_that_a_process_had_it(tmp_path: Path) -> None:
    names = {IDLE: "idle", 7: "rank0", 8: "another program (pid 8)", UNKNOWN: "not recorded"}
    begins = {
        1: [(90, 7), (110, 8), (120, IDLE), (130, 7), (600, UNKNOWN)],
        0: [(115, 7)],
        2: [],
    }
    path = tmp_path / "trace"
    switches = Switches(begins, names, {"rank0": "rank0"})
    write_perfetto(Timeline(message(100), AGENTS, seats=SEATS, switches=switches), path)
    trace = trace_of(path)
    check_slices(trace)
    found = tracks(trace)
    assert {"CPUs/CPU 0", "CPUs/CPU 1"} == {each for each in found.values() if "CPUs/" in each}
    told = [
        (found[packet.track_event.track_uuid][5:], packet.timestamp, packet.track_event.name)
        for packet in events(trace)
        if found[packet.track_event.track_uuid].startswith("CPUs/")
    ]
    assert [each[1:] for each in told if each[0] == "CPU 1"] == [
        *((0, "rank0"), (10, ""), (10, "another program (pid 8)"), (20, "")),
        *((30, "rank0"), (50, "")),
    ]
    assert [each[1:] for each in told if each[0] == "CPU 0"] == [
        *((0, "not recorded"), (15, ""), (15, "rank0"), (50, "")),
    ]


def test_calls_of_mpi_are_slices_below_their_rank(tmp_path: Path) -> None:
    calls = [
        MpiCall("rank1", 90, 130, "MPI_Recv", "a.py:3, <module>"),
        MpiCall("rank1", 110, 120, "MPI_Test", ""),  # as of another thread
        MpiCall("rank1", 130, 900, "MPI_Wait", "a.py:4, <module>"),
        MpiCall("rank1", 901, 902, "MPI_Finalize", ""),
    ]
    path = tmp_path / "trace"
    write_perfetto(Timeline(message(100), AGENTS, seats=SEATS, calls=calls), path)
    trace = trace_of(path)
    assert check_slices(trace) == 4  # with the poll
    found = tracks(trace)
    told = [
        (
            found[packet.track_event.track_uuid],
            packet.timestamp,
            packet.track_event.name,
            [note.string_value for note in packet.track_event.debug_annotations],
        )
        for packet in events(trace)
        if "MPI" in found[packet.track_event.track_uuid]
    ]
    below, within = "core 2: rank1/MPI calls", "core 2: rank1/MPI calls within others, 1"
    assert told == [
        (below, 0, "MPI_Recv", ["a.py:3, <module>"]),
        (within, 10, "MPI_Test", []),
        (within, 20, "", []),
        (below, 30, "", []),
        (below, 30, "MPI_Wait", ["a.py:4, <module>"]),
        (below, 50, "", []),
    ]


def test_a_trace_without_records_is_an_empty_one(tmp_path: Path) -> None:
    assert not events(trace_of(written(tmp_path, [])))
