"""An MPI program for scenes of chaos: ranks check every byte that they get.

Usage: shrimpmx mpirun -n 4 python tests/support/chaos_program.py collectives|alltoall|computing N
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from mpi4py import MPI

# Below, at and beyond what one packet holds, and what goes without a rendezvous.
SIZES = (1, 100, 1453, 5000, 32_768, 100_000)
COMPUTED = 100

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def message(source: int, destination: int, turn: int, length: int) -> np.ndarray:
    """Bytes that no other message of the program has."""
    first = 31 * source + 7 * destination + turn
    return ((np.arange(length) * 13 + first) % 251).astype(np.uint8)


def collectives(turn: int) -> None:
    """A broadcast, a sum over all ranks, and a gather."""
    length, root = SIZES[turn % len(SIZES)], turn % size
    told = message(root, 0, turn, length) if rank == root else np.empty(length, np.uint8)
    world.Bcast(told, root)
    assert (told == message(root, 0, turn, length)).all()
    total = np.empty(length, np.int64)
    world.Allreduce(message(rank, 0, turn, length).astype(np.int64), total)
    parts = [message(each, 0, turn, length).astype(np.int64) for each in range(size)]
    assert (total == sum(parts)).all()
    gathered = np.empty((size, length), np.int64) if rank == root else None
    world.Gather(parts[rank], gathered, root)
    assert gathered is None or (gathered == np.array(parts)).all()


def alltoall(turn: int) -> None:
    """Each rank has another message for each."""
    length = SIZES[-1 - turn % 3]
    sent = np.array([message(rank, each, turn, length) for each in range(size)])
    arrived = np.empty_like(sent)
    world.Alltoall(sent, arrived)
    assert (arrived == [message(each, rank, turn, length) for each in range(size)]).all()


def computing(turn: int) -> None:
    """Neighbours exchange while they compute, for longer the higher the rank."""
    length = SIZES[turn % len(SIZES)]
    right, left = (rank + 1) % size, (rank - 1) % size
    arrived = np.empty(length, np.uint8)
    own = np.random.default_rng(rank).random((COMPUTED, COMPUTED))
    requests = [
        world.Irecv(arrived, left, turn),
        world.Isend(message(rank, right, turn, length), right, turn),
    ]
    for _ in range(rank + 1):
        np.einsum("ij,jk->", own, own)
    MPI.Request.Waitall(requests)
    assert (arrived == message(left, rank, turn, length)).all()


work = {each.__name__: each for each in (collectives, alltoall, computing)}[sys.argv[1]]
if work is computing and rank == 0:
    # It outlives its parent, and must not outlive the run.
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
for number in range(int(sys.argv[2])):
    work(number)
world.Barrier()
if rank == 0:
    print("all bytes were right")
