"""Commands of which one system call fails: the first, the second, until none is left to fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.conditions import patient
from support.leaks import ProcessState, end_children, settled_changes

SOURCE = Path(__file__).with_name("failing_calls.c")
CALLS = ("mmap", "size", "fork", "thread", "mq_open", "open", "write", "fsync")
# Nothing takes as long but what hangs.
LIMIT_S = 60.0

PROGRAM = """
from mpi4py import MPI
data = bytearray(200_000)
MPI.COMM_WORLD.Bcast(data)
assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.size
"""
SMALL = ("--set", "iterations=2", "--set", "size_bytes=0", "--set", "coalescing=timeout,stream")


def _mpirun(directory: Path, engine: str) -> list[str]:
    program = directory / "program.py"
    program.write_text(PROGRAM)
    limit = ["--timeout", f"{patient(LIMIT_S) / 2:g}"]
    return ["mpirun", "-n", "2", "--engine", engine, *limit, sys.executable, str(program)]


def _run(*options: str) -> list[str]:
    return ["run", "smoke/pingpong", *SMALL, *options]


# By name, what is to be told of a directory.
COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "mpirun": lambda directory: _mpirun(directory, "forked"),
    "mpirun-simulated": lambda directory: _mpirun(directory, "simulated"),
    "run": lambda directory: _run(),
    "run-simulated": lambda directory: _run("--engine", "simulated"),
    "workers": lambda directory: _run("--engine", "simulated", "--workers", "2"),
}


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
    library: Path, directory: Path, call: str, arguments: list[str], numbers: range
) -> Iterator[Outcome]:
    """Each outcome of a command of shrimpmx, of as many calls of these numbers as it makes."""
    for number in numbers:
        count = directory / "count"
        count.write_bytes(bytes(8))
        place = directory / f"{call}-{number}"
        place.mkdir()
        found = _outcome(library, count, place, call, number, arguments)
        if int.from_bytes(count.read_bytes(), sys.byteorder) < number:
            return
        yield found


def _outcome(
    library: Path, count: Path, place: Path, call: str, number: int, arguments: list[str]
) -> Outcome:
    settings = {
        "LD_PRELOAD": str(library),
        "FAILING_CALL": call,
        "FAILING_AT": str(number),
        "FAILING_COUNT": str(count),
        "OPENBLAS_NUM_THREADS": "1",
    }
    before = ProcessState.now()
    with subprocess.Popen(
        [sys.executable, "-m", "shrimpmx", *arguments],
        env={**os.environ, **settings},
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
    left = settled_changes(before)
    if left:
        end_children(before)
    return Outcome(
        call,
        number,
        process.returncode,
        said,
        faults + left + _complaints(process.returncode, said),
    )


def _complaints(code: int, said: str) -> list[str]:
    found = []
    if code not in (0, 2, 3):
        found.append("its exit code")
    if "Traceback" in said:
        found.append("a traceback")
    if code != 0 and not any(line.startswith("shrimpmx: ") for line in said.splitlines()):
        found.append("no sentence")
    return found
