"""`shrimpmx trace`: the slowest messages, and one sentence per mistake."""

from __future__ import annotations

import io
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from support.cli import assert_refused
from support.results import a_document, write_result

from shrimpmx.cli import main
from shrimpmx.native.trace import TraceRecord
from shrimpmx.page.where import where_in
from shrimpmx.show import kept_trace
from shrimpmx.show.kept_trace import keep_trace, load_trace
from shrimpmx.show.slow_messages import Stages, messages_of
from shrimpmx.show.timeline import Seat, Timeline

AGENTS = ["rank0", "node0.nic", "node1.nic", "node1.irq0", "rank1", "node0.irq0"]
RANK0, NIC0, NIC1, IRQ1, RANK1, IRQ0 = range(6)
SEATS = {"rank0": Seat(0, 0, 0), "rank1": Seat(1, 2, 3)}
STAGES = (
    *("sent", "on the line", "arrived", "DMA complete", "interrupt raised"),
    *("interrupt delivered", "handled", "rank awake", "received"),
)


# What records of packets from endpoint 0 to endpoint 3 have beside their bytes, and the other way.
THERE, BACK = 3 << 48, 3 << 56


def message(at: int, number: int, took: int) -> list[TraceRecord]:
    """A message of two packets from rank 0 to endpoint 3 of node 1."""
    first, last = (39 | each << 8 | number << 16 | 1 << 48 for each in range(2))
    acknowledgement = 35 | number << 16 | 1 << 48
    return [
        TraceRecord(at, RANK0, "isend", 1 << 32 | 3 << 16 | number, 2000),
        TraceRecord(at + 1, NIC0, "tx_frame", first, THERE | 1500),
        TraceRecord(at + 2, NIC0, "tx_frame", last, THERE | 600),
        TraceRecord(at + 3, NIC0, "tx_frame", acknowledgement, THERE | 60),
        TraceRecord(at + 4, NIC1, "rx_frame", first, THERE | 1500),
        TraceRecord(at + 5, NIC1, "rx_frame", last, THERE | 600),
        TraceRecord(at + 6, NIC1, "dma_complete", first, THERE | 1500),
        TraceRecord(at + 7, NIC1, "dma_complete", last, THERE | 600),
        TraceRecord(at + 8, NIC1, "irq_raised", 0, 0),
        TraceRecord(at + 9, IRQ1, "interrupt", 1, 0),
        TraceRecord(at + 10, IRQ1, "event", first, THERE | 3),
        TraceRecord(at + 11, IRQ1, "event", last, THERE | 3),
        TraceRecord(at + took - 1, RANK1, "wait_end", 2, 1),
        TraceRecord(at + took, RANK1, "received", number, 2000),
    ]


def large(at: int) -> list[TraceRecord]:
    """A message that rank 1 pulls in two packets."""
    rendezvous, request, first, last = (
        40 | 7 << 16 | 1 << 48,
        *(41 | 1 << 32,),
        *(42 | each << 8 | 1 << 48 for each in range(2)),
    )
    return [
        TraceRecord(at, RANK0, "isend", 1 << 32 | 3 << 16 | 7, 3000),
        TraceRecord(at + 1, NIC0, "tx_frame", rendezvous, THERE | 60),
        TraceRecord(at + 2, RANK1, "pull_start", 0, 3000),
        TraceRecord(at + 3, IRQ0, "event", request, BACK | 0),
        TraceRecord(at + 4, NIC0, "tx_frame", first, THERE | 1500),
        TraceRecord(at + 5, NIC0, "tx_frame", last, THERE | 1500),
        TraceRecord(at + 6, NIC1, "rx_frame", first, THERE | 1500),
        TraceRecord(at + 7, NIC1, "rx_frame", last, THERE | 1500),
        TraceRecord(at + 8, IRQ1, "pull_done", 0, 3000),
        TraceRecord(at + 9, RANK1, "received", 7, 3000),
    ]


def result(tmp_path: Path, records: list[TraceRecord], **more: Any) -> str:
    write_result(tmp_path, a_document("mine/x", []))
    timeline = Timeline(records, AGENTS, seats=SEATS, **more)
    keep_trace(timeline, tmp_path / "traces" / "point0000-seed1.npz")
    return str(tmp_path)


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    records = [*message(0, 1, 50), TraceRecord(60, RANK1, "note", 2**64 - 1, 0)]
    result(tmp_path, records, overwritten={NIC0: 3, IRQ1: 0}, dilation=24.0)
    found = load_trace(tmp_path / "traces" / "point0000-seed1.npz")
    assert (found.records, found.agents, found.seats) == (records, AGENTS, SEATS)
    assert (found.overwritten, found.dilation) == ({NIC0: 3, IRQ1: 0}, 24.0)


