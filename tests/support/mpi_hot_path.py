"""A rank with count_calls preloaded: what MPI's calls allocate, and take of Python's global lock.

Arguments: numbers of exchanges. Each rank prints one line of JSON: for each number what the calls
of Send and Recv, and those of Irecv, Isend and Wait, took of either.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

from shrimpmx.bench.matching import mpi_exchanges, mpi_round_trips
from shrimpmx.mpi import world
from shrimpmx.mpi.functions import TABLE
from support.hot_path import counted, since
from support.mpi_stub import address_of

NAMES = [function.name for function in TABLE]


def main(*counts: int) -> None:
    table = world.start(0)
    fields = (ctypes.c_size_t * len(TABLE)).from_address(address_of(table))
    rank = int(os.environ["PMI_RANK"])
    found = []
    for count in counts:
        taken: list[int] = []
        for exchange in (mpi_round_trips, mpi_exchanges):
            before = counted()
            exchange(table, 1 - rank, rank == 0, count, 8)
            taken += since(before)
        found.append(taken)
    print(f"{json.dumps(found)}\n", end="", flush=True)
    ctypes.CFUNCTYPE(ctypes.c_int)(fields[NAMES.index("Finalize")])()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
