"""What MPI_Init does in Python: it starts the world of which this process is a rank."""

from __future__ import annotations

import gc
import sys

from shrimpmx.errors import ShrimpmxError

EXIT_NOT_STARTED = 2


def start(required: int, called: int) -> tuple[object, int, str, int, int]:
    """The capsule of the world's function table, the level of threads that it provides, the file
    that is to keep its calls, "" if they are not traced, and the addresses of their clock and of
    the count of the rank's records in the trace.

    `required` and the level are MPI's, 0 MPI_THREAD_SINGLE to 3 MPI_THREAD_MULTIPLE. `called` is
    the address of a function that tells which function of MPI the calling thread is in. An error
    of the user's is printed as one sentence and becomes SystemExit; MPI_Init then ends the process.
    """
    collects = gc.isenabled()
    gc.disable()  # what is loaded stays
    try:
        import shrimpmx.mpi.world as world

        functions = world.start(required, called)
        return functions, world.provided, world.calls, world.clock(), world.records()
    except ShrimpmxError as error:
        sentence = str(error)
    except (ImportError, TypeError, ValueError, AttributeError) as error:
        from shrimpmx.native.loading import build_words

        words = build_words(error)
        if not words and not isinstance(error, ImportError):
            raise
        sentence = words or (
            f"MPI_Init cannot load shrimpmx in {sys.executable} ({error}): run the program by a "
            "Python with shrimpmx and its dependencies"
        )
    finally:
        if collects:
            gc.enable()
    sys.stderr.write(f"shrimpmx: {sentence}\n")
    raise SystemExit(EXIT_NOT_STARTED)
