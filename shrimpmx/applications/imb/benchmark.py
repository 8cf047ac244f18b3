"""What a benchmark is, and how a sample of it is timed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from shrimpmx.applications.imb.options import within
from shrimpmx.applications.imb.table import Layout, Sample

Bytes = npt.NDArray[np.uint8]

BARRIERS = 2  # before a sample, so that its processes begin together
PREPARATION = 0.1  # of the repetitions planned, and of the time limit, to warm up by
PERIOD = 251  # bytes after which a pattern repeats: a prime, unlike sizes of messages
_UNWRITTEN = 0xFF  # in what a call must fill, when data are checked


class Benchmark(ABC):
    """A pattern of calls between the processes of a communicator, with the buffers for one size."""

    layout: ClassVar[Layout]
    unit: ClassVar[int] = 1  # bytes of an element
    in_a_row: ClassVar[bool] = False  # timed from the first call to the last, not each call
    time_scale: ClassVar[float] = 1.0  # of the time that is shown to that of a call

    def __init__(self, group: MPI.Intracomm, size: int, root_shift: bool) -> None:
        self.group = group
        self.size = size
        self.root_shift = root_shift

    @classmethod
    def memory_bytes(cls, size: int, processes: int) -> int:
        """Memory of the buffers of a process."""
        return 2 * size

    @abstractmethod
    def once(self, repetition: int) -> None:
        """One call of the pattern."""

    @abstractmethod
    def received(self, repetition: int) -> list[tuple[Bytes, Bytes]]:
        """What this process has received by a call: buffers as bytes, and what they must have."""

    def root(self, repetition: int) -> int:
        """The root of a call: process 0, or each in turn."""
        return repetition % self.group.size if self.root_shift else 0

    def defects(self, repetition: int) -> int:
        """Bytes that a call has delivered wrongly; makes the buffers ready for the next one."""
        wrong = 0
        for buffer, expected in self.received(repetition):
            wrong += int(np.count_nonzero(buffer != expected))
            buffer.fill(_UNWRITTEN)
        return wrong


def pattern(rank: int, begin: int, length: int) -> Bytes:
    """Bytes `begin` to `begin + length` of the data of a process: others of each one."""
    turn = (np.arange(PERIOD) + begin + 31 * rank) % PERIOD
    return np.resize(turn.astype(np.uint8), length)


def measure(
    benchmark: Benchmark, planned: int, limit_s: float | None, *, check: bool, sync: bool
) -> Sample:
    """Warms up, then runs the planned repetitions, or as many as the time limit allows. With
    `sync` the processes of a collective meet before each call. Collective over the group."""
    call_s = warm_up(benchmark, planned, limit_s)
    number = planned if limit_s is None else within(planned, call_s, limit_s)
    group = benchmark.group
    if check:
        benchmark.defects(0)
    for _ in range(BARRIERS):
        group.Barrier()
    MPI.Pcontrol(1)
    if benchmark.in_a_row and not check:
        spent_s, wrong = _in_a_row(benchmark, number), 0
    else:
        spent_s, wrong = _one_by_one(benchmark, number, check=check, sync=sync)
    MPI.Pcontrol(0)
    times = group.allgather(spent_s / number * benchmark.time_scale)
    defects = group.allreduce(wrong) if check else None
    return Sample(number, min(times), max(times), sum(times) / len(times), defects)


def warm_up(benchmark: Benchmark, planned: int, limit_s: float | None) -> float:
    """Calls it 1, 2, 4 ... times, up to a tenth of the repetitions and of the limit; returns the
    seconds of a call by the last of these, on the slowest process. Collective."""
    number = 1
    while True:
        slowest_s = benchmark.group.allreduce(_in_a_row(benchmark, number), MPI.MAX)
        enough = limit_s is not None and slowest_s >= PREPARATION * limit_s
        if enough or 2 * number > PREPARATION * planned:
            return float(slowest_s) / number
        number *= 2


def _in_a_row(benchmark: Benchmark, number: int) -> float:
    begin = MPI.Wtime()
    for repetition in range(number):
        benchmark.once(repetition)
    return MPI.Wtime() - begin


def _one_by_one(benchmark: Benchmark, number: int, *, check: bool, sync: bool) -> tuple[float, int]:
    """Seconds in calls, and the wrong bytes."""
    spent_s = 0.0
    wrong = 0
    for repetition in range(number):
        begin = MPI.Wtime()
        benchmark.once(repetition)
        spent_s += MPI.Wtime() - begin
        if check:
            wrong += benchmark.defects(repetition)
        if sync and not benchmark.in_a_row:
            benchmark.group.Barrier()
    return spent_s, wrong
