"""IMB's benchmarks as the ranks of an emulated cluster."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from shrimpmx.cli import main

pytest.importorskip("mpi4py")

Captured = pytest.CaptureFixture[str]
Tables = dict[tuple[str, int], list[list[float]]]

ALL = (
    *("PingPong", "PingPing", "Sendrecv", "Exchange", "Allreduce", "Reduce", "Reduce_scatter"),
    *("Allgather", "Alltoall", "Alltoallv", "Bcast", "Barrier"),
)


def imb(*words: str, ranks: int = 4, before: tuple[str, ...] = ()) -> int:
    program = (sys.executable, "-m", "shrimpmx.applications.imb")
    return main(["mpirun", "-n", str(ranks), *before, *program, *words])


def tables(text: str) -> Tables:
    """The rows of each benchmark on each number of processes, as a tool for IMB's output does."""
    found: Tables = {}
    name, rows = "", [[0.0]]
    for line in text.splitlines():
        if match := re.match(r"# Benchmarking (\w+)", line):
            name = match[1]
        elif match := re.match(r"# #processes = (\d+)", line):
            rows = found[name, int(match[1])] = []
        elif re.fullmatch(r"[\s\d.]+", line):
            rows.append([float(word) for word in line.split()])
    return found


def test_all_benchmarks_deliver_what_was_sent(capfd: Captured) -> None:
    assert imb("-iter", "3", "-msglen", "0,5,3000,40000", "-check") == 0
    found = tables(capfd.readouterr().out)
    pairs = {(name, 2) for name in ALL}
    assert set(found) == pairs | {(name, 4) for name in ALL if not name.startswith("PingP")}
    for (name, _), rows in found.items():
        sizes = [int(row[0]) for row in rows]
        if name == "Barrier":
            assert sizes == [3]
            continue
        reduces = "duce" in name
        assert sizes == ([0, 4, 3000, 40000] if reduces else [0, 5, 3000, 40000])
        assert {int(row[1]) for row in rows} == {3}
        assert all(row[-1] == 0 for row in rows), name


def test_roots_rotate_over_a_lossy_link_of_three_ranks(capfd: Captured) -> None:
    lossy = ("--set", "loss=0.02", "--set", "resend_delay_ns=10000000")
    words = ("-iter", "6", "-msglen", "0,100", "-root_shift", "on", "-check", "-npmin", "3")
    assert imb("Reduce", "bcast", *words, ranks=3, before=lossy) == 0
    found = tables(capfd.readouterr().out)
    assert {key: [row[-1] for row in rows] for key, rows in found.items()} == {
        ("Reduce", 3): [0, 0],
        ("Bcast", 3): [0, 0],
    }


def test_a_rate_is_that_of_the_time_shown(capfd: Captured) -> None:
    assert imb("PingPong", "-msglog", "14:15", "-iter", "5", ranks=2) == 0
    [(_, rows)] = tables(capfd.readouterr().out).items()
    assert [row[0] for row in rows] == [0, 1 << 14, 1 << 15]
    for size, _, time_us, rate in rows:
        assert rate == pytest.approx(size / max(time_us, 0.01), rel=0.01, abs=0.01)


def test_what_would_not_fit_is_left_out(capfd: Captured) -> None:
    assert imb("Allgather", "-msglen", "10,2000", "-mem", "0.000004", "-iter", "2", ranks=2) == 0
    said = capfd.readouterr().out
    assert [row[0] for row in tables(said)["Allgather", 2]] == [10]
    assert "2000 left out" in said


def test_a_refusal_is_said_once(capfd: Captured, tmp_path: Path) -> None:
    for words, ranks in ((("Pong",), 3), ((), 1)):
        assert imb(*words, ranks=ranks) == 2
        said = capfd.readouterr()
        assert len([line for line in said.err.splitlines() if line.startswith("imb: ")]) == 1
        assert said.out == ""


def test_help_names_the_benchmarks(capfd: Captured) -> None:
    assert imb("-help", ranks=2) == 0
    assert "Reduce_scatter" in capfd.readouterr().out
