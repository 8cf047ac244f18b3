"""`shrimpmx run --capture`: all frames that NICs count are in it, and one sentence per mistake."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.capture import decoded, needs_tshark
from support.cli import assert_refused

from shrimpmx.cli import main
from shrimpmx.cluster.engine.result import Captured, ClusterResult
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.experiment import execute, outcome
from shrimpmx.native.files import write_whole
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.result import RUN_FILE
from shrimpmx.show.kept_trace import keep_trace
from shrimpmx.show.pcapng import pcapng
from shrimpmx.show.timeline import Timeline

SHORT = ("--set=iterations=10", "--set=warmup=1", "--set=repeats=1")
FAULTY = ("--set=loss=0.1", "--set=corrupt=0.05", "--set=resend_delay_ns=5000000")
PLAIN = ("smoke/pingpong", "--set=size_bytes=4096", "--set=coalescing=stream")
SIMULATED = ("--engine", "simulated")


def captured(
    words: tuple[str, ...], output: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Captured, ClusterResult]:
    """What a run of one point has captured, and the run."""
    kept: list[ClusterResult] = []

    def outcome_of(spec: ClusterSpec, result: ClusterResult, *more: Any) -> Outcome:
        kept.append(result)
        return outcome.outcome_of(spec, result, *more)

    monkeypatch.setattr(execute, "outcome_of", outcome_of)
    assert main(["run", *words, *SHORT, "--capture", "--output", str(output)]) == 0
    found = kept[-1]  # a disturbed run is taken again
    assert found.captured is not None
    [path] = (output / "captures").iterdir()
    assert path.read_bytes() == pcapng(found.captured)
    return found.captured, found


@pytest.mark.nightly("each kind of run", but=1)
@pytest.mark.parametrize(
    "words",
    [
        (*PLAIN, *FAULTY),
        (*PLAIN, *FAULTY, *SIMULATED),
        (*PLAIN, *SIMULATED, "--set=network=switch"),
        (*PLAIN, *SIMULATED, "--set=nic=mx"),
        (*PLAIN[:2], *SIMULATED, "--set=coalescing=watchdog"),
        ("smoke/message_rate", "--set=mode=generator", "--set=size_bytes=128", PLAIN[2]),
    ],
)
def test_every_frame_that_a_nic_counts_is_there(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, result = captured(words, tmp_path / "r", monkeypatch)
    counted = {end: result.counters.get(f"{end}.nic", {}) for end in found.ends}
    for end, name in enumerate(found.ends):
        if not counted[name]:
            continue  # a generator or a switch
        mine = [frame for frame in found.frames if frame.end == end]
        sent = [frame for frame in mine if not frame.received]
        assert len(sent) == counted[name].get("tx_packets", 0) > 0
        taken = [frame for frame in mine if frame.received and not frame.dropped]
        assert len(taken) <= counted[name]["rx_packets"] <= sum(each.received for each in mine)
        for fault in ("link_lost", "link_corrupted"):
            noted = sum(fault in frame.faults for frame in sent)
            assert noted == counted[name].get(fault, 0), fault
        bad = sum(frame.bad_fcs for frame in mine)
        assert bad == counted[name].get("rx_bad_fcs", 0)
    if FAULTY[0] in words:
        assert sum(bool(frame.faults) for frame in found.frames) > 0


def test_senders_that_act_as_nics_keep_their_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("waiting/flags", "--set=wait=block", "--set=flags=8")
    found, result = captured(words, tmp_path / "r", monkeypatch)
    for end, name in enumerate(found.ends):
        sent = [frame for frame in found.frames if frame.end == end and not frame.received]
        assert len(sent) == result.counters[f"{name}.nic"]["tx_packets"] > 0


@needs_tshark
def test_wireshark_opens_a_runs_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (*PLAIN, *SIMULATED, "--snap-length", "64")
    found, _ = captured(words, tmp_path / "r", monkeypatch)
    [path] = (tmp_path / "r" / "captures").iterdir()
    layers = decoded(path)
    assert len(layers) == len(found.frames)
    assert Counter(each["mxoe"]["mxoe.ptype"] for each in layers)["39"] > 0
    assert {int(each["frame"]["frame.cap_len"]) for each in layers} <= {60, 64}


def test_a_capture_is_the_same_each_time_and_changes_no_simulated_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sessions of endpoints are drawn anew.
    runs = [
        captured((*PLAIN, *SIMULATED), tmp_path / name, monkeypatch)[0] for name in ("one", "two")
    ]
    one, two = ([each._replace(data=b"") for each in run.frames] for run in runs)
    assert one == two
    words = ["run", *PLAIN, *SIMULATED, *SHORT]
    assert main([*words, "--output", str(tmp_path / "none")]) == 0
    figures = [
        json.loads((tmp_path / name / RUN_FILE).read_text())["points"][0]["metrics"]
        for name in ("one", "none")
    ]
    assert figures[0] == figures[1]


def test_little_room_keeps_the_last_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_captures.SHORT", ("--set=iterations=300", "--set=repeats=1"))
    found, _ = captured((*PLAIN, *SIMULATED, "--capture-size", "1"), tmp_path / "r", monkeypatch)
    assert max(Counter(frame.end for frame in found.frames).values()) == 511


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*PLAIN, "--snap-length", "64"), "--snap-length add --capture"),
        ((*PLAIN, "--capture-size", "64"), "--capture-size add --capture"),
        ((*PLAIN, "--capture", "--snap-length", "3"), "--snap-length at least 16"),
        ((*PLAIN, "--capture", "--capture-size", "0"), "--capture-size at least 1"),
        (("coalescing/table5_interrupts", "--set=nodes=1", "--capture"), "no frame"),
        ((*PLAIN, "--capture", "--scheduler", "tcp://x:1"), "--capture leave --scheduler out"),
    ],
)
def test_what_cannot_be_captured_is_refused(
    words: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "r"
    assert main(["run", *words, "--output", str(output)]) == 2
    assert_refused(capsys, told)
    assert not output.exists()


def test_a_capture_that_finds_no_room_on_the_disk_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    words = ["run", *PLAIN, *SIMULATED, *SHORT, "--capture", "--output"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", full)
        assert main([*words, str(tmp_path / "full")]) == 2
    assert_refused(capsys, "No space left")
    assert not list((tmp_path / "full").glob("captures/*"))


def test_a_trace_that_finds_no_room_on_the_disk_leaves_none_of_its_files_and_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def second_only(timeline: Timeline, path: Path) -> None:
        if list(path.parent.glob("*.npz")):
            write_whole(Path("/dev/full"), "x", "free some room")
        keep_trace(timeline, path)

    setting = "--set=coalescing=disabled,stream"
    words = ["run", PLAIN[0], setting, *SIMULATED, *SHORT, "--trace", "--output"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shrimpmx.show.kept_trace.keep_trace", second_only)
        assert main([*words, str(tmp_path / "full")]) == 2
    err = capsys.readouterr().err
    assert "No space left" in err
    assert "1 of" in err
    assert "--resume" in err
    assert len(list((tmp_path / "full").glob("traces/*"))) == 3
