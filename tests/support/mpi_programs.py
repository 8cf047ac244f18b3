"""Programs that join and leave a run as an MPI program does, in MPI_Init and MPI_Finalize."""

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


def mpi_program(directory: Path, text: str, joined: str = JOINED) -> list[str]:
    """The command of a Python program that has joined when `text` begins."""
    path = directory / "program.py"
    path.write_text(textwrap.dedent(joined) + textwrap.dedent(text))
    return [sys.executable, str(path)]
