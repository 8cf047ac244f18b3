"""MPI programs of four kinds that time their own loop: `loop T us`, of the slowest rank."""

from __future__ import annotations

import textwrap
from pathlib import Path

from support.mpi_programs import MPI4PY, mpi_program

# Rows of neighbours cross in each step.
HALO = """
    own = np.full(64, float(rank))
    halo = [np.empty(64), np.empty(64)]

    def loop(steps):
        for _ in range(steps):
            MPI.Request.Waitall([
                world.Irecv(halo[0], left, tag=1), world.Irecv(halo[1], right, tag=2),
                world.Isend(own, right, tag=1), world.Isend(own, left, tag=2),
            ])
    """
# Workers ask rank 0 for tasks until there are none.
FARM = """
    task, status = np.zeros(1), MPI.Status()

    def loop(steps):
        if rank > 0:
            while True:
                world.Sendrecv(task, 0, recvbuf=task, source=0)
                if task[0] < 0:
                    return
        left_over = [-1.0] * (size - 1)
        for number in [*range(size * steps), *left_over]:
            world.Recv(task, status=status)
            world.Send(np.full(1, float(number)), status.source)
    """
# All need the sum of all before they go on.
REDUCTIONS = """
    part, total = np.full(16, float(rank)), np.empty(16)

    def loop(steps):
        for _ in range(steps):
            world.Allreduce(part, total)
    """
# Blocks pass from the first rank to the last one, which asks for the next.
PIPELINE = """
    block, last = np.zeros(512), size - 1

    def loop(steps):
        for _ in range(steps):
            if rank > 0:
                world.Recv(block, left)
            if rank < last:
                world.Send(block, right)
            if rank == last:
                world.Send(block[:0], 0)
            if rank == 0:
                world.Recv(block, last)
    """
KINDS = {"halo": HALO, "farm": FARM, "reductions": REDUCTIONS, "pipeline": PIPELINE}
TIMED = """
    world.Barrier()
    begin = MPI.Wtime()
    loop({steps})
    slowest = world.reduce(MPI.Wtime() - begin, op=MPI.MAX)
    if rank == 0:
        print(f"loop {{1e6 * slowest:.3f}} us")
    """


def timed_program(directory: Path, kind: str, steps: int) -> list[str]:
    """The command of a program of that kind."""
    text = textwrap.dedent(KINDS[kind]) + textwrap.dedent(TIMED.format(steps=steps))
    return mpi_program(directory, text, MPI4PY)
