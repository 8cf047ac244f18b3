"""Places that a command cannot use, and what it leaves where it does not begin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused

from shrimpmx.cli import main
from shrimpmx.errors import MachineError

REPOSITORY = Path(__file__).parents[2]

SCENARIO = """\
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(name="tiny", title="Tiny", metrics=("half_round_trip",))
"""


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", [["run", "old.py"], ["explore", "-n", "2", "true"]])
def test_what_is_refused_leaves_no_empty_result(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise MachineError("this machine has no costs")

    for module in ("cli.run", "experiment.explore.exploring"):
        monkeypatch.setattr(f"shrimpmx.{module}.costs_for", refuse)
    Path("old.py").write_text(SCENARIO)
    assert main(words) == 2
    assert not Path("results").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["run", "{file}"],
        ["list", "{file}"],
        ["mpirun", "-n", "1", "./{file}"],
        ["calibrate", "--show", "--write-platform", "{file}/a.toml"],
        ["reproduce", "MQ-5", "--output", "{file}"],
    ],
)
def test_a_name_that_no_file_can_have_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("{file}", "x" * 300) for word in words]) == 2
    assert_refused(capsys, "x" * 300)


def test_a_working_directory_that_was_removed_is_refused(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone}; rmdir {gone}; exec {sys.executable} -m shrimpmx list"
    done = subprocess.run(
        ["sh", "-c", script],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "shrimpmx: the working directory has been removed; change to another one\n"
    )
