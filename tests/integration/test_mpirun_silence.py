"""What `shrimpmx mpirun` says of ranks that wait for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program, without_pauses

from shrimpmx.cli import main
from shrimpmx.cli.mpi_report import CLASSES

pytest.importorskip("mpi4py")
GOES_ON = "shrimpmx: the run goes on\n"
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
        world.Recv(np.zeros(1), source=0, tag=7)
    elif rank == 3:
        MPI.Request.Waitany([own.Irecv(np.zeros(1), source=2), world.Irecv(np.zeros(1), 0)])
    elif rank == 4:
        world.Ssend(np.zeros(1), dest=3, tag=9)
    else:
        own.Dup().Probe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
    """


def report_of(said: str) -> dict[str, str]:
    """What is said of each rank, in the first report of silence."""
    _, _, report = said.partition("every rank waits, and no message has moved for")
    report, _, _ = report.partition(GOES_ON)
    entries = ("\n" + report).split("\n  rank")[1:]
    return {"rank" + entry.split(": ")[0]: entry.split(": ", 1)[1].rstrip() for entry in entries}


def said_with(words: str, process: subprocess.Popen[str]) -> str:
    """The report that has these words: on a loaded machine one may come before the last message
    has; another one follows.
    """
    said = ""
    assert process.stderr is not None
    while words not in said and process.poll() is None:
        said = ""
        while GOES_ON not in said and process.poll() is None:
            said += process.stderr.readline()
    return said


