"""An MPI program whose rank 1 spoils its own run, by draws from a seed: it writes into a segment
of the run, or messages that no process sends into its control channel.

Usage: shrimpmx mpirun -n 2 python tests/support/spoiling_program.py control|node0|heap|plan|queue N
"""

from __future__ import annotations

import json
import mmap
import random
import sys
from pathlib import Path

import numpy as np
import posix_ipc
from mpi4py import MPI

KIND, SEED = sys.argv[1], int(sys.argv[2])
ROUNDS, MESSAGES, NUMBERS = 20, 20, 100_000
# Where headers and records lie, into which most of the damage goes.
HEAD_BYTES = 1 << 16
SHARED = Path("/dev/shm")

world = MPI.COMM_WORLD
draw = random.Random(SEED)


def segments() -> list[str]:
    """The names of the run's segments that this process maps."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    found = {Path(line.split()[-1]) for line in lines if "/dev/shm/shrimpmx" in line}
    return sorted(path.name for path in found)


def spoil_segment(name: str) -> None:
    """Overwrite some words of a segment."""
    with (SHARED / name).open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        for _ in range(draw.choice([1, 10, 200])):
            count = draw.choice([1, 4, 8, 64])
            end = min(HEAD_BYTES, len(memory)) if draw.random() < 0.7 else len(memory)
            at = draw.randrange(end - count)
            memory[at : at + count] = draw.choice([draw.randbytes(count), b"\xff" * count])


def message() -> bytes:
    """A message that no process sends."""
    value = draw.choice([None, 7, "x" * 3000, {"user_ns": "x"}, "\x1b[31m", ["rank0"]])
    key = draw.choice(["from", "what", "error", "traceback", "usage", "elapsed_ns"])
    whole = {"from": "rank0", "what": "done", key: value}
    return draw.choice([draw.randbytes(99), b"[" * 8000, json.dumps(whole).encode(), b"{}"])


def spoil() -> None:
    """Do it."""
    if KIND == "queue":
        [control] = [name for name in segments() if name.endswith("-control")]
        queue = posix_ipc.MessageQueue(f"/{control}-queue")
        for _ in range(MESSAGES):
            queue.send(message(), timeout=1)
    for name in segments():
        if KIND in name:
            spoil_segment(name)


data = np.zeros(NUMBERS)
if world.rank == 1:
    spoil()
for number in range(ROUNDS):
    world.sendrecv(number, 1 - world.rank, 0, None, 1 - world.rank, 0)
    world.Sendrecv(data, 1 - world.rank, 1, data.copy(), 1 - world.rank, 1)
