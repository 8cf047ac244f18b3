"""Ranks that wait for ever, since others are in MPI_Finalize, where they will send no more."""

from __future__ import annotations

import time
from collections.abc import Callable

from shrimpmx.cluster.engine.children import Children
from shrimpmx.cluster.engine.exits import how_it_ended
from shrimpmx.cluster.engine.mpi_ranks import MpiRanks
from shrimpmx.cluster.engine.parts import RunParts
from shrimpmx.errors import RankEndedError

# Between the end of MPI_Finalize and that of its process, at most (ours).
END_LIMIT_S = 10.0
# The exit code of a run whose ranks' own codes are 0.
EXIT_LEFT = 1


def end_left(
    mpi: MpiRanks, parts: RunParts, children: Children, let_go: Callable[[], None] | None = None
) -> None:
    """End a run in which ranks wait for others in MPI_Finalize, if there are such others.

    They are let go first, also by `let_go`, and named with the exit code by which one has failed:
    RankEndedError.
    """
    finalizing, doing = mpi.finalizing(), mpi.doing()
    if not finalizing:
        return
    parts.memory.set_stop("abort")
    if let_go is not None:
        let_go()
    indices = {name: parts.placement.process_index(name) for name in finalizing}
    until_s = time.monotonic() + END_LIMIT_S
    while time.monotonic() < until_s:
        codes = {name: children.exit_code(index) for name, index in indices.items()}
        if None not in codes.values():
            break
        time.sleep(0.01)
    name = next((name for name, code in codes.items() if code), finalizing[0])
    code = codes[name]
    how = f"ended with exit code {code}" if code else "ended"
    if code is None:
        how = "called MPI_Finalize"
    elif code < 0:
        how = how_it_ended(code, worked=False)
    waits = "; ".join(
        f"{other}: {words}" for other, words in doing.items() if other not in finalizing
    )
    raise RankEndedError(
        f"{name} (pid {children.pids()[indices[name]]}) {how}, but other ranks still wait for "
        f"messages that nobody will send; the run ends: {waits}",
        name,
        EXIT_LEFT if not code else code if code > 0 else 128 - code,
    )
