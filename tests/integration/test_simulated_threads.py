"""Threads of programs on simulated hosts, and what such a program does beside its calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

pytest.importorskip("mpi4py")

THREADS = """
import threading
import time

comms = [world.Dup() for _ in range(4)]
found = []


def collect(number):
    time.sleep(0.02 * rank)
    found.append(comms[number].allreduce(rank + number))
    comms[number].Barrier()


threads = [threading.Thread(target=collect, args=(number,)) for number in range(1, 4)]
for thread in threads:
    thread.start()
for turn in range(20):
    assert comms[0].sendrecv(turn, (rank + 1) % size, 0, None, (rank - 1) % size, 0) == turn
for thread in threads:
    thread.join()
assert sorted(found) == [sum(range(size)) + size * number for number in range(1, 4)]

heard = []


def listen(tag):
    status = MPI.Status()
    world.Probe(MPI.ANY_SOURCE, tag, status)
    heard.append(world.recv(source=status.source, tag=tag))


threads = [threading.Thread(target=listen, args=(40 + number,)) for number in range(4)]
for thread in threads:
    thread.start()
time.sleep(0.05)
for number in (2, 0, 3, 1):
    world.send(number, (rank + 1) % size, 40 + number)
for thread in threads:
    thread.join()
assert sorted(heard) == list(range(4))
print("done")
"""


# A thread tests in a loop, with pauses or without, for what another rank has to do.
TESTS = """
import threading
import time


def test(pause_s, begin):
    request = begin()
    while not request.Test():
        time.sleep(pause_s)


for pause_s in (0, 1e-4):
    for begin in (world.Ibarrier, lambda: world.irecv(source=left, tag=pause_s > 0)):
        world.isend(rank, dest=right, tag=pause_s > 0)
        thread = threading.Thread(target=test, args=(pause_s, begin))
        thread.start()
        thread.join()
print("done")
"""

CLOSED = """
import os

world.Barrier()
os.closerange(3, 4096)
with open(os.devnull) as other:
    assert world.allreduce(rank) == sum(range(size))
"""

# A thread and its rank wait for what nobody sends.
STUCK = """
import threading

threading.Thread(target=lambda: world.recv(source=right, tag=7), daemon=True).start()
world.recv(source=right, tag=8)
"""

# Rank 1 waits for a file of rank 0, which waits for rank 1.
BY_A_FILE = """
import os

if rank == 0:
    os.mkfifo("pipe")
world.Barrier()
if rank == 0:
    world.recv(source=1)
    open("pipe", "w").close()
else:
    open("pipe").close()
    world.send(1, dest=0)
"""

STOPPED = """
import os
import signal

world.Barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
world.Barrier()
"""
Captured = pytest.CaptureFixture[str]


def mpirun(program: list[str], *more: str, ranks: int = 2) -> int:
    return main(["mpirun", "-n", str(ranks), "--engine", "simulated", *more, *program])


@pytest.mark.nightly("each strategy", but=2)
@pytest.mark.parametrize("wait", ["spin-block", "block", "spin", "sched", "notify"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_threads_that_wait_sleep_and_join_go_on(
    tmp_path: Path, wait: str, ranks: int, capfd: Captured
) -> None:
    program = mpi_program(tmp_path, THREADS, MPI4PY)
    limit = f"--timeout={patient(60)}"
    assert mpirun(program, "--set", f"wait={wait}", limit, ranks=ranks) == 0
    assert capfd.readouterr().out.split() == ["done"] * ranks


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_thread_that_tests_in_a_loop_lets_other_ranks_go_on(
    tmp_path: Path, ranks: int, capfd: Captured
) -> None:
    program = mpi_program(tmp_path, TESTS, MPI4PY)
    assert mpirun(program, f"--timeout={patient(60)}", ranks=ranks) == 0
    assert capfd.readouterr().out.split() == ["done"] * ranks


def test_a_program_may_close_descriptors_that_it_has_not_opened(tmp_path: Path) -> None:
    assert mpirun(mpi_program(tmp_path, CLOSED, MPI4PY)) == 0


def test_a_deadlock_is_told_though_there_are_threads(tmp_path: Path, capfd: Captured) -> None:
    assert mpirun(mpi_program(tmp_path, STUCK, MPI4PY)) == 3
    last = capfd.readouterr().err.splitlines()[-1]
    assert "no rank can make progress" in last
    assert all(rank in last for rank in ("rank0", "rank1"))


@pytest.mark.nightly("seconds of silence")
@pytest.mark.parametrize(
    ("text", "told"), [(BY_A_FILE, "outside the simulation"), (STOPPED, "kill -CONT")]
)
def test_what_a_rank_that_makes_no_call_does_is_told(
    tmp_path: Path, text: str, told: str, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = mpi_program(tmp_path, text, MPI4PY)
    assert mpirun(program, f"--timeout={patient(12)}") == 124
    *_, early, late = capfd.readouterr().err.splitlines()
    assert [line for line in (early, late) if "rank1" not in line or told not in line] == []
