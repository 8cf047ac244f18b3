"""Commands whose caller has closed standard streams, or ignores signals, run as ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.results.result import load_result

# What a shell does ahead of the command.
CLOSED = ("exec <&-", "exec >&-", "exec <&- >&-", "exec <&- >&- 2>&-")
IGNORED = ("trap '' CHLD", "trap '' CHLD PIPE HUP TERM INT")
RUN = ("run", "smoke/pingpong", "iterations=2", "warmup=1", "repeats=1", "size_bytes=0")
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": (*RUN, "coalescing=stream", "wait=block"),
    "workers": (*RUN, "--engine", "simulated", "--workers", "2"),
    "mpirun": ("mpirun", "-n", "2"),
    "mpirun-simulated": ("mpirun", "-n", "2", "--engine", "simulated"),
}
# Rank 0 has the command's standard input, and prints nothing: its output may be closed.
PROGRAM = """
    import sys
    assert sys.stdin.read() == ""
    world.Barrier()
    """


@pytest.mark.nightly("each command and caller", but=1)
@pytest.mark.parametrize("shell", [*CLOSED, *IGNORED])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_runs_whatever_its_caller_has_left(name: str, shell: str, tmp_path: Path) -> None:
    program = mpi_program(tmp_path, PROGRAM, MPI4PY) if name.startswith("mpirun") else []
    words = [*COMMANDS[name], "--output", str(tmp_path / "result"), *program]
    done = subprocess.run(
        ["bash", "-c", f'{shell}; exec "$@"', "bash", sys.executable, "-m", "shrimpmx", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patient(50),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert load_result(tmp_path / "result")["complete"]
