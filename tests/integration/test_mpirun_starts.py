"""`shrimpmx mpirun` and `run`: what cannot be started is said in a sentence whose hint works."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

Captured = pytest.CaptureFixture[str]
HELLO = "print('hello')\n"


def place(path: Path, text: str, mode: int) -> None:
    path.write_text(text, newline="")
    path.chmod(mode)


# A file with its mode, how it is named, words of the sentence, and whether its hint starts it.
CASES = {
    "no interpreter": ("say", "echo hello\n", 0o755, "./say", "names its interpreter", True),
    "no path": ("say", "echo hello\n", 0o755, "say", "did you mean", True),
    "python": ("say.py", HELLO, 0o644, "say.py", "did you mean", True),
    "not executable": ("say.py", HELLO, 0o644, "./say.py", "is not executable", True),
    "its own": ("say", "#!/bin/sh\necho hello\n", 0o644, "./say", "is not executable", True),
    "spaces": ("my say.py", HELLO, 0o644, "./my say.py", "is not executable", True),
    "quotes": ("it's", "#!/bin/sh\necho hello\n", 0o644, "./it's", "is not executable", True),
    "no path, spaces": ("my say", "echo hello\n", 0o644, "my say", "did you mean", True),
    "windows": ("say.py", f"#!/usr/bin/env python\r\n{HELLO}", 0o755, "./say.py", "Windows", True),
    "unknown": ("say", "#!/nowhere/sh\necho hello\n", 0o755, "./say", "'/nowhere/sh'", False),
    "empty": ("say", "", 0o755, "./say", "empty file", False),
    "directory": ("say", None, 0o755, "./say", "is a directory", False),
}


@pytest.mark.nightly("each kind of file", but=6)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", [(), ("--wdir", "there it is")])
def test_a_file_that_is_no_program_is_told_and_how_to_start_it(
    options: tuple[str, ...],
    case: str,
    tmp_path: Path,
    capfd: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, text, mode, given, words, is_hinted = CASES[case]
    monkeypatch.chdir(tmp_path)
    home = tmp_path.joinpath(*options[1:])
    home.mkdir(exist_ok=True)
    if text is None:
        (home / name).mkdir()
    else:
        place(home / name, text, mode)
    assert main(["mpirun", "-n", "2", *options, given]) == 2
    [said] = capfd.readouterr().err.splitlines()
    assert words in said
    hint = re.search("`([^`]*)`", said)
    assert (hint is not None) == is_hinted
    if hint is not None:
        made, _, start = hint[1].rpartition("; ")
        assert os.system(made or "true") == 0
        assert main(["mpirun", "-n", "2", *options, *shlex.split(start)]) == 0
        assert capfd.readouterr().out == "hello\nhello\n"


def test_an_option_that_has_taken_the_program_is_named(capfd: Captured) -> None:
    assert main(["mpirun", "-n", "2", "--profile", "sh", "say.sh"]) == 2
    [said] = capfd.readouterr().err.splitlines()
    assert "--profile needs a value and has taken 'sh'" in said
    assert not Path("sh").exists()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("from mpi4py import MPI\n", "shrimpmx mpirun -n 2 python {}"),
        ("import shrimpmx\nwith shrimpmx.join() as rank:\n    pass\n", "shrimpmx run program={}"),
    ],
)
def test_a_program_is_no_scenario(text: str, hint: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    assert main(["run", str(path)]) == 2
    [said] = capfd.readouterr().err.splitlines()
    assert "not a scenario" in said
    assert said.endswith(hint.format(path))


@pytest.mark.nightly("each directory", but=1)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("text", ["", "raise SystemExit('another package')\n"])
def test_no_directory_of_a_program_shadows_the_package(
    text: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shrimpmx").mkdir()
    (tmp_path / "shrimpmx/__init__.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    program = mpi_program(tmp_path, "assert world.size == 2", MPI4PY)
    assert main(["mpirun", "-n", "2", "--engine", engine, *program]) == 0
    kernel = ["-P", "-m", "shrimpmx.applications.nas", "IS", "S"]
    assert main(["mpirun", "-n", "2", "--engine", engine, sys.executable, *kernel]) == 0
