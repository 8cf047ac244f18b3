"""`shrimpmx mpirun --runs`, and the commands that results give to make them once more."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import assert_refused
from support.conditions import patient

import shrimpmx
from shrimpmx.cli import main
from shrimpmx.results.comparison import COMPARED_RUNS

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

Captured = pytest.CaptureFixture[str]
# Takes its number of messages from a variable, a file of its own directory, or its input.
PROGRAM = """
import os
import sys
from mpi4py import MPI

world = MPI.COMM_WORLD
source = sys.argv[1]
given = {
    "variable": lambda: os.environ["COUNT"],
    "file": lambda: open("count").read(),
    "input": lambda: world.rank or sys.stdin.read() or 1,
}
count = world.bcast(int(given[source]()))
for _ in range(count):
    world.allreduce(1)
print("count", count)
"""
COUNT = 7


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "there"
    place.mkdir()
    (place / "count").write_text(str(COUNT))
    (place / "program.py").write_text(PROGRAM)
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COUNT", raising=False)


@pytest.fixture
def _input() -> Iterator[None]:
    """The file `there/count` as the standard input of this process."""
    kept = os.dup(0)
    with open("there/count", "rb") as source:
        os.dup2(source.fileno(), 0)
    yield
    os.dup2(kept, 0)
    os.close(kept)


def mpirun(*words: str) -> int:
    return main(["mpirun", "-n", "2", *words])


def runs_of(place: str) -> int:
    [point] = json.loads(Path(place, "run.json").read_text())["points"]
    return len(point["metrics"]["run_time"]["samples"])


WAYS = [
    (("-x", f"COUNT={COUNT}"), "variable"),
    (("--wdir", "there"), "file"),
    (("--stdin", "all"), "input"),
    (("-x", f"COUNT={COUNT}", "--wdir", "there", "--timeout", "500"), "variable"),
]


@pytest.mark.nightly("each option and engine")
@pytest.mark.timeout(patient(150))
@pytest.mark.usefixtures("_input")
@pytest.mark.parametrize(
    ("options", "source", "engine"),
    [*((*way, "simulated") for way in WAYS), (*WAYS[0], "forked")],
)
def test_the_advice_of_a_comparison_runs_the_same_program_often_enough(
    options: tuple[str, ...], source: str, engine: str, capfd: Captured
) -> None:
    program = [sys.executable, "program.py", source]
    for name in "ab":
        kept = ("--engine", engine, "--output", name)
        assert mpirun(*options, *kept, *program) == 0
    capfd.readouterr()
    assert main(["compare", "a", "b", "--metrics", "run_time"]) == 0
    told = capfd.readouterr().out.splitlines()
    [line] = [each for each in told if each.startswith("to repeat A: ")]
    words = shlex.split(line.partition(": ")[2])
    os.lseek(0, 0, os.SEEK_SET)
    assert main([*words[1:2], "--output", "again", *words[2:]]) == 0
    said = capfd.readouterr()
    assert said.out.splitlines() == [f"count {COUNT}"] * 2 * COMPARED_RUNS
    assert f"run {COMPARED_RUNS} of {COMPARED_RUNS}" in said.err
    assert runs_of("again") == COMPARED_RUNS
    assert f"mpirun --runs {COMPARED_RUNS} " in Path("again/report.html").read_text()


@pytest.mark.nightly("each option")
@pytest.mark.timeout(patient(150))
@pytest.mark.parametrize(("options", "source"), [WAYS[0], WAYS[1]])
@pytest.mark.parametrize("command", ["mpirun", "explore"])
def test_the_advice_to_trace_runs_the_same_program(
    command: str, options: tuple[str, ...], source: str, capfd: Captured
) -> None:
    words = [command, "-n", "2", "--engine", "simulated", *options, "--output", "r"]
    if command == "explore":
        words += ["--coalescing", "stream,open-mx", "--placement", "one-core", "--wait", "block"]
    assert main([*words, sys.executable, "program.py", source]) == 0
    capfd.readouterr()
    assert main(["trace", "r"]) == 2
    sentence = capfd.readouterr().err
    words = shlex.split(sentence.partition("traces: ")[2].partition(" makes one")[0])
    assert main(words[1:]) == 0
    assert f"count {COUNT}" in capfd.readouterr().out
    assert main(["trace", words[words.index("--output") + 1]]) == 0


@pytest.mark.nightly("seconds of a search")
@pytest.mark.timeout(patient(60))
def test_an_exploration_is_repeated_where_it_ran(capfd: Captured) -> None:
    chosen = ["--coalescing", "stream", "--placement", "one-core", "--wait", "block,spin"]
    given = ["-x", f"COUNT={COUNT}", "--wdir", "there", "--runs", "1", "--budget", "60"]
    program = [sys.executable, "program.py", "variable"]
    for name in "ab":
        assert main(["explore", "-n", "2", *chosen, *given, "--output", name, *program]) == 0
    capfd.readouterr()
    assert main(["compare", "a", "b"]) == 0
    said = capfd.readouterr().out
    [line] = [each for each in said.splitlines() if each.startswith("to repeat A: ")]
    assert line.partition(": ")[2].startswith(f"env -C there COUNT={COUNT} shrimpmx run ")


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.usefixtures("_input")
@pytest.mark.parametrize("keeps", [(), ("--output", "r")])
def test_every_run_reads_all_of_a_file(keeps: tuple[str, ...], capfd: Captured) -> None:
    words = ("--engine", "simulated", "--runs", "3", *keeps, sys.executable, "program.py", "input")
    assert mpirun(*words) == 0
    assert capfd.readouterr().out.splitlines() == [f"count {COUNT}"] * 6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--runs", "0", "true"), "--runs must be 1 to 1000, not 0"),
        (("--runs", "1001", "true"), "--runs must be 1 to 1000, not 1001"),
        (("--runs", "2", "--profile", "p", "true"), "--profile shows one run"),
        (("--set", "repeats=2", "true"), "by --runs"),
    ],
)
def test_what_cannot_be_repeated_is_refused(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mpirun(*words) == 2
    assert_refused(capsys, told)


def test_what_only_the_first_run_could_read_is_refused(capfd: Captured) -> None:
    kept, (reads, writes) = os.dup(0), os.pipe()
    os.dup2(reads, 0)
    try:
        assert mpirun("--runs", "2", "true") == 2
        assert "--stdin all" in capfd.readouterr().err
        assert mpirun("--runs", "2", "--stdin", "none", "true") == 0
    finally:
        os.dup2(kept, 0)
        for each in (kept, reads, writes):
            os.close(each)


def test_a_script_repeats_a_program_and_tells_its_command() -> None:
    words = [sys.executable, "program.py", "variable"]
    found = shrimpmx.mpirun(
        words, 2, engine="simulated", runs=3, environment={"COUNT": str(COUNT)}, coalescing="stream"
    )
    assert found.printed.splitlines() == [f"count {COUNT}"] * 6
    own = ["--runs", "3", "--stdin", "none", "-n", "2", "--engine", "simulated"]
    given = ["-x", f"COUNT={COUNT}", "--set", "coalescing=stream"]
    command = ["shrimpmx", "mpirun", *own, *given, *words]
    assert found.document["command"] == shlex.join(command)
