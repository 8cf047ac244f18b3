"""What MPI_Init does in Python: it starts the world of which this process is a rank."""

from __future__ import annotations

import importlib
import sys

from shrimpmx.errors import ShrimpmxError


def start(required: int) -> tuple[object, int]:
    """The capsule of the world's function table, and the level of threads that it provides.

    `required` and the level are MPI's, 0 MPI_THREAD_SINGLE to 3 MPI_THREAD_MULTIPLE. An error of
    the user's is printed as one sentence and becomes SystemExit; MPI_Init then ends the process.
    """
    try:
        world = importlib.import_module("shrimpmx.mpi.world")
        return world.start(required), world.provided
    except ShrimpmxError as error:
        print(f"shrimpmx: {error}", file=sys.stderr)
        raise SystemExit(2) from None
