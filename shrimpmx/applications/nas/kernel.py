"""What a benchmark is to the command that runs it, and how NPB verifies it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.nas.exact_solution import COMPONENTS, Array

Problem = TypeVar("Problem")


@dataclass(frozen=True)
class Check:
    """A figure of the result beside NPB's verification value."""

    name: str
    computed: complex
    official: complex
    within: float = 0.0  # largest relative difference

    @property
    def holds(self) -> bool:
        """Whether they agree; a figure that is no number never does."""
        return abs(self.computed - self.official) <= self.within * abs(self.official)


@dataclass
class Timer:
    """Seconds of the part that NPB times, on this rank."""

    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a run gave; every rank has one, with the same checks."""

    seconds: float  # of the timed part, on this rank
    operations: float  # in the timed part, on all ranks, by NPB's formula
    checks: tuple[Check, ...] = field(default=())


class Kernel(ABC, Generic[Problem]):
    """A benchmark: its problems by class, the rank counts that it takes, and how it runs."""

    name: ClassVar[str]  # "IS"
    title: ClassVar[str]  # "integer sort"

    @property
    @abstractmethod
    def problems(self) -> Mapping[str, Problem]:
        """By class: "S", "W", "A", "B"."""

    @abstractmethod
    def ranks_rule(self) -> str:
        """What the number of ranks must be: "a power of two"."""

    @abstractmethod
    def takes_ranks(self, ranks: int, problem: Problem) -> bool:
        """Whether the problem can be divided among so many ranks."""

    @abstractmethod
    def memory_bytes(self, problem: Problem, ranks: int) -> int:
        """Memory that all ranks together need for arrays, about."""

    @abstractmethod
    def describe(self, problem: Problem) -> str:
        """The problem's size in words: "65 536 keys, 10 iterations"."""

    def shortened(self, problem: Problem, iterations: int) -> Problem | None:
        """The problem with so many iterations; None if it cannot have them, since NPB verifies what
        all of them come to.
        """
        return None

    @abstractmethod
    def run(self, problem: Problem, world: MPI.Intracomm) -> Outcome:
        """Runs it on all ranks of `world`. Collective."""


@contextmanager
def timed(world: MPI.Intracomm) -> Iterator[Timer]:
    """Times the part that NPB times, from a barrier on. MPI_Pcontrol, the call by which MPI lets a
    program speak to a profiler, marks both ends of it."""
    timer = Timer()
    world.Barrier()
    MPI.Pcontrol(1)
    begin = MPI.Wtime()
    yield timer
    timer.seconds = MPI.Wtime() - begin
    MPI.Pcontrol(0)


WITHIN = 1e-8

Norms = tuple[float, float, float, float, float]


def norms(world: MPI.Intracomm, fields: Sequence[Array], points: int) -> Array:
    """Root mean squares over all points off the boundary of a grid of points³, shape (5,), of
    fields of shape (5, x, y, z). Collective."""
    squares = np.sum([np.einsum("cxyz,cxyz->c", field, field) for field in fields], axis=0)
    total = np.empty(COMPONENTS)
    world.Allreduce(squares, total)
    result: Array = np.sqrt(total / (points - 2) ** 3)
    return result


def norm_checks(name: str, computed: Array, official: Norms) -> Iterator[Check]:
    """A check for each component."""
    for component, (norm, value) in enumerate(zip(computed, official, strict=True), 1):
        yield Check(f"{name} of component {component}", float(norm), value, WITHIN)
