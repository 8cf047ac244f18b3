"""`shrimpmx counters`: on a live run, on a result, and on input that cannot be used."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.memory import counter

from shrimpmx.cli import main
from shrimpmx.cluster.live import runs as live_module
from shrimpmx.native.segment import RunIdentity, Segment, list_segments
from shrimpmx.shared.control import Control
from shrimpmx.shared.counter_texts import TEXTS

RUN = "counters_test"
AGENTS = [("node0.nic", "nic", 0), ("node0.irq0", "irq", 1), ("node1.irq0", "irq", 1)]


class LiveRun:
    """A control segment whose supervisor is this very process."""

    def __init__(self) -> None:
        size_bytes = Control.size_bytes(2, len(AGENTS))
        self.segment = Segment.create(RunIdentity.of_this_process(RUN), "control", size_bytes, 1)
        self.control = Control.create(self.segment, ["a", "b"], AGENTS, 2)

    def count(self, agent: int, name: str, value: int) -> None:
        counter(self.control, agent, AGENTS[agent][1], name).value = value


@pytest.fixture(autouse=True)
def _no_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that go on beside the tests are none of theirs."""
    monkeypatch.setattr(
        live_module,
        "list_segments",
        lambda: [found for found in list_segments() if found[1].pid == os.getpid()],
    )


@pytest.fixture
def live() -> Iterator[LiveRun]:
    run = LiveRun()
    run.count(0, "tx_packets", 1234)
    run.count(1, "recv_tiny", 5)
    run.count(1, "drop_bad_session", 2)
    run.count(2, "recv_tiny", 6)
    yield run
    run.segment.unlink()
    del run.control  # it keeps the memory mapped
    run.segment.close()


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    """What a quiet call prints, word by word."""
    assert main(["counters", *arguments, "--quiet"]) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def refused(capsys: pytest.CaptureFixture[str], words: str, *arguments: str) -> None:
    """One sentence with all these words and values."""
    assert main(["counters", *arguments]) == 2
    assert_refused(capsys, words)


ALL_ROWS = [
    ["node0.nic", "tx_packets", "1234"],
    ["node0.irq0", "recv_tiny", "5"],
    ["node0.irq0", "drop_bad_session", "2"],
    ["node1.irq0", "recv_tiny", "6"],
]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ALL_ROWS),
        ([RUN[:10]], ALL_ROWS),
        (["--agent", "node1.*"], ALL_ROWS[3:]),
        (["--only", "recv_t*"], [ALL_ROWS[1], ALL_ROWS[3]]),
        (["--drops"], [ALL_ROWS[2]]),
        (["--sum", "--only", "recv_tiny"], [["all", "recv_tiny", "11"]]),
        (["-a", "-b", "node0.nic", "--only", "tx_b*"], [["node0.nic", "tx_bytes", "0"],
                                                        ["node0.nic", "tx_bad_frame", "0"]]),
    ],
)  # fmt: skip
def test_a_live_run(
    live: LiveRun, capsys: pytest.CaptureFixture[str], options: list[str], expected: Any
) -> None:
    before = bytes(live.segment.view())
    assert rows(capsys, *options) == expected
    assert bytes(live.segment.view()) == before


def test_the_table_groups_by_agent_and_explains(
    live: LiveRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["counters", "-v"]) == 0
    text = capsys.readouterr().out
    assert RUN in text
    assert "1,234" in text
    assert TEXTS["recv_tiny"] in text
    assert text.count("node0.irq0") == 1
    assert main(["counters", "--only", "copies"]) == 0
    assert "copies" not in capsys.readouterr().out


def test_watching_shows_differences_until_the_run_ends(
    live: LiveRun,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    sleeps: list[float] = []

    def passes(seconds: float) -> None:
        sleeps.append(seconds)
        live.count(1, "recv_tiny", 5 + 10 * len(sleeps))
        if len(sleeps) == 3:
            live.segment.unlink()

    monkeypatch.setattr(time, "sleep", passes)
    document = tmp_path / "counters.json"
    changes = [["node0.irq0", "recv_tiny", "10"]] * 2
    assert rows(capsys, "--watch", "0.5", "--json", str(document)) == ALL_ROWS + changes
    assert sleeps == [0.5] * 3
    assert json.loads(document.read_text())["counters"]["node0.irq0"]["recv_tiny"] == 25


def test_watching_ends_with_ctrl_c(
    live: LiveRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    assert rows(capsys, "--watch", "1") == ALL_ROWS


def a_result(place: Path, **changes: Any) -> Path:
    counts = {"node0.irq0": {"recv_tiny": 7, "drop_bad_session": 0}}
    document = {
        "schema": 1,
        "scenario": "tiny",
        "environment": {},
        "placement": {},
        "points": [
            {"params": {"workload.size_bytes": size}, "metrics": {}, "counters": counts}
            for size in (0, 128)
        ],
    }
    (place / "run.json").write_text(json.dumps({**document, **changes}))
    return place


def test_a_result_point_by_point(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = a_result(tmp_path)
    expected = [["node0.irq0", "recv_tiny", "7"]] * 2
    assert rows(capsys, str(place)) == expected
    assert rows(capsys, str(place / "run.json")) == expected
    assert main(["counters", str(place)]) == 0
    assert "128" in capsys.readouterr().out


def test_bad_input_is_one_sentence(
    live: LiveRun, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    refused(capsys, f"'unknown' {RUN}", "unknown")
    refused(capsys, "'nic*' agent node0.nic", "--agent", "nic*")
    refused(capsys, "'frobs*' counter", "--only", "frobs*")
    for seconds in ("0", "nan", "x", "-1"):
        refused(capsys, f"--watch seconds 0.01 '{seconds}'", f"--watch={seconds}")
    refused(capsys, "run.json exist", str(tmp_path))
    refused(capsys, "--watch live", str(a_result(tmp_path)), "--watch", "1")
    refused(capsys, "schema 99", str(a_result(tmp_path, schema=99)))
    refused(capsys, "finished", str(a_result(tmp_path, points=[])))
    point = {"params": {}, "metrics": {}, "counters": {"node0.nic": {"steps": "many"}}}
    refused(capsys, "damaged: 'counters'", str(a_result(tmp_path, points=[point])))
    (tmp_path / "run.json").write_text("{")
    refused(capsys, "damaged: JSON", str(tmp_path))
    (tmp_path / "other.json").write_text("{}")
    refused(capsys, "other.json run.json", str(tmp_path / "other.json"))


def test_several_runs_of_one_beginning_and_none_at_all(
    live: LiveRun, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Segment.create(
        RunIdentity.of_this_process(RUN + "2"), "control", Control.size_bytes(1, 1), 1
    )
    try:
        refused(capsys, f"{RUN[:5]} 2 {RUN} {RUN}2", RUN[:5])
        assert rows(capsys, RUN) == ALL_ROWS
    finally:
        other.unlink()
        other.close()
    live.segment.unlink()
    refused(capsys, "no run live")
