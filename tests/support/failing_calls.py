"""Commands of which one system call fails: the first, the second, until none is left to fail."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shrimpmx.page.page import PAGE_FILE
from shrimpmx.papers.claim import CLAIMS_FILE
from shrimpmx.results.result import RUN_FILE
from support.conditions import patient
from support.leaks import ProcessState, end_children, settled_changes

SOURCE = Path(__file__).with_name("failing_calls.c")
CALLS = ("mmap", "size", "fork", "thread", "mq_open", "open", "write", "fsync")
# Nothing takes as long but what hangs: a calibration that cannot be read is measured anew.
LIMIT_S = 180.0

PROGRAM = """
from mpi4py import MPI
data = bytearray(200_000)
MPI.COMM_WORLD.Bcast(data)
assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.size
"""
SMALL = ("--set", "iterations=2", "--set", "size_bytes=0")


RESULT = "result"
OUTPUT = ["--output", RESULT]
PAGE = f"{RESULT}/{PAGE_FILE}"
# Either tells whether a result is complete.
RESULTS = (f"{RESULT}/{CLAIMS_FILE}", f"{RESULT}/{RUN_FILE}")


def _mpirun(directory: Path, engine: str) -> list[str]:
    program = directory / "program.py"
    program.write_text(PROGRAM)
    limit = ["--timeout", f"{patient(LIMIT_S) / 2:g}"]
    return ["mpirun", "-n", "2", "--engine", engine, *limit, *OUTPUT, sys.executable, str(program)]


def _run(coalescing: str, *options: str) -> list[str]:
    return ["run", "smoke/pingpong", *SMALL, "--set", f"coalescing={coalescing}", *options, *OUTPUT]


# By name, what is to be told of a directory.
COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "mpirun": lambda directory: _mpirun(directory, "forked"),
    "mpirun-simulated": lambda directory: _mpirun(directory, "simulated"),
    "run": lambda directory: _run("stream"),
    "run-simulated": lambda directory: _run("timeout,stream", "--engine", "simulated"),
    "workers": lambda directory: _run(
        "timeout,stream", "--engine", "simulated", "--workers", "2"
    ),
    "resumed": lambda directory: [
        "reproduce", "IC-1", "--engine", "simulated", "--resume", *OUTPUT
    ],
}  # fmt: skip
# Of a command that goes on, the call that has ended it before.
ENDED_BY = {"resumed": ("fsync", 5)}


def compiled(directory: Path) -> Path:
    """The library that lets a call fail."""
    library = directory / "failing_calls.so"
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library)]
    subprocess.run(["cc", *options, str(SOURCE), "-ldl"], check=True)
    return library


@dataclass(frozen=True)
class Outcome:
    """How a command ended of which the call `number` by name `call` failed; `faults`: in words."""

    call: str
    number: int
    code: int
    said: str
    faults: list[str]

    def __str__(self) -> str:
        return f"{self.call} {self.number}: exit code {self.code}, {self.faults}\n{self.said}"


def outcomes(
    library: Path, directory: Path, name: str, call: str, numbers: range
) -> Iterator[Outcome]:
    """Each outcome of the command of that name, of as many calls of these numbers as it makes."""
    (directory / "tmp").mkdir()
    arguments = COMMANDS[name](directory)
    begun = _begun(library, directory, name, arguments)
    for number in numbers:
        place = directory / f"{call}-{number}"
        if begun:
            shutil.copytree(begun, place)
        else:
            place.mkdir()
        found, calls = _outcome(library, place, call, number, arguments)
        if calls < number:
            return
        yield found


def _begun(library: Path, directory: Path, name: str, arguments: list[str]) -> Path | None:
    """Where a command that goes on finds its result, if it is one."""
    if name not in ENDED_BY:
        return None
    place = directory / "begun"
    place.mkdir()
    call, number = ENDED_BY[name]
    first = [word for word in arguments if word != "--resume"]
    outcome, _ = _outcome(library, place, call, number, first, goes_on=False)
    assert outcome.code == 2, outcome
    return place


def _outcome(
    library: Path,
    place: Path,
    call: str,
    number: int,
    arguments: list[str],
    *,
    goes_on: bool = True,
) -> tuple[Outcome, int]:
    """How a command ends, and how many such calls it has made."""
    count = place.parent / "count"
    count.write_bytes(bytes(8))
    failing = {
        "LD_PRELOAD": str(library),
        "FAILING_CALL": call,
        "FAILING_AT": str(number),
        "FAILING_COUNT": str(count),
    }
    before = ProcessState.now()
    code, said, faults = _ended(place, arguments, failing)
    left = settled_changes(before)
    if left:
        end_children(before)
    files = [*(place.parent / "tmp").iterdir(), *place.rglob(".shrimpmx-*")]
    faults += left + [f"left behind {path}" for path in files] + _complaints(code, said)
    if goes_on and not faults and not (code == 0 and (place / PAGE).exists()):
        faults += _faults_of_going_on(place, arguments)
    calls = int.from_bytes(count.read_bytes(), sys.byteorder)
    return Outcome(call, number, code, said, faults), calls


def _ended(
    place: Path, arguments: list[str], settings: dict[str, str]
) -> tuple[int, str, list[str]]:
    """A command's exit code, what it said, and whether it hung, as a fault."""
    with subprocess.Popen(
        [sys.executable, "-m", "shrimpmx", *arguments],
        env={
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "TMPDIR": str(place.parent / "tmp"),
            **settings,
        },
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        faults = []
        try:
            said = process.communicate(timeout=patient(LIMIT_S))[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said = process.communicate()[1]
            faults.append("it hangs")
    return process.returncode, said, faults


def _faults_of_going_on(place: Path, arguments: list[str]) -> list[str]:
    """What is wrong when the command is given once more, and nothing fails."""
    kept = next((place / path for path in RESULTS if (place / path).exists()), None)
    if kept and json.loads(kept.read_text())["complete"]:
        again = ["report", RESULT]
    elif kept and arguments[0] == "run":
        again = [*arguments, "--resume"]
    elif arguments[0] == "reproduce" and not kept:
        again = [word for word in arguments if word != "--resume"]
    else:
        again = arguments
    code, said, faults = _ended(place, again, {})
    if code != 0 or not (place / PAGE).exists():
        faults.append(f"then {shlex.join(again)} ends with exit code {code}: {said}")
    return faults


def _complaints(code: int, said: str) -> list[str]:
    found = []
    if code not in (0, 2, 3):
        found.append("its exit code")
    if "Traceback" in said:
        found.append("a traceback")
    if code != 0 and not any(line.startswith("shrimpmx: ") for line in said.splitlines()):
        found.append("no sentence")
    return found
