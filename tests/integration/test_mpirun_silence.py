"""What `shrimpmx mpirun` says of ranks that wait for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

pytest.importorskip("mpi4py")
Captured = pytest.CaptureFixture[str]

# Rank 0 waits for what nobody sends, rank 2 has ended; the others wait in calls of other kinds.
STUCK = """
    import sys

    own = world.Split(rank < 4, -rank)
    own.Set_name("turned")
    if rank == 0:
        world.Recv(np.zeros(8), source=1, tag=5)
    elif rank == 1:
        world.Send(np.zeros(2), dest=0, tag=6)
        world.Barrier()
    elif rank == 2:
        sys.exit(3)
    elif rank == 3:
        MPI.Request.Waitany([own.Irecv(np.zeros(1), source=2), world.Irecv(np.zeros(1), 0)])
    elif rank == 4:
        world.Ssend(np.zeros(1), dest=3, tag=9)
    else:
        own.Dup().Probe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
    """


def report_of(said: str) -> dict[str, str]:
    """What is said of each rank, in a report of silence."""
    _, _, report = said.partition("every rank waits, and no message has moved for 0.5 s:\n")
    report, _, _ = report.partition("shrimpmx: the run goes on\n")
    entries = ("\n" + report).split("\n  rank")[1:]
    return {"rank" + entry.split(": ")[0]: entry.split(": ", 1)[1].rstrip() for entry in entries}


def test_ranks_that_all_wait_are_reported_once_and_named_at_the_end(
    tmp_path: Path, capfd: Captured
) -> None:
    program = mpi_program(tmp_path, STUCK, MPI4PY)
    assert main(["mpirun", "-n", "6", "--silence", "0.5", "--timeout", "10", *program]) == 124
    said = capfd.readouterr().err
    assert said.count("every rank waits") == 1
    report = report_of(said)
    calls = {name: words.splitlines()[0] for name, words in report.items()}
    in_world = "in MPI_COMM_WORLD"
    assert calls == {
        "rank0": f"MPI_Recv from rank 1, tag 5, {in_world}",
        "rank1": f"MPI_Barrier {in_world}, for rank 0",
        "rank2": "MPI_Finalize, for rank 0",
        "rank3": "MPI_Waitany from rank 2 (rank 1 of the world), any tag, in turned",
        "rank4": f"MPI_Ssend to rank 3, tag 9, {in_world}",
        "rank5": calls["rank5"],
    }
    assert calls["rank5"].startswith("MPI_Probe from any rank, any tag, in communicator 0x8400")
    assert f"from rank 1, tag 6, 16 B, {in_world}" in report["rank0"]
    late = said.splitlines()[-1]
    for name, words in calls.items():
        assert f"{name} ({words}" in late
    assert "Recv(np.zeros(8), source=1, tag=5))" in late
    assert "gone" not in late


def test_a_run_goes_on_after_a_silence(tmp_path: Path, capfd: Captured) -> None:
    text = """
        import threading, time

        def later():
            time.sleep(2)
            world.send("at last", dest=0)

        if rank == 0:
            threading.Thread(target=later).start()
            world.recv()
        world.Barrier()
        """
    program = mpi_program(tmp_path, text, MPI4PY)
    assert main(["mpirun", "-n", "2", "--silence", "0.5", *program]) == 0
    said = capfd.readouterr().err
    assert report_of(said) == {
        "rank0": "MPI_Mprobe from any rank, any tag, in MPI_COMM_WORLD\n"
        "    has from rank 1, of a collective call, 0 B, in MPI_COMM_WORLD",
        "rank1": "MPI_Barrier in MPI_COMM_WORLD, for rank 0",
    }


@pytest.mark.parametrize("silence", ["0.5", "0"])
def test_a_rank_that_computes_breaks_the_silence(
    silence: str, tmp_path: Path, capfd: Captured
) -> None:
    act, limit, code = ("time.sleep(2)", "40", 0)
    if silence == "0":
        act, limit, code = ("world.Recv(np.zeros(1))", "4", 124)
    text = f"""
        import time

        if rank == 0:
            {act}
        world.Barrier()
        """
    program = mpi_program(tmp_path, text, MPI4PY)
    words = ["mpirun", "-n", "2", "--silence", silence, "--timeout", limit, *program]
    assert main(words) == code
    assert "every rank waits" not in capfd.readouterr().err
