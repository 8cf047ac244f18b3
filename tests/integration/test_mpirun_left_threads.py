"""A rank that ends while others wait for it, and have threads: which of these keep the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.conditions import patient, wait_until
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main
from shrimpmx.cluster.engine.silence import Silence

pytest.importorskip("mpi4py")

Captured = pytest.CaptureFixture[str]

# Later than a run without such a thread is given up.
LATE_S = 6

# What the thread of each rank does, and the waits that it can end as far as anyone knows.
THREADS = {
    "ticks": "while True: time.sleep(0.2)",
    "waits for work": "lock.acquire()",
    "polls": "while True: world.Iprobe(tag=3); time.sleep(0.005)",
}
WAITS = {
    "Barrier": "world.Barrier()",
    "receive": "world.recv(source=1, tag=9)",
    "collective request": "world.Ibarrier().Wait()",
}


def mpirun(directory: Path, engine: str, text: str, *more: str) -> int:
    program = mpi_program(directory, text, MPI4PY)
    limit = f"--timeout={patient(60):g}"
    return main(["mpirun", "-n", "2", "--engine", engine, limit, *more, *program])


@pytest.mark.nightly("each kind of thread")
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize(
    ("thread", "wait"),
    [
        *((thread, wait) for thread in THREADS.values() for wait in WAITS.values()),
        (THREADS["waits for work"], "world.recv(tag=9)"),
        (THREADS["waits for work"], "world.irecv(source=1, tag=9).wait()"),
    ],
)
def test_a_thread_that_cannot_help_keeps_no_run(
    thread: str, wait: str, engine: str, tmp_path: Path, capfd: Captured
) -> None:
    text = f"""
        import sys, threading, time

        lock = threading.Lock()
        lock.acquire()

        def act():
            {thread}

        threading.Thread(target=act, daemon=True).start()
        world.Barrier()
        if rank == 1:
            sys.exit(4)
        {wait}
        """
    assert mpirun(tmp_path, engine, text) == 4
    assert capfd.readouterr().err.splitlines()[-1].startswith("shrimpmx: rank1 (pid ")


@pytest.mark.nightly("each kind of thread")
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize(
    ("wait", "help_it"),
    [
        ("print(world.recv(tag=9))", "world.send('late', dest=0, tag=9)"),
        ("print(world.recv(source=0, tag=9))", "world.send('late', dest=0, tag=9)"),
        ("request.Wait(); print('late')", "request.Cancel()"),
        # The main thread computes while another one waits.
        ("time.sleep({late_s}); print('late')", "world.recv(source=1, tag=9)"),
    ],
)
def test_a_thread_that_may_help_keeps_the_run_which_tells_of_it(
    wait: str, help_it: str, engine: str, tmp_path: Path, capfd: Captured
) -> None:
    slept = 0 if "recv" in help_it else LATE_S
    text = f"""
        import sys, threading, time

        begun = threading.Event()

        def act():
            begun.wait()
            time.sleep({slept})
            {help_it}

        request = world.Irecv(bytearray(4), source=1, tag=8) if rank == 0 else None
        if rank == 0:
            threading.Thread(target=act, daemon=True).start()
        world.Barrier()
        if rank == 1:
            sys.exit(4)
        begun.set()
        {wait.format(late_s=LATE_S)}
        sys.stdout.flush()
        """
    assert mpirun(tmp_path, engine, text, "--silence=1") == 4
    out, err = capfd.readouterr()
    assert out == "late\n"
    if slept:
        assert "every rank waits" in err
        assert "another thread" in err


def test_a_thread_that_asks_for_its_turn_while_it_is_looked_at_keeps_the_run(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = tmp_path / "asks"
    text = f"""
        import os, sys, threading, time

        def act():
            while not os.path.exists({str(asks)!r}):
                time.sleep(0.01)
            world.send("late", dest=0, tag=9)

        if rank == 0:
            threading.Thread(target=act, daemon=True).start()
        world.Barrier()
        if rank == 1:
            sys.exit(4)
        print(world.recv(tag=9), flush=True)
        """
    are_left = Silence.are_left

    def looks_late(silence: Silence, ended: set[str], *, surely: bool = False) -> bool:
        if not surely and not asks.exists():
            asks.touch()
            wait_until(lambda: are_left(silence, ended), "the thread waits for its turn")
        return are_left(silence, ended, surely=surely)

    monkeypatch.setattr(Silence, "are_left", looks_late)
    assert mpirun(tmp_path, "simulated", text) == 4
    assert capfd.readouterr().out == "late\n"
