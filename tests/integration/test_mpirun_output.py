"""`shrimpmx mpirun`: what ranks print comes out in whole lines, all of it, or the run says so."""

from __future__ import annotations

import errno
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.conditions import patient

RANKS = 4
LINES = 500
# Each print is several writes: the words, the blanks between them, the end of the line.
PRINTS = f"""
import os
for number in range({LINES}):
    print("rank", os.environ["PMI_RANK"], "line", number, flush=True)
"""
LINE = re.compile(rb"(\[\d\] )?rank (\d) line (\d+)\n")

engines = pytest.mark.parametrize("engine", ["forked", "simulated"])
tagged = pytest.mark.parametrize("options", [(), ("--tag-output",)], ids=["plain", "tagged"])


def command(engine: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "shrimpmx", "mpirun", "--engine", engine, *words]


def said(words: Sequence[str], stdout: Any = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        words,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        timeout=patient(60),
    )


@pytest.mark.nightly("each engine and stream", but=2)
@engines
@tagged
@pytest.mark.parametrize("into", ["pipe", "file"])
def test_lines_of_many_ranks_are_whole_and_in_order(
    into: str, options: tuple[str, ...], engine: str, tmp_path: Path
) -> None:
    words = command(engine, "-n", str(RANKS), *options, sys.executable, "-c", PRINTS)
    if into == "file":
        with open(tmp_path / "said", "wb") as file:
            assert said(words, stdout=file).returncode == 0
        lines = (tmp_path / "said").read_bytes().splitlines(keepends=True)
    else:
        lines = said(words).stdout.splitlines(keepends=True)
    numbers: list[list[int]] = [[] for _ in range(RANKS)]
    for line in lines:
        found = LINE.fullmatch(line)
        assert found, line
        assert (found[1] is not None) == bool(options)
        numbers[int(found[2])].append(int(found[3]))
    assert numbers == [list(range(LINES))] * RANKS


@engines
def test_any_bytes_pass_and_errors_stay_apart(engine: str) -> None:
    data = bytes(range(256)) * 1000
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000); sys.stderr.write('no')"
    done = said(command(engine, "-n", "1", sys.executable, "-c", script))
    assert (done.returncode, done.stdout) == (0, data)
    assert done.stderr.endswith(b"no") or b"\nno" in done.stderr


@engines
@tagged
def test_what_children_print_is_kept_and_their_later_words_hold_nothing_up(
    options: tuple[str, ...], engine: str
) -> None:
    script = "sh -c 'echo child'; (sleep 3000; echo late) & printf 'no end'"
    done = said(command(engine, "-n", "2", *options, "sh", "-c", script))
    assert done.returncode == 0
    if options:
        wanted = [b"[0] child", b"[0] no end", b"[1] child", b"[1] no end"]
        assert sorted(done.stdout.splitlines()) == wanted
    else:
        assert done.stdout.count(b"child\n") == done.stdout.count(b"no end") == 2


@pytest.mark.nightly("each engine", but=1)
@engines
@tagged
def test_long_lines_of_two_ranks_stay_whole(options: tuple[str, ...], engine: str) -> None:
    length = 3_000_000
    script = f"import os; print(os.environ['PMI_RANK'] * {length})"
    done = said(command(engine, "-n", "2", *options, sys.executable, "-c", script))
    lines = [
        line.removeprefix(b"[%d] " % rank)
        for rank, line in enumerate(sorted(done.stdout.splitlines()))
    ]
    assert lines == [b"0" * length, b"1" * length]


# What cannot be written to: a full disk and one that fails, as the first bytes of a process do.
BROKEN = [("/dev/full", errno.ENOSPC), ("/proc/self/mem", errno.EIO)]


@pytest.mark.nightly("each stream", but=2)
@engines
@tagged
@pytest.mark.parametrize(("place", "number"), BROKEN, ids=["full", "failing"])
def test_output_that_cannot_be_written_fails_the_run(
    place: str, number: int, options: tuple[str, ...], engine: str
) -> None:
    with open(place, "r+b", buffering=0) as file:
        done = said(command(engine, "-n", "2", *options, "echo", "lost"), stdout=file)
    assert done.returncode == 2
    last = done.stderr.decode().splitlines()[-1]
    assert last == f"shrimpmx: the ranks' output cannot be written: {os.strerror(number)}"


@pytest.mark.nightly("each engine", but=1)
@engines
@tagged
def test_a_rank_may_lose_its_reader(options: tuple[str, ...], engine: str) -> None:
    run = " ".join(command(engine, "-n", "1", *options, "yes"))
    shell = f"{run} | head -1; exit ${{PIPESTATUS[0]}}"
    done = said(["bash", "-c", shell])
    assert done.stdout in (b"y\n", b"[0] y\n")
    assert done.returncode == 128 + signal.SIGPIPE
    assert b"gone" not in done.stderr


@engines
def test_a_terminal_is_the_ranks_own(engine: str) -> None:
    """A prompt appears at once, and a rank sees a terminal; where errors go is none."""
    script = (
        "import sys; print(sys.stdout.isatty(), sys.stderr.isatty(), end='? ', flush=True); input()"
    )
    user, program = pty.openpty()
    words = command(engine, "-n", "1", sys.executable, "-c", script)
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=program, stderr=subprocess.PIPE
    ) as run:
        os.close(program)
        found = b""
        while b"? " not in found:
            found += os.read(user, 1000)
        run.communicate(b"\n", timeout=patient(60))
    os.close(user)
    assert (run.returncode, found) == (0, b"True False? ")
