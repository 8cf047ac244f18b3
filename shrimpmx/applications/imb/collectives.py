"""Benchmarks of collective calls: all send bytes, reductions sum numbers of single precision."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from shrimpmx.applications.imb.benchmark import Benchmark, Bytes, pattern
from shrimpmx.applications.imb.table import Layout

Numbers = npt.NDArray[np.float32]


class Alltoall(Benchmark):
    """Each process sends `size` bytes to each one, itself too."""

    layout = Layout("Alltoall")

    def __init__(self, group: MPI.Intracomm, size: int, root_shift: bool) -> None:
        super().__init__(group, size, root_shift)
        self.sent = pattern(group.rank, 0, size * group.size)
        self.got = np.zeros(size * group.size, np.uint8)

    @classmethod
    def memory_bytes(cls, size: int, processes: int) -> int:
        return 2 * size * processes

    def once(self, repetition: int) -> None:
        self.group.Alltoall(self.sent, self.got)

    def received(self, repetition: int) -> list[tuple[Bytes, Bytes]]:
        begin = self.group.rank * self.size
        blocks = [pattern(other, begin, self.size) for other in range(self.group.size)]
        return [(self.got, np.concatenate(blocks))]


class Alltoallv(Alltoall):
    """The same by the call that takes a length for each process."""

    layout = Layout("Alltoallv")

    def __init__(self, group: MPI.Intracomm, size: int, root_shift: bool) -> None:
        super().__init__(group, size, root_shift)
        counts = [size] * group.size
        self._sent_parts = (self.sent, counts)
        self._got_parts = (self.got, counts)

    def once(self, repetition: int) -> None:
        self.group.Alltoallv(self._sent_parts, self._got_parts)


class Allgather(Benchmark):
    """Each process sends `size` bytes, and all have the bytes of all."""

    layout = Layout("Allgather")

    def __init__(self, group: MPI.Intracomm, size: int, root_shift: bool) -> None:
        super().__init__(group, size, root_shift)
        self.sent = pattern(group.rank, 0, size)
        self.got = np.zeros(size * group.size, np.uint8)

    @classmethod
    def memory_bytes(cls, size: int, processes: int) -> int:
        return size * (processes + 1)

    def once(self, repetition: int) -> None:
        self.group.Allgather(self.sent, self.got)

    def received(self, repetition: int) -> list[tuple[Bytes, Bytes]]:
        blocks = [pattern(other, 0, self.size) for other in range(self.group.size)]
        return [(self.got, np.concatenate(blocks))]


class Bcast(Benchmark):
    """The root sends `size` bytes to all."""

    layout = Layout("Bcast")

    def __init__(self, group: MPI.Intracomm, size: int, root_shift: bool) -> None:
        super().__init__(group, size, root_shift)
        self.sent = pattern(group.rank, 0, size)
        self.got = np.zeros(size, np.uint8)

    def once(self, repetition: int) -> None:
        root = self.root(repetition)
        self.group.Bcast(self.sent if self.group.rank == root else self.got, root)

    def received(self, repetition: int) -> list[tuple[Bytes, Bytes]]:
        root = self.root(repetition)
        return [] if self.group.rank == root else [(self.got, pattern(root, 0, self.size))]


class Allreduce(Benchmark):
    """All have the sum of the numbers of all."""

    layout = Layout("Allreduce")
    unit = 4

    def __init__(self, group: MPI.Intracomm, size: int, root_shift: bool) -> None:
        super().__init__(group, size, root_shift)
        self.numbers = size // self.unit
        self.sent = addends(group.rank, self.numbers)
        self.got = np.zeros(self.numbers, np.float32)

    def once(self, repetition: int) -> None:
        self.group.Allreduce(self.sent, self.got, MPI.SUM)

    def sums(self) -> Numbers:
        """What must come out: exact, since the addends are small integers."""
        all_ranks = (addends(rank, self.numbers) for rank in range(self.group.size))
        sums: Numbers = np.sum(list(all_ranks), axis=0, dtype=np.float32)
        return sums

    def received(self, repetition: int) -> list[tuple[Bytes, Bytes]]:
        return [(self.got.view(np.uint8), self.sums().view(np.uint8))]


class Reduce(Allreduce):
    """The root has the sum of the numbers of all."""

    layout = Layout("Reduce")

    def once(self, repetition: int) -> None:
        self.group.Reduce(self.sent, self.got, MPI.SUM, self.root(repetition))

    def received(self, repetition: int) -> list[tuple[Bytes, Bytes]]:
        return super().received(repetition) if self.group.rank == self.root(repetition) else []


class ReduceScatter(Allreduce):
    """Each process has its part of the sum of the numbers of all; the first ones have one number
    more where these cannot be divided."""

    layout = Layout("Reduce_scatter")

    def __init__(self, group: MPI.Intracomm, size: int, root_shift: bool) -> None:
        super().__init__(group, size, root_shift)
        each, more = divmod(self.numbers, group.size)
        self.counts = [each + (rank < more) for rank in range(group.size)]
        self.begin = sum(self.counts[: group.rank])
        self.got = np.zeros(self.counts[group.rank], np.float32)

    def once(self, repetition: int) -> None:
        self.group.Reduce_scatter(self.sent, self.got, self.counts, MPI.SUM)

    def sums(self) -> Numbers:
        return super().sums()[self.begin : self.begin + len(self.got)]


class Barrier(Benchmark):
    """All wait for each other."""

    layout = Layout("Barrier", sized=False)

    @classmethod
    def memory_bytes(cls, size: int, processes: int) -> int:
        return 0

    def once(self, repetition: int) -> None:
        self.group.Barrier()

    def received(self, repetition: int) -> list[tuple[Bytes, Bytes]]:
        return []


def addends(rank: int, count: int) -> Numbers:
    """The numbers of a process, shape (count,)."""
    return ((np.arange(count) + rank) % 16).astype(np.float32)