def test_the_stages_are_those_of_the_first_packet_sent_and_the_last_one_handled() -> None:
    timeline = Timeline(message(0, 1, 50) + message(100, 2, 90), AGENTS, seats=SEATS)
    for found, took in zip(messages_of(timeline), (50, 90), strict=True):
        told = Stages(timeline).of(found)
        assert [name for name, _ in told] == list(STAGES)
        times = [record.time_ns - found.sent.time_ns for _, record in told]
        assert times == [0, 1, 5, 7, 8, 9, 11, took - 1, took]


@pytest.mark.parametrize("sent_again", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("marked", [0, 0x80])
def test_a_copy_that_comes_after_its_packet_is_no_stage(
    sent_again: tuple[int, ...], marked: int
) -> None:
    # The rank takes its message late, so that the sender has sent packets of it again meanwhile.
    copies = [
        TraceRecord(record.time_ns + 500, record.agent, record.kind, record.a | marked, record.b)
        for record in message(0, 1, 900)
        if record.kind in ("tx_frame", "rx_frame", "dma_complete", "event")
        and record.a & 0x7F == 39
        and record.a >> 8 & 0xFF in sent_again
    ]
    timeline = Timeline(sorted([*message(0, 1, 900), *copies]), AGENTS, seats=SEATS)
    [found] = messages_of(timeline)
    told = Stages(timeline).of(found)
    assert [(name, record.time_ns) for name, record in told] == list(
        zip(STAGES, (0, 1, 5, 7, 8, 9, 11, 899, 900), strict=True)
    )


def test_of_a_packet_that_was_lost_the_copy_is_the_stage() -> None:
    lost = [
        record
        for record in message(0, 1, 900)
        if record.kind not in ("rx_frame", "dma_complete", "event") or record.a >> 8 & 0xFF == 0
    ]
    copies = [
        TraceRecord(record.time_ns + 500, *record[1:])
        for record in message(0, 1, 900)
        if record.kind in ("tx_frame", "rx_frame", "dma_complete", "event")
        and record.a >> 8 & 0xFF == 1
    ]
    timeline = Timeline(sorted([*lost, *copies]), AGENTS, seats=SEATS)
    [found] = messages_of(timeline)
    told = dict(Stages(timeline).of(found))
    times = [told[name].time_ns for name in ("arrived", "DMA complete", "handled")]
    assert times == [505, 507, 511]


def test_the_way_of_a_large_messages_data_is_told_where_it_is_the_only_one() -> None:
    # Node 0 has pulled something, too.
    other_way = sorted([*large(0), TraceRecord(8, IRQ0, "pull_done", 0, 9)])
    timeline = Timeline(other_way, AGENTS, seats=SEATS)
    [found] = messages_of(timeline)
    assert [(name, record.time_ns) for name, record in Stages(timeline).of(found)] == [
        *(("sent", 0), ("on the line", 1), ("pull starts", 2), ("request handled", 3)),
        *(("data on the line", 4), ("data arrived", 7), ("pull done", 8), ("received", 9)),
    ]
    [done] = [record for name, record in Stages(timeline).of(found) if name == "pull done"]
    assert done.agent == IRQ1
    another = sorted([*large(0), TraceRecord(5, IRQ1, "pull_start", 0, 9)])
    crowded = Timeline(another, AGENTS, seats=SEATS)
    assert "data arrived" not in [name for name, _ in Stages(crowded).of(messages_of(crowded)[0])]


def test_the_trace_says_what_it_lacks_and_whose_its_times_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = {NIC0: 30, RANK1: 4, IRQ1: 0}
    place = result(tmp_path, message(0, 1, 50), overwritten=lacking, dilation=24.0)
    assert main(["trace", f"{place}/run.json"]) == 0
    first, *_, overwritten = capsys.readouterr().out.splitlines()
    assert "24 times" in first
    assert "node0.nic, rank1, 30 at most" in overwritten


def test_results_of_a_directory_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        result(tmp_path / name, message(0, 1, 50))
    assert main(["trace", str(tmp_path)]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line.endswith("seed1.npz:")]
    assert len(set(heads)) == 2


def test_a_newer_result_or_trace_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(kept_trace, "SCHEMA", 2)
        place = result(tmp_path, message(0, 1, 50))
    assert main(["trace", place]) == 2
    assert_refused(capsys, "schema 2 newer version")
    result(tmp_path, message(0, 1, 50))
    write_result(tmp_path, a_document("mine/x", [], schema=9))
    assert main(["trace", place]) == 2
    assert_refused(capsys, "schema 9 newer version")


def test_the_slowest_message_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = message(0, 1, 5_000) + message(10_000, 2, 9_000) + message(20_000, 1, 7_000)
    # An end without a begin.
    place = result(tmp_path, message(-10_000, 9, 50)[4:] + records)
    assert main(["trace", place, "--slowest", "2"]) == 0
    out = capsys.readouterr().out
    heads = [line for line in out.splitlines() if line.startswith("rank0 to rank1")]
    assert [head.split(": ")[1] for head in heads] == ["9.000 us", "7.000 us"]
    assert all(stage in out for stage in STAGES)


def test_where_the_time_went_is_told_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = result(tmp_path, message(0, 1, 50) + message(100, 2, 90), dilation=24.0)
    assert main(["trace", place, "--where", "--json", str(tmp_path / "where.json")]) == 0
    told = capsys.readouterr().out
    assert "times are 24 times" in told
    assert "rank0 to rank1, 2000 B" in told
    assert "critical path" in told
    [run] = json.loads((tmp_path / "where.json").read_text())["runs"].values()
    assert [each["took_ns"] for each in run["messages"]] == [50, 90]
    assert sum(run["critical_path"]["parts"].values()) == run["took_ns"]


def test_the_page_of_a_traced_result_says_where_its_time_went(tmp_path: Path) -> None:
    result(tmp_path, message(0, 1, 50))
    [part], notes = where_in(tmp_path)
    assert (part.table.title, notes) == ("Where the time went, %", [])
    result(tmp_path, [])
    assert where_in(tmp_path) == ([], [])
    trace = tmp_path / "traces" / "point0000-seed1.npz"
    trace.write_bytes(b"no trace")
    assert where_in(tmp_path) == (
        [],
        [f"trace {trace} is damaged, or of another program; run with --trace once more"],
    )
    for seed in range(2, 8):
        keep_trace(Timeline([], AGENTS), trace.with_name(f"point0000-seed{seed}.npz"))
    assert "3 more traced runs" in where_in(tmp_path)[1][-1]


def test_a_trace_is_headed_by_what_tells_its_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if earlier points were not run."""
    points = [{"size_bytes": size, "wait": "block"} for size in (0, 32_768)]
    write_result(tmp_path, {**a_document("mine/x", []), "settings": {"points": points}})
    timeline = Timeline(message(0, 1, 50), AGENTS, seats=SEATS)
    keep_trace(timeline, tmp_path / "traces" / "point0001-seed1.npz")
    assert main(["trace", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("point0001-seed1, messages of 32 KiB:\n")


def test_what_the_trace_lacks_is_left_out() -> None:
    sent, *_, received = message(0, 1, 50)
    timeline = Timeline([sent, received], AGENTS, seats=SEATS)
    [found] = messages_of(timeline)
    assert [name for name, _ in Stages(timeline).of(found)] == ["sent", "received"]


def test_a_result_without_traces_or_records_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_result(tmp_path, a_document("mine/x", []))
    assert main(["trace", str(tmp_path)]) == 2
    assert_refused(capsys, "has no traces: --trace")
    reproduced = {**a_document("mine/x", []), "command": "shrimpmx reproduce IC-1"}
    write_result(tmp_path, reproduced)
    assert main(["trace", str(tmp_path)]) == 2
    assert_refused(capsys, "shrimpmx run mine/x --trace")
    assert main(["trace", result(tmp_path, [])]) == 2
    assert_refused(capsys, "hold no complete message")
    assert main(["trace", str(tmp_path), "--slowest", "0"]) == 2
    assert_refused(capsys, "--slowest 1 or more")
    assert main(["trace", str(tmp_path), "--json", str(tmp_path / "x.json")]) == 2
    assert_refused(capsys, "--json --where")
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("keep", [0, 100, -30])
def test_a_damaged_trace_is_refused(
    keep: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = result(tmp_path, message(0, 1, 50))
    path = tmp_path / "traces" / "point0000-seed1.npz"
    path.write_bytes(path.read_bytes()[:keep])
    assert main(["trace", place]) == 2
    assert_refused(capsys, "is damaged")


def test_a_trace_with_other_bits_is_read_or_refused(tmp_path: Path) -> None:
    path = Path(result(tmp_path, message(0, 1, 50))) / "traces" / "point0000-seed1.npz"
    whole, random = path.read_bytes(), Random(1)
    refused = 0
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        path.write_bytes(changed)
        refused += main(["trace", str(tmp_path)]) == 2
    assert refused > 100


def foreign(**arrays: Any) -> bytes:
    """Arrays of numpy as a file that is no trace."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        foreign(a=np.arange(3)),
        foreign(kinds=np.arange(3), records=np.arange(3)),
        foreign(kinds=np.array(["isend"]), records=np.ones((2, 5)), agents=np.array(["rank0"])),
        foreign(kinds=np.array([{"pickled": 1}], dtype=object)),
    ],
)
def test_a_foreign_trace_is_refused(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = result(tmp_path, message(0, 1, 50))
    (tmp_path / "traces" / "point0000-seed1.npz").write_bytes(content)
    assert main(["trace", place]) == 2
    assert_refused(capsys, "another program --trace")


def test_each_trace_says_first_whose_times_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, dilation in (("a", 24.0), ("b", 1.0)):
        result(tmp_path / name, message(0, 1, 50), dilation=dilation)
    assert main(["trace", str(tmp_path)]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if "point0000" in line]
    assert ["24 times" in heading for heading in headings] == [True, False]
