"""The timeline of a traced result in its page: what lies packed in it, and what has no room."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.page import Page
from support.results import a_document, a_metric, a_point, write_result

from shrimpmx.cli import main
from shrimpmx.native.trace import TraceRecord
from shrimpmx.page import packed_trace, timelines
from shrimpmx.page.packed_trace import packed
from shrimpmx.show.kept_trace import keep_trace
from shrimpmx.show.timeline import Seat, Timeline

AGENTS = ["rank0", "node0.nic", "node1.nic", "node1.irq0", "rank1"]
RANK0, NIC0, NIC1, IRQ1, RANK1 = range(5)
SEATS = {"rank0": Seat(0, 0, 0), "rank1": Seat(1, 2, 3)}
HOSTILE = "<script>alert(1)</script>&\"'</textarea>"


def message(at: int, number: int, took: int) -> list[TraceRecord]:
    word, ends = 37 | number << 16 | 1 << 48, 3 << 48
    return [
        TraceRecord(at, RANK0, "isend", 1 << 32 | 3 << 16 | number, 20),
        TraceRecord(at + 240, NIC0, "tx_frame", word, ends | 60),
        TraceRecord(at + 480, NIC1, "rx_frame", word, ends | 60),
        TraceRecord(at + 720, NIC1, "irq_timer", 0, took),
        TraceRecord(at + 720, NIC1, "dma_complete", word, ends | 60),
        TraceRecord(at + 960, IRQ1, "event", word, ends | 3),
        TraceRecord(at + took, RANK1, "received", number, 20),
    ]


def result(directory: Path, runs: int = 1, agents: list[str] = AGENTS, **more: Any) -> Path:
    point = a_point({"wait": HOSTILE}, {"half_round_trip": a_metric(5)})
    write_result(directory, a_document(HOSTILE, [point], title=HOSTILE))
    records = message(0, 1, 2400) + message(4800, 2, 7200)
    timeline = Timeline(records, agents, seats=SEATS, **more)
    for number in range(runs):
        keep_trace(timeline, directory / "traces" / f"point000{number % 2}-seed{number}.npz")
    return directory


def page_of(directory: Path) -> Page:
    assert main(["report", str(directory)]) == 0
    return Page.read(directory / "report.html")


def opened(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The heading and the columns, as the script of a page reads them."""
    content = gzip.decompress(content)
    length = int.from_bytes(content[:4], "little")
    heading, offset, columns = json.loads(content[8 : 8 + length]), 8 + length, {}
    for name, (kind, count) in heading["columns"].items():
        columns[name] = np.frombuffer(content, f"<{kind}", count, offset)
        offset += -(-columns[name].nbytes // 8) * 8
    assert offset == len(content)
    return heading, columns


def test_all_records_lie_in_it_with_the_times_of_the_emulated_hosts() -> None:
    timeline = Timeline(message(1000, 7, 2400), AGENTS, seats=SEATS, dilation=24.0)
    heading, columns = opened(packed(timeline))
    told = [heading["texts"][text] for text in columns["recordText"]]
    assert told[0] == "isend: message 7, partner 1:3, 20 bytes"
    assert told[3] == "coalescing timer, vector 0: 0.100 us left"
    assert columns["recordTime"].tolist() == [0, 10, 20, 30, 30, 40, 100]
    kinds = [heading["kinds"][kind] for kind in columns["recordKind"]]
    assert kinds == [record.kind for record in timeline.records]
    stages = [heading["stages"][name] for name in columns["stageName"]]
    assert stages == ["sent", "on the line", "arrived", "DMA complete", "handled", "received"]
    assert columns["stageRecord"].tolist() == [0, 1, 2, 4, 5, 6]
    assert columns["packetMessage"].tolist() == [0]
    assert packed(timeline) == packed(timeline)


def test_of_a_long_trace_it_has_what_is_around_the_slowest_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packed_trace, "RECORDS_MAX", 9)
    records = [record for at in range(9) for record in message(at * 9000, at, 2400 + at % 6)]
    _, columns = opened(packed(Timeline(records, AGENTS, seats=SEATS)))
    assert columns["recordTime"].size == 9
    assert columns["messageSent"].size == 1
    [took] = (
        columns["recordTime"][columns["messageReceived"]]
        - (columns["recordTime"][columns["messageSent"]])
    )
    assert took == 2405
    _, columns = opened(packed(Timeline([], AGENTS)))
    assert columns["recordTime"].size == 0


def test_a_page_of_a_traced_result_has_it(tmp_path: Path) -> None:
    page = page_of(result(tmp_path, dilation=24.0))
    assert page.unbalanced == []
    assert "24 times as long" in page.text
    assert "number 2 of 2, 20 bytes: 7.200 us" in page.text  # for those without a script
    assert page.headings[0] == 1
    first, script = re.findall(r"<script[^>]*>(.*?)</script>", page.source, re.S)
    heading, _ = opened(base64.b64decode(first))
    assert heading["agents"] == AGENTS
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;;" in page.source
    assert re.findall(r"https?:|\bimport\b|innerHTML|eval\(", script) == []


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    page = page_of(result(tmp_path, agents=[f"{HOSTILE}{name}" for name in AGENTS]))
    assert page.unbalanced == []
    assert page.source.count("<script") == 2
    assert HOSTILE in page.text


def test_the_first_run_of_each_point_comes_first_and_the_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "RUNS_MAX", 3)
    page = page_of(result(tmp_path, runs=5))
    names = re.findall(r"<option>(.*?)</option>", page.source)
    assert names == ["point0000-seed0", "point0001-seed1", "point0000-seed2"]
    assert f"3 of 5 traced runs are shown; shrimpmx trace {tmp_path}" in page.text


def test_what_has_no_room_or_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (result(tmp_path, runs=2) / "traces" / "point0000-seed0.npz").write_bytes(b"nothing")
    page = page_of(tmp_path)
    assert "point0000-seed0.npz is damaged" in page.text
    assert "1 of 2 traced runs are shown" in page.text
    monkeypatch.setattr(timelines.TimelineRoom.__init__, "__defaults__", (100,))
    page = page_of(tmp_path)
    assert "script" not in page.tags
    assert "0 of 2 traced runs are shown" in page.text
