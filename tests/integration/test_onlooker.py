"""What runs that go on tell: where in their sweep they are, and what they wait for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shrimpmx.cli import main
from shrimpmx.cli import run as run_command
from shrimpmx.cluster.engine import engine as onlooker
from shrimpmx.cluster.engine.engine import Telling, names_words
from shrimpmx.cluster.live.attach import AttachedRun
from shrimpmx.cluster.live.runs import live_runs
from shrimpmx.experiment import workers as beside
from shrimpmx.experiment.progress import Quiet

SHORT = ("--set=iterations=200", "--set=size_bytes=0", "--set=coalescing=stream,disabled")


class Told(Quiet):
    """Progress that keeps all that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited: list[str] = []
        self.positions: set[str] = set()
        self.in_memory: set[str] = set()

    def waits_for(self, words: str) -> None:
        self.awaited.append(words)
        self.positions.add(self.position)
        for run in live_runs():
            if run.pid != os.getpid():
                continue  # of another program
            with AttachedRun(run) as attached:
                self.in_memory.add(attached.position())


@pytest.mark.nightly("each engine")
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_each_run_tells_its_place_and_what_it_waits_for(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    monkeypatch.setattr(onlooker, "TELL_S", 0.0)
    monkeypatch.setattr(run_command, "progress_for", lambda *_: told)
    words = ["run", "smoke/pingpong", *SHORT, "--set=repeats=2", "--engine", engine]
    assert main([*words, "--output", str(tmp_path / "r")]) == 0
    assert told.positions == {
        f"point {point} of 2, run {run} of 2" for point in (1, 2) for run in (1, 2)
    }
    said = "\n".join(told.awaited)
    assert "rank0, rank1 to finish" in said
    assert ("simulated" in said) == (engine == "simulated")
    if engine == "forked":
        assert any(words.endswith("to be ready") for words in told.awaited)
        assert told.positions <= told.in_memory


def test_what_runs_on_workers_are_waited_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    monkeypatch.setattr(beside, "TELL_S", 0.0)
    monkeypatch.setattr(run_command, "progress_for", lambda *_: told)
    words = ["run", "smoke/pingpong", *SHORT, "--engine", "simulated", "--workers", "2"]
    assert main([*words, "--output", str(tmp_path / "r")]) == 0
    assert "2 runs on 2 workers" in told.awaited


def test_an_onlooker_is_told_every_two_seconds() -> None:
    told, now_s = Told(), [0.0]
    telling = Telling(told, lambda: now_s[0])
    for second in range(6):
        now_s[0] = second
        telling.look(lambda: f"what comes at {second}")  # noqa: B023 (called at once)
    assert told.awaited == ["what comes at 2", "what comes at 4"]
    assert names_words([f"rank{number}" for number in range(5)]) == "rank0, rank1, rank2 and 2 more"
