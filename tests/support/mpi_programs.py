"""Programs that join and leave a run as an MPI program does, and programs of mpi4py."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

# `rank` is there, and the others of the run are; finalize() ends its part, and the process goes on.
JOINED = """
    import os
    import signal
    import subprocess
    import sys
    import time

    import shrimpmx

    session = shrimpmx.join()
    rank = session.__enter__()
    number = rank.number

    def finalize():
        session._control.set_runner_state(session._me.runner, "done")

    def wait_for_ever():
        rank.endpoint.recv(bytearray(8))

    """


# For a program of mpi4py.
MPI4PY = """
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size
"""


def mpi_program(directory: Path, text: str, head: str = JOINED) -> list[str]:
    """The command of a Python program that begins with JOINED or MPI4PY."""
    path = directory / "program.py"
    path.write_text(textwrap.dedent(head) + textwrap.dedent(text))
    return [sys.executable, str(path)]


def without_pauses(said: str) -> list[str]:
    """The lines that `mpirun` has said, but for those that tell of a pause."""
    return [line for line in said.splitlines() if "stood still" not in line]
