"""The anatomy of a large message on real processes, in small: exact counts, timeline, trace."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import resends
from support.perfetto import flows, trace_of

from shrimpmx.cli import main

pytestmark = pytest.mark.nightly("each message's packets at length")

MARKS = "rndv,pull-request,pull-reply,notify"
# What one message of 234 880 bytes takes at MTU 1500, acknowledgements apart.
PACKETS = {"rndv": 1, "pull request": 5, "pull reply": 160, "notify": 1}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    """The directory, the document and the text of one short run."""
    path = tmp_path_factory.mktemp("anatomy") / "r"
    arguments = ["run", "coalescing/table2_anatomy", "--output", str(path)]
    short = ("iterations=3", "warmup=1", "repeats=1", "time_dilation=2")
    for setting in (f"marks={MARKS}", *short, *resends.SETTINGS):
        arguments += ["--set", setting]
    assert main(arguments) == 0
    document: dict[str, Any] = json.loads((path / "run.json").read_text())
    return path, document, (path / "timelines" / "point0002.txt").read_text()


def test_every_message_takes_exactly_its_packets(
    result: tuple[Path, dict[str, Any], str],
) -> None:
    exact = [verdict for verdict in result[1]["expectations"] if " in " in verdict["detail"]]
    assert len(exact) == 4
    assert {verdict["verdict"] for verdict in exact} == {"as expected"}
    for point in result[1]["points"]:
        assert point["metrics"]["packets_per_message"]["samples"] == [167] * 3
        assert point["metrics"]["transfer"]["median"] > 0


def test_marks_arrive_at_both_hosts_alike(result: tuple[Path, dict[str, Any], str]) -> None:
    for point in result[1]["points"]:
        for node in range(2):
            assert point["per_message"][f"node{node}.nic"]["rx_marked"] == 6


def test_the_timeline_has_every_packet_once_and_in_order(
    result: tuple[Path, dict[str, Any], str],
) -> None:
    heading, *lines = result[2].splitlines()
    assert heading.startswith("us since the send, agent, event")
    found: dict[str, int] = {}
    for line in lines:
        if "in memory at" in line:
            name = re.split(r"[ ,]\d|, ", line.split(maxsplit=2)[2])[0]
            found[name] = found.get(name, 0) + 1
    found.pop("ack", None)
    assert found == PACKETS
    frames = [int(number) for number in re.findall(r"pull reply (\d+) ", result[2])]
    assert frames == sorted(frames)
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)


def test_the_trace_opens_and_every_packet_is_a_flow(
    result: tuple[Path, dict[str, Any], str],
) -> None:
    found = sorted((result[0] / "timelines").glob("*.pftrace"))
    assert [path.stem for path in found] == ["point0000", "point0001", "point0002"]
    for path in found:
        joined = flows(trace_of(path)).values()
        assert sum(each[:3] == ["tx_frame", "rx_frame", "dma_complete"] for each in joined) >= 167
