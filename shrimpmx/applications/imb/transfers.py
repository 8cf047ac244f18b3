"""Benchmarks of messages between two processes: a pair of them, or a chain of all."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.imb.benchmark import Benchmark, Bytes, pattern
from shrimpmx.applications.imb.table import Layout


class _Transfer(Benchmark):
    """A buffer to send and one to receive from each of `partners`."""

    in_a_row = True

    def __init__(self, group: MPI.Intracomm, size: int, root_shift: bool) -> None:
        super().__init__(group, size, root_shift)
        self.sent = pattern(group.rank, 0, size)
        self.partners = self._partners(group.rank, group.size)
        self.got = [np.zeros(size, np.uint8) for _ in self.partners]

    def _partners(self, rank: int, size: int) -> list[int]:
        """The processes that this one receives from."""
        return [1 - rank]

    def received(self, repetition: int) -> list[tuple[Bytes, Bytes]]:
        return [
            (buffer, pattern(partner, 0, self.size))
            for buffer, partner in zip(self.got, self.partners, strict=True)
        ]


class PingPong(_Transfer):
    """A message there and back; half of that time."""

    layout = Layout("PingPong", pair=True, moved=1)
    time_scale = 0.5

    def once(self, repetition: int) -> None:
        other = self.partners[0]
        if self.group.rank == 0:
            self.group.Send(self.sent, other)
            self.group.Recv(self.got[0], other)
        else:
            self.group.Recv(self.got[0], other)
            self.group.Send(self.sent, other)


class PingPing(_Transfer):
    """Two processes send to each other at once."""

    layout = Layout("PingPing", pair=True, moved=1)

    def once(self, repetition: int) -> None:
        request = self.group.Isend(self.sent, self.partners[0])
        self.group.Recv(self.got[0], self.partners[0])
        request.Wait()


class Sendrecv(_Transfer):
    """Each process sends to its right neighbour and receives from its left one."""

    layout = Layout("Sendrecv", moved=2)

    def _partners(self, rank: int, size: int) -> list[int]:
        return [(rank - 1) % size]

    def once(self, repetition: int) -> None:
        right = (self.group.rank + 1) % self.group.size
        self.group.Sendrecv(self.sent, right, 0, self.got[0], self.partners[0])


class Exchange(_Transfer):
    """Each process exchanges messages with both neighbours, as at the borders of a grid."""

    layout = Layout("Exchange", moved=4)

    @classmethod
    def memory_bytes(cls, size: int, processes: int) -> int:
        return 3 * size

    def _partners(self, rank: int, size: int) -> list[int]:
        return [(rank - 1) % size, (rank + 1) % size]

    def once(self, repetition: int) -> None:
        requests = [self.group.Isend(self.sent, partner) for partner in self.partners]
        for buffer, partner in zip(self.got, self.partners, strict=True):
            self.group.Recv(buffer, partner)
        MPI.Request.Waitall(requests)
