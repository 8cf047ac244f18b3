"""What tools/compare_mpi.py measures: an ordinary program of mpi4py. Rank 0 prints one figure.

Arguments: the measurement, and what it takes. COMPARE_CPUS names the CPU of each rank, unless the
launcher binds them; COMPARE_BEGAN is when the launcher was started, in seconds since 1970.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from shrimpmx.applications.nas.__main__ import kernel_named

BATCHES = 20
world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def timed(body: Callable[[], None], count: int) -> float:
    """Seconds that one of `count` bodies takes: the median of the batches."""
    batches = []
    for _ in range(BATCHES + 2):
        world.Barrier()
        begin = time.perf_counter()
        for _ in range(count):
            body()
        batches.append((time.perf_counter() - begin) / count)
    return statistics.median(batches[2:])


def start() -> float:
    """Seconds from the launcher's start to the moment when all ranks can talk."""
    world.Barrier()
    return time.time() - float(os.environ["COMPARE_BEGAN"])


def pingpong(size_bytes: int, count: int) -> float:
    """Seconds of half a round trip."""
    data = np.zeros(size_bytes, np.uint8)

    def turn() -> None:
        if rank == 0:
            world.Send(data, 1)
            world.Recv(data, 1)
        else:
            world.Recv(data, 0)
            world.Send(data, 0)

    return timed(turn, count) / 2


def bandwidth(size_bytes: int, count: int) -> float:
    """GB/s."""
    return size_bytes / pingpong(size_bytes, count) / 1e9


def rate(window: int, count: int) -> float:
    """Millions of messages of 8 B a second, so many under way."""
    data, answer = np.zeros((window, 8), np.uint8), np.zeros(1, np.uint8)

    def turn() -> None:
        if rank == 0:
            MPI.Request.Waitall([world.Isend(data[i], 1) for i in range(window)])
            world.Recv(answer, 1)
        else:
            MPI.Request.Waitall([world.Irecv(data[i], 0) for i in range(window)])
            world.Send(answer, 0)

    return window / timed(turn, count) / 1e6


def alltoall(size_bytes: int, count: int) -> float:
    """Seconds."""
    mine, theirs = (np.zeros((size, size_bytes), np.uint8) for _ in range(2))
    return timed(lambda: world.Alltoall(mine, theirs), count)


def pairs(most_us: int, count: int) -> tuple[float, float]:
    """Pairs that burn up to `most_us` before each send: seconds of wall and of CPU time per round
    trip; the CPU time is that of a pair."""
    data, other = np.zeros(8, np.uint8), (rank + size // 2) % size
    chance = random.Random(rank)
    world.Barrier()
    begin, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        until = time.thread_time() + chance.uniform(0, most_us) / 1e6
        while time.thread_time() < until:
            pass
        if rank < size // 2:
            world.Send(data, other)
            world.Recv(data, other)
        else:
            world.Recv(data, other)
            world.Send(data, other)
    wall, cpu = time.perf_counter() - begin, time.process_time() - used
    walls, cpus = world.gather(wall), world.gather(cpu)
    if rank:
        return 0.0, 0.0
    return max(walls) / count, sum(cpus) / count / (size // 2)


def nas(kernel_name: str, letter: str) -> float:
    """Seconds of the timed part of one of the NAS Parallel Benchmarks."""
    kernel = kernel_named(kernel_name)
    outcome = kernel.run(kernel.problems[letter], world)
    if not all(check.holds for check in outcome.checks):
        raise SystemExit(f"{kernel_name} {letter}: a verification value is wrong")
    return float(world.allreduce(outcome.seconds, MPI.MAX))


def main(name: str, *arguments: str) -> None:
    if cpus := os.environ.get("COMPARE_CPUS"):
        chosen = cpus.split(",")
        os.sched_setaffinity(0, {int(chosen[rank % len(chosen)])})
    measures = {of.__name__: of for of in (start, pingpong, bandwidth, rate, alltoall, pairs, nas)}
    found = measures[name](*(int(each) if each.isdigit() else each for each in arguments))
    if rank == 0:
        print("figure", *(found if isinstance(found, tuple) else (found,)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
