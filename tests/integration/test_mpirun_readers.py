"""`shrimpmx mpirun`, where a reader of its output takes nothing, or goes: it ends all the same."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.conditions import patient, wait_until

from shrimpmx.cli import main
from shrimpmx.cluster.engine import forked
from shrimpmx.cluster.engine.diagnosis import process_state
from shrimpmx.simulation import programs

Captured = pytest.CaptureFixture[str]


@contextmanager
def unread(number: int) -> Iterator[int]:
    """Standard output or error goes to a pipe that is not read while the block runs."""
    before = os.dup(number)
    reader, writer = os.pipe()
    os.dup2(writer, number)
    os.close(writer)
    try:
        yield reader
    finally:
        os.dup2(before, number)
        os.close(before)
        os.close(reader)


@pytest.mark.nightly("each stream")
@pytest.mark.parametrize(
    ("script", "timeout", "code", "words"),
    [
        ("yes", 5, 124, f"the run did not end within {patient(5):g} s"),
        ("echo y; yes & sleep 0.3; exit 5", 30, 5, "ended with exit code 5"),
    ],
    ids=["deadline", "failed rank"],
)
def test_tagged_output_that_is_not_read_keeps_no_run_from_its_end(
    script: str,
    timeout: float,
    code: int,
    words: str,
    capfd: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forked, "PATIENCE_S", 0.1)
    limit = f"{patient(timeout):g}"
    command = ["-n", "1", "--timeout", limit, "--tag-output", "sh", "-c", script]
    with unread(1) as reader:
        assert main(["mpirun", *command]) == code
        assert os.read(reader, 6) == b"[0] y\n"
    assert words in capfd.readouterr().err


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_a_reader_that_takes_nothing_is_named(
    engine: str, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the ranks from their calls, and virtual time from going on."""
    monkeypatch.setattr(programs, "TOLD_S", 0.1)
    monkeypatch.setattr(forked, "PATIENCE_S", 0.1)
    limit = ("--timeout", f"{patient(2):g}")
    with unread(1):
        assert main(["mpirun", "-n", "2", "--engine", engine, *limit, "yes"]) == 124
    said = capfd.readouterr().err
    assert "no call for" not in said
    assert "nobody reads the ranks' output" in said.splitlines()[-1]


# Of all kinds of lengths; each thousandth line is longer than what is kept of one.
MUCH = """
import os
import sys

rank, left, number = os.environ["PMI_RANK"], int(sys.argv[1]), 0
while left > 0:
    padding = "x" * (number * 37 % 200 if number % 1000 else 100_000)
    left -= sys.stdout.write(f"rank {rank} line {number} {padding}\\n")
    number += 1
"""
MUCH_BYTES = 5_000_000
LINE = re.compile(rb"(\[\d\] )?rank (\d) line (\d+) (x*)\n")


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("options", [(), ("--tag-output",)], ids=["plain", "tagged"])
def test_much_output_reaches_a_slow_reader_whole(options: tuple[str, ...], engine: str) -> None:
    """It takes small bites of the first part, and then what there is."""
    words = ["mpirun", "-n", "4", "--engine", engine, *options, sys.executable, "-c", MUCH]
    command = [sys.executable, "-m", "shrimpmx", *words, f"{MUCH_BYTES}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout is not None
        bites = []
        for _ in range(500):
            time.sleep(0.001)
            bites.append(os.read(run.stdout.fileno(), 4000))
        found = b"".join(bites) + run.communicate(timeout=patient(60))[0]
    assert run.returncode == 0
    numbers, sizes = [0] * 4, [0] * 4
    for line in found.splitlines(keepends=True):
        parts = LINE.fullmatch(line)
        assert parts, line[:100]
        rank, number = int(parts[2]), int(parts[3])
        assert (number, bool(options)) == (numbers[rank], parts[1] == b"[%d] " % rank)
        assert len(parts[4]) == (number * 37 % 200 if number % 1000 else 100_000)
        numbers[rank] += 1
        sizes[rank] += len(line.removeprefix(parts[1] or b""))
    assert min(sizes) >= MUCH_BYTES


@pytest.mark.nightly("another end of a reader")
def test_a_terminal_that_is_closed_ends_a_run_by_its_signal() -> None:
    user, program = pty.openpty()
    words = ["mpirun", "-n", "1", "sh", "-c", "echo up; sleep 50"]
    command = ["setsid", "--ctty", sys.executable, "-m", "shrimpmx", *words]
    with subprocess.Popen(command, stdin=program, stdout=program, stderr=program) as run:
        os.close(program)
        found = b""
        while b"up" not in found:
            found += os.read(user, 65536)
        os.close(user)
        assert run.wait(patient(40)) == 128 + signal.SIGHUP


def test_without_standard_error_notices_are_lost(tmp_path: Path) -> None:
    run = f"{sys.executable} -m shrimpmx mpirun -n 1 --output {tmp_path / 'r'} echo up 2>&-"
    done = subprocess.run(["sh", "-c", run], capture_output=True, check=True, timeout=patient(50))
    assert done.stdout == b"up\n"


@pytest.mark.nightly("each stream")
def test_a_notice_without_a_reader_ends_no_run(tmp_path: Path) -> None:
    """The ranks print on standard output, which is read; the supervisor speaks on the other."""
    reader, writer = os.pipe()
    os.close(reader)
    noted = tmp_path / "pid"
    words = ["mpirun", "-n", "1", "--tag-output", "sh", "-c"]
    script = f"echo $$ > {noted}; kill -STOP $$; echo up"
    command = [sys.executable, "-m", "shrimpmx", *words, script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer) as run:
        os.close(writer)
        wait_until(lambda: noted.exists() and noted.read_text().endswith("\n"), "its pid")
        pid = int(noted.read_text())
        wait_until(lambda: process_state(pid) == "stopped", "it is stopped")
        time.sleep(patient(3))  # a rank that is stopped is named after two seconds
        os.kill(pid, signal.SIGCONT)
        assert run.communicate(timeout=patient(40))[0] == b"[0] up\n"
        assert run.returncode == 0