def interrupted_report(ranks: int, program: list[str]) -> dict[str, str]:
    """The report of a run that is silent, and is ended by Ctrl-C behind it."""
    words = ["mpirun", "-n", str(ranks), "--silence", "0.5", *program]
    with subprocess.Popen(
        [sys.executable, "-m", "shrimpmx", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = said_with("has from rank 1", process)
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert process.returncode == 130
    return report_of(said)


def test_ranks_that_all_wait_are_reported(tmp_path: Path) -> None:
    report = interrupted_report(6, mpi_program(tmp_path, STUCK, MPI4PY))
    calls = {name: words.splitlines()[0] for name, words in report.items()}
    in_world = "in MPI_COMM_WORLD"
    assert calls == {
        "rank0": f"MPI_Recv from rank 1, tag 5, {in_world}",
        "rank1": f"MPI_Barrier {in_world}, for rank 0",
        "rank2": f"MPI_Recv from rank 0, tag 7, {in_world}",
        "rank3": "MPI_Waitany from rank 2 (rank 1 of the world), any tag, in turned",
        "rank4": f"MPI_Ssend to rank 3, tag 9, {in_world}",
        "rank5": calls["rank5"],
    }
    assert calls["rank5"].startswith("MPI_Probe from any rank, any tag, in communicator 0x8400")
    assert f"has from rank 1, tag 6, 16 B, {in_world}" in report["rank0"]


def test_the_length_of_a_message_above_4_gib_is_its_own(tmp_path: Path) -> None:
    """Of memory that nobody writes to: only the head of the message travels."""
    text = """
        import mmap

        if rank == 1:
            data = mmap.mmap(-1, 5 << 30, mmap.MAP_PRIVATE, mmap.PROT_READ)
            world.Isend([data, 5 << 30, MPI.BYTE], 0, 7)
        world.Recv(bytearray(1), 1 - rank, 9)
        """
    report = interrupted_report(2, mpi_program(tmp_path, text, MPI4PY))
    assert f"has from rank 1, tag 7, {5 << 30} B, in MPI_COMM_WORLD" in report["rank0"]


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("silence", "\x1b]0;x\x07\nshrimpmx: all is well"),
        ("timeout", "\x9b2J\r\u202e\u061c\U000e0041\nshrimpmx: all is well"),
    ],
)
def test_a_name_of_a_communicator_commands_no_terminal_and_forges_no_line(
    way: str, name: str, tmp_path: Path
) -> None:
    text = f"""
        world.Set_name({name!r})
        world.Recv(np.zeros(8), source=1 - rank, tag=5)
        """
    limit = f"{patient(10 if way == 'timeout' else 60):g}"
    limits = ("--silence", "0.5" if way == "silence" else "0", "--timeout", limit)
    words = ["mpirun", "-n", "2", *limits, *mpi_program(tmp_path, text, MPI4PY)]
    with subprocess.Popen(
        [sys.executable, "-m", "shrimpmx", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = said_with("MPI_Recv", process)
        if way == "silence":
            process.send_signal(signal.SIGINT)
        said += process.stderr.read()
    assert "MPI_Recv" in said
    assert all(letter.isprintable() for line in said.split("\n") for letter in line)
    assert not any(line.startswith("shrimpmx: all") for line in said.splitlines())


def test_a_call_within_another_is_not_named(tmp_path: Path) -> None:
    """MPI_Finalize deletes attributes, by functions of the program's."""
    text = """
        def delete(comm, key, value):
            MPI.Comm.Free_keyval(MPI.Comm.Create_keyval())

        MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(delete_fn=delete), 3)
        if rank == 1:
            world.recv(source=0)
        """
    options = ("-n", "2", "--silence", "0.5", "--timeout", f"{patient(60):g}")
    command = [sys.executable, "-m", "shrimpmx", "mpirun", *options]
    with subprocess.Popen(
        [*command, *mpi_program(tmp_path, text, MPI4PY)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = said_with("rank0: ", process)
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert report_of(said)["rank0"] == "MPI_Finalize, for rank 1"


@pytest.mark.nightly("each engine")
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_a_deadlock_that_a_timeout_ends_names_the_calls_and_needs_no_more_time(
    engine: str, tmp_path: Path, capfd: Captured
) -> None:
    text = """
        world.Recv(np.zeros(8), source=1 - rank, tag=5)
        """
    program, limit = mpi_program(tmp_path, text, MPI4PY), f"{patient(10):g}"
    words = ["--engine", engine, "--silence", "0", "--timeout", limit]
    code = main(["mpirun", "-n", "2", *words, *program])
    assert code == {"forked": 124, "simulated": 3}[engine]
    *before, late = capfd.readouterr().err.splitlines()
    assert not any("every rank waits" in line for line in before)
    for rank in (0, 1):
        assert f"rank{rank}: MPI_Recv from rank {1 - rank}, tag 5, in MPI_COMM_WORLD" in late
    assert "raise" not in late
    if engine == "forked":
        assert "every rank waits, and no message has moved for" in late
        assert late.count("at program.py:") == 2


@pytest.mark.nightly("seconds of silence")
def test_a_timeout_of_ranks_that_compute_names_what_each_does(
    tmp_path: Path, capfd: Captured
) -> None:
    text = """
        while rank == 0:
            pass
        world.Recv(np.zeros(8), source=0, tag=5)
        """
    program, limit = mpi_program(tmp_path, text, MPI4PY), f"{patient(10):g}"
    assert main(["mpirun", "-n", "2", "--silence", "0", "--timeout", limit, *program]) == 124
    late = capfd.readouterr().err.splitlines()[-1]
    assert late.startswith(f"shrimpmx: the run did not end within {limit} s because of ")
    assert "rank0 (in no call of MPI at program.py:" in late
    assert late.endswith("raise --timeout if it needs longer")


# Rank 1 is in no call, and so acknowledges nothing, until rank 0 shows that it has sent again.
UNACKNOWLEDGED = """
    import os, pathlib, threading, time
    from shrimpmx.cluster.live.attach import AttachedRun
    from shrimpmx.cluster.live.runs import live_runs

    left, done = pathlib.Path("left"), pathlib.Path("done")

    def watch():
        (run,) = [run for run in live_runs() if run.pid == os.getppid()]
        with AttachedRun(run) as live:
            infos = [live.control.runner_info(n) for n in range(live.control.runners_count)]
            me = next(n for n, info in enumerate(infos) if info["pid"] == os.getpid())
            while not ((wait := live.control.runner_wait(me)) and wait["resends"] > 2):
                time.sleep(0.01)
        print(wait["call"], wait["unacked"] > 0)
        done.touch()

    world.Barrier()
    if rank == 0:
        watcher = threading.Thread(target=watch)
        watcher.start()
        while not left.exists():  # in the barrier it would acknowledge
            time.sleep(0.01)
        world.Send(np.zeros(1), dest=1)
        world.Recv(np.zeros(1), source=1)
        watcher.join()
    else:
        left.touch()
        while not done.exists():
            time.sleep(0.01)
        world.Recv(np.zeros(1), source=0)
        world.Send(np.zeros(1), dest=0)
    """


def test_ranks_show_what_they_send_again(tmp_path: Path, capfd: Captured) -> None:
    program = mpi_program(tmp_path, UNACKNOWLEDGED, MPI4PY)
    words = ("--wdir", str(tmp_path), "--set", "resend-delay-ns=20000000", "--report")
    assert main(["mpirun", "-n", "2", *words, *program]) == 0
    said = capfd.readouterr()
    assert said.out == "MPI_Recv True\n"
    head, *ranks = (line.split() for line in without_pauses(said.err)[1:4])
    # Each class of messages takes three words: near + far.
    again = [int(rank[head.index("again") + 2 * len(CLASSES)]) for rank in ranks]
    assert again[0] > 2
    assert f"sent again: {sum(again)} messages of ranks" in said.err


def test_a_run_goes_on_after_a_silence(tmp_path: Path) -> None:
    told = tmp_path / "told"
    text = f"""
        import os, threading, time

        def later():
            while not os.path.exists({str(told)!r}):
                time.sleep(0.01)
            world.send("at last", dest=0)

        if rank == 0:
            threading.Thread(target=later).start()
            world.recv()
        world.Barrier()
        """
    words = ["mpirun", "-n", "2", "--silence", "0.5", *mpi_program(tmp_path, text, MPI4PY)]
    with subprocess.Popen(
        [sys.executable, "-m", "shrimpmx", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        said = said_with("has from rank 1", process)
        told.touch()
        assert process.stderr is not None
        process.stderr.read()
    assert process.returncode == 0
    assert report_of(said) == {
        "rank0": "MPI_Mprobe from any rank, any tag, in MPI_COMM_WORLD; "
        "another thread of it may still act\n"
        "    has from rank 1, of a collective call, 0 B, in MPI_COMM_WORLD",
        "rank1": "MPI_Barrier in MPI_COMM_WORLD, for rank 0",
    }


@pytest.mark.nightly("seconds of silence")
def test_a_rank_that_computes_breaks_the_silence(tmp_path: Path, capfd: Captured) -> None:
    text = f"""
        import time

        if rank == 0:
            time.sleep({patient(6)})
        world.Barrier()
        """
    program, silence = mpi_program(tmp_path, text, MPI4PY), f"{patient(2.5):g}"
    assert main(["mpirun", "-n", "2", "--silence", silence, *program]) == 0
    assert "every rank waits" not in capfd.readouterr().err
