"""Compare the algorithms of MPI's collectives: how long each takes, as a multiple of the fastest.

    python tools/collectives.py                       # 4 ranks on 2 nodes
    python tools/collectives.py -n 8 --nodes 1 --only bcast,reduce

Calls and barriers alternate, so that no rank runs ahead. A figure is the least of several rounds,
in which the algorithms take turns. SIZE is what the table of shrimpmx/mpi/selection.pyx counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shrimpmx.mpi.selection import COLLECTIVE_OF, PREFIX, TABLE, algorithms_select

SIZES = (64, 512, 4096, 32768, 131072, 1 << 20)
ROUNDS, CALLS_BYTES = 6, 2 << 20


def call_of(collective: str, size_bytes: int) -> Callable[[], None]:
    """A call that moves so many bytes, as the table counts them."""
    from mpi4py import MPI  # this process is a rank

    world = MPI.COMM_WORLD
    count = max(1, size_bytes // 8)
    if collective in ("allgather", "reduce_scatter"):
        count = max(1, count // world.size)
    one, every, other = (np.zeros(rows * count) for rows in (1, world.size, world.size))
    return {
        "bcast": lambda: world.Bcast(one),
        "gather": lambda: world.Gather(one, every),
        "scatter": lambda: world.Scatter(every, one),
        "allgather": lambda: world.Allgather(one, every),
        "alltoall": lambda: world.Alltoall(every, other),
        "reduce": lambda: world.Reduce(one, every[:count]),
        "allreduce": lambda: world.Allreduce(one, every[:count]),
        "reduce_scatter": lambda: world.Reduce_scatter_block(every, one),
    }[collective]


def time_of(call: Callable[[], None], calls: int) -> float:
    """Seconds of a call and a barrier on the slowest rank."""
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
        MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD.allreduce((time.perf_counter() - begin) / calls, MPI.MAX)


def compare(collective: str, size_bytes: int) -> str:
    """One line of the output."""
    call = call_of(collective, size_bytes)
    names = sorted({row[1] for row in TABLE if row[0] == collective})
    least = dict.fromkeys(names, float("inf"))
    for _ in range(ROUNDS):
        for name in names:
            algorithms_select({PREFIX + collective.upper(): name})
            calls = min(20, max(3, CALLS_BYTES // size_bytes))
            least[name] = min(least[name], time_of(call, calls))
    fastest = min(least.values())
    ratios = "  ".join(f"{name} {least[name] / fastest:.2f}" for name in names)
    return f"{collective:15}{size_bytes:8}  {ratios}"


def main() -> int:
    """Start the ranks; or be one of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", "--ranks", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--only", default=",".join(COLLECTIVE_OF), help="collectives, by comma")
    options = parser.parse_args()
    for name in options.only.split(","):
        if name not in COLLECTIVE_OF:
            known = ", ".join(COLLECTIVE_OF)
            print(f"collectives.py: {name} is none of {known}", file=sys.stderr)
            return 2
    if "PMI_RANK" not in os.environ:
        words = ["mpirun", "-n", str(options.ranks), "--nodes", str(options.nodes), sys.executable]
        program = [str(Path(__file__).resolve()), "--only", options.only]
        return subprocess.run([sys.executable, "-m", "shrimpmx", *words, *program]).returncode
    for collective in options.only.split(","):
        for size_bytes in SIZES:
            line = compare(collective, size_bytes)
            if os.environ["PMI_RANK"] == "0":
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
