"""A signal's handler that raises an exception ends the call of MPI in which its rank waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from support.conditions import patient
from support.listening import LISTENS, all_of, ended, engines, running

import shrimpmx

pytest.importorskip("mpi4py")

WAITS = {
    "recv": "world.recv(source=other, tag=9)",
    "Recv": "world.Recv(bytearray(8), source=other, tag=9)",
    "recv where errors are fatal": "fatal.recv(source=other, tag=9)",
    "probe": "world.probe(source=other, tag=9)",
    "Ssend": "world.Ssend(bytes(100_000), dest=other, tag=8)",
    "sendrecv": "world.sendrecv(bytes(100_000), dest=other, sendtag=8, source=other, recvtag=9)",
    "Sendrecv": "world.Sendrecv(bytes(100_000), other, 8, bytearray(8), other, 9)",
    "Wait": "world.Irecv(bytearray(8), source=other, tag=7).Wait()",
    "Waitall": "MPI.Request.Waitall([world.Irecv(bytearray(8), source=other, tag=7)])",
    "Waitany": "MPI.Request.Waitany([world.Irecv(bytearray(8), source=other, tag=7)])",
    "Waitsome": "MPI.Request.Waitsome([world.Irecv(bytearray(8), source=other, tag=7)])",
    "Barrier": "again.Barrier()",
    "bcast": "again.bcast(bytes(100_000), root=other)",
}


@pytest.mark.nightly("each call on each engine", but=2)
@engines
@pytest.mark.parametrize("call", WAITS)
def test_a_handler_ends_the_call_that_waits_by_what_it_raises(
    call: str, engine: str, tmp_path: Path
) -> None:
    """The exception comes where the program called; later receives get what is sent later."""
    # Simulated ranks that all wait are a deadlock, which ends the run.
    sleeps = call == "Barrier" or engine == "simulated"
    text = f"""
        other = 1 - world.rank
        again, fatal = world.Dup(), world.Dup()
        fatal.Set_errhandler(MPI.ERRORS_ARE_FATAL)
        # Rank 0 sleeps in its turn of the simulation when rank 1 waits.
        world.send(None, dest=0) if world.rank else world.recv(source=1)
        try:
            say("up")
            {WAITS[call]}{" if world.rank else time.sleep(1000)" * sleeps}
        except KeyboardInterrupt:
            say("ended")
        other_world = world.Dup()
        world.Barrier()  # the other's receive, if it still waits, would take the message
        requests = [world.isend(f"late {{number}}", dest=other, tag=9) for number in range(2)]
        for _ in requests:
            say(world.recv(source=other, tag=9))
        say(other_world.sendrecv("other", dest=other, source=other))
        MPI.Request.Waitall(requests)
        """
    grace = ("--grace", f"{patient(40):g}")
    with running(engine, 2, text, tmp_path / "waits.py", *grace) as run:
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        said, err, code = ended(run, tmp_path)
    words = ("ended", "late 0", "late 1", "other")
    assert said == [line for each in words for line in all_of(each, 2)], err
    assert code == 130
    assert "did not end" not in err


@pytest.mark.nightly("each send on each engine", but=2)
@engines
@pytest.mark.parametrize(
    "send",
    [
        "Ssend(bytes(8), 1)",
        "Send(bytes(200_000), 1)",
        "Sendrecv_replace(bytearray(200_000), 1, source=1)",
        "ssend('x', 1)",
    ],
)
def test_a_send_that_a_handler_has_ended_leaves_no_message(
    send: str, engine: str, tmp_path: Path
) -> None:
    text = f"""
        heard_it = "{tmp_path}/heard"

        def interrupt(number, frame):
            open(heard_it, "w").close()
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        say("up")
        if world.rank == 0:
            world.send("goes to sleep", dest=1, tag=8)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                world.{send}
            except KeyboardInterrupt:
                world.send("ended", dest=1, tag=9)
        else:
            world.recv(source=0, tag=8)
            while not os.path.exists(heard_it):
                time.sleep(0.01)
            assert world.recv(source=0, tag=9) == "ended"
            try:
                world.Recv(bytearray(300_000), source=0, tag=0)
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_OTHER
                say("got none")
        """
    with running(engine, 2, text, tmp_path / "withdrawn.py") as run:
        said, err, code = ended(run, tmp_path)
    assert (said, code) == (["got none 1\n"], 0), err


def test_a_world_of_one_hears_a_signal(tmp_path: Path) -> None:
    text = """
        try:
            say("up")
            world.recv(source=0)
        except KeyboardInterrupt:
            say("ended")
        """
    place = tmp_path / "alone.py"
    place.write_text(LISTENS + textwrap.dedent(text))
    library = Path(shrimpmx.__file__).parent / "mpi/lib/libmpi.so.12"
    with subprocess.Popen(
        [sys.executable, str(place)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MPI4PY_LIBMPI": str(library)},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up 0\n"
            time.sleep(0.5)  # now it waits
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=patient(50))
        finally:
            process.kill()
    assert (said, process.returncode) == ("ended 0\n", 0)
