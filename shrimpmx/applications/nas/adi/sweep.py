"""A sweep: lines that run through all cells along an axis, solved by elimination and substitution.

Both passes are pipelines: a rank works on the cell that it has in a layer of cells, hands what the
next layer needs to the rank that has the next cell there, and turns to its own cell in that layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.nas.adi.faces import DOWN, UP
from shrimpmx.applications.nas.adi.lines import Lines
from shrimpmx.applications.nas.adi.multipartition import Multipartition
from shrimpmx.applications.nas.exact_solution import Array
from shrimpmx.applications.nas.flow.state import CellState

ONWARDS_TAG, BACK_TAG = 10, 11

Stage = tuple[tuple[int, ...], int, Callable[[], Callable[[Array], Array]]]


def sweep(
    world: MPI.Intracomm,
    partition: Multipartition,
    states: Sequence[CellState],
    axis: int,
    solver: type[Lines],
    time_step: float,
) -> None:
    """Solves along an axis: state.rhs of each cell becomes the solution. Collective."""
    below, above = (partition.neighbour(axis, way) for way in (DOWN, UP))
    order = [states[number] for number in partition.along(axis)]
    counts = [state.cell.lines(axis) for state in order]
    sent = [partition.face_room] * len(order) if solver.sends_room else counts
    parts: list[Lines] = []

    def begin(state: CellState) -> Callable[[Array], Array]:
        parts.append(solver(state, axis, time_step))
        return parts[-1].eliminate

    onwards: list[Stage] = [
        ((*solver.handed_on, count), prod(solver.handed_on) * lines, partial(begin, state))
        for state, count, lines in zip(order, counts, sent, strict=True)
    ]
    relay(world, below, above, ONWARDS_TAG, onwards)
    back: list[Stage] = [
        (
            (*solver.handed_back, count),
            prod(solver.handed_back) * lines,
            partial(getattr, part, "substitute"),
        )
        for part, count, lines in zip(parts[::-1], counts[::-1], sent[::-1], strict=True)
    ]
    relay(world, above, below, BACK_TAG, back)


def relay(
    world: MPI.Intracomm, source: int, destination: int, tag: int, stages: Sequence[Stage]
) -> None:
    """Passes arrays through the stages of a pipeline: each gives the shape of what it is handed,
    zeros for the first, the elements of the message that begins with it, and a function that
    prepares its work while the message is on its way."""
    leaving = MPI.REQUEST_NULL
    for number, (shape, length, prepare) in enumerate(stages):
        message = np.zeros(length)
        arriving = world.Irecv(message, source, tag) if number > 0 else MPI.REQUEST_NULL
        work = prepare()
        MPI.Request.Waitall([arriving, leaving])
        result = work(message[: prod(shape)].reshape(shape)).ravel()
        if number < len(stages) - 1:
            rest = length - result.size
            leaving = world.Isend(np.pad(result, (0, rest)) if rest else result, destination, tag)
