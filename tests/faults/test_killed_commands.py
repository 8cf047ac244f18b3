"""Commands that end by a signal before one of their changes of files: the same command, or the one
that they name, ends the work.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main
from shrimpmx.cluster.engine.leftovers import find_leftovers, remove_leftovers
from shrimpmx.results.result import RUN_FILE, ResultDirectory, load_result

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "fcntl.flock"}
SIMULATED = ("--engine", "simulated")
RUN = ("run", "smoke/pingpong", "iterations=3", "warmup=1", "repeats=2", "size_bytes=64")
REPRODUCE = ("reproduce", "IC-14", "platform=none", "iterations=3", "warmup=1", "wait=block")
EXPLORE = ("explore", "--coalescing", "timeout,stream", "--wait", "block", "--runs", "2")
PROGRAM = "world.Barrier()"
# How many moments are tried of each command, in quarters.
MOMENTS = {"run": 20, "mpirun": 8, "reproduce": 5, "explore": 5}


def command(name: str, place: Path, output: str) -> list[str]:
    """The words of a command that keeps a result in `output`."""
    program = mpi_program(place, PROGRAM, MPI4PY)
    words: dict[str, list[str]] = {
        "run": [*RUN, *SIMULATED],
        "reproduce": [*REPRODUCE, *SIMULATED],
        "mpirun": ["mpirun", "-n", "2", *SIMULATED, "--trace"],
        "explore": [*EXPLORE, "-n", "2", *SIMULATED],
    }
    more = program if name in ("mpirun", "explore") else []
    return [*words[name], "--output", str(place / output), *more]


def ended(
    arguments: list[str], said: Path, moment: int = 0, number: signal.Signals = signal.SIGKILL
) -> tuple[int, int]:
    """The exit code of a command in a child, and how many changes of files it made; with a `moment`
    it gets the signal `number` before that one.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code, changes, own = 99, 0, os.getpid()

        def count(event: str, values: tuple[Any, ...]) -> None:
            nonlocal changes
            is_made = event == "open" and isinstance(values[2], int) and values[2] & os.O_CREAT
            if (is_made or event in CHANGES) and os.getpid() == own:
                changes += 1
                if changes == moment:
                    os.kill(own, number)

        try:
            descriptor = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(descriptor, stream)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.addaudithook(count)
            code = main(arguments)
            sys.stdout.flush()
        finally:
            os.write(writing, str(changes).encode())
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code, int(pipe.read() or 0)


def points_of(place: Path) -> list[dict[str, Any]]:
    """The points of all results below a directory, which are complete."""
    documents = [load_result(path) for path in sorted(place.rglob(RUN_FILE))]
    assert documents
    assert all(document["complete"] for document in documents)
    points = [point for document in documents for point in document["points"]]
    # An exploration counts what it has run when it chooses what to run again.
    return [each["params"] for each in points] if "explore" in documents[0] else points


@pytest.mark.nightly("each command, each other moment", but=1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("quarter", range(4))
@pytest.mark.parametrize("name", MOMENTS)
def test_the_same_command_ends_what_one_began_that_was_killed(
    name: str, quarter: int, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    code, changes = ended(command(name, tmp_path, "whole"), said)
    assert code == 0, said.read_text()
    whole = points_of(tmp_path / "whole")
    step = max(1, changes // MOMENTS[name])
    for moment in range(1 + quarter * step, changes + 1, 4 * step):
        again = command(name, tmp_path, f"killed{moment}")
        place = tmp_path / f"killed{moment}"
        code, _ = ended(again, said, moment)
        assert code == -signal.SIGKILL, said.read_text()
        code, _ = ended(again, said)
        is_whole = code == 2 and "shrimpmx report" in said.read_text()  # all but its page
        if is_whole:
            code, _ = ended(["report", str(place)], said)
        elif code == 2 and name != "mpirun":
            assert "--resume" in said.read_text()
            at = again.index("--output")
            code, _ = ended([*again[:at], "--resume", *again[at:]], said)
        if code == 2:  # it was killed when all was kept
            assert "complete" in said.read_text() or name == "mpirun"
        else:
            assert code == 0, (moment, said.read_text())
        assert points_of(place) == whole, moment
        assert not list(place.rglob(".shrimpmx-*")) or code == 2 or is_whole
    remove_leftovers(find_leftovers())


def hinted(said: str) -> list[str]:
    """The words of the command that a text names last; none if it names none."""
    found = re.findall(r"`shrimpmx (.*?)`|^  .*?shrimpmx (.*)$", said, re.MULTILINE)
    return shlex.split("".join(found[-1])) if found else []


@pytest.mark.nightly("each command, each other moment", but=1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("quarter", range(4))
@pytest.mark.parametrize("name", MOMENTS)
def test_the_command_that_an_interrupted_one_names_ends_the_work(
    name: str, quarter: int, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    code, changes = ended(command(name, tmp_path, "whole"), said)
    assert code == 0, said.read_text()
    step = max(1, changes // MOMENTS[name])
    for moment in range(changes - quarter * step, 0, -4 * step):
        output = f"interrupted{moment}"
        code, _ = ended(command(name, tmp_path, output), said, moment, signal.SIGINT)
        assert code in (0, 130 if name == "mpirun" else 3), (moment, said.read_text())
        assert "Traceback" not in said.read_text()
        if words := hinted(said.read_text()):
            code, _ = ended(words, said)
            assert code == 0, (moment, words, said.read_text())
            assert points_of(tmp_path / output) == points_of(tmp_path / "whole"), moment


@pytest.mark.parametrize("resume", [False, True])
def test_a_result_has_one_process_that_writes_it(
    resume: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "result"
    words = ["run", "smoke/pingpong", *SIMULATED, "--output", str(place)]
    with ResultDirectory(place).beginning(resume=False):
        assert main([*words, *(["--resume"] if resume else [])]) == 2
        assert "another process is writing" in capsys.readouterr().err
        assert os.listdir(place) == []
    assert main([*words, "iterations=3", "warmup=1", "repeats=1"]) == 0


@contextlib.contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "shrimpmx", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.nightly("each signal", but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_at_the_end_changes_no_exit_code(
    number: signal.Signals, tmp_path: Path
) -> None:
    words = (*RUN, *SIMULATED, "--output", str(tmp_path / "result"))
    with started(*words) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("page: "):
            assert process.poll() is None
        end_s = time.monotonic() + patient(50)
        while process.poll() is None and time.monotonic() < end_s:
            process.send_signal(number)
            time.sleep(0.001)
        assert process.wait() in (0, 3)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert json.loads((tmp_path / "result" / RUN_FILE).read_text())["complete"]


@pytest.mark.nightly("each limit on each engine", but=1)
@pytest.mark.parametrize("engine", ["simulated", "forked"])
@pytest.mark.parametrize("limit_mib", [200, 300, 500])
def test_a_limit_of_the_memory_is_one_sentence(limit_mib: int, engine: str, tmp_path: Path) -> None:
    words = [*RUN, "--engine", engine, "--output", str(tmp_path / "result")]
    limited = f'ulimit -v {limit_mib << 10} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", limited, "sh", sys.executable, "-m", "shrimpmx", *words],
        capture_output=True,
        text=True,
        timeout=patient(50),
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
