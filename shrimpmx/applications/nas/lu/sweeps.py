"""The two sweeps of an SSOR iteration, by wavefronts through each pencil, and its neighbours.

As in NPB, a pencil receives a message for each plane from the pencils before it along x and y, and
sends one to those behind it when the plane's edge is done. They hold products with the change, in
NPB the change itself, and are as long.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.nas.exact_solution import COMPONENTS, Array
from shrimpmx.applications.nas.flow.cell import GHOSTS, Cell
from shrimpmx.applications.nas.flow.state import rows_first
from shrimpmx.applications.nas.lu.implicit_operator import ImplicitOperator
from shrimpmx.applications.nas.lu.wavefronts import Indices, Wavefronts


class Neighbours:
    """The ranks next to a pencil: along x and along y, the one before and the one behind."""

    def __init__(self, pencil: Cell, world: MPI.Intracomm) -> None:
        self.pencil = pencil
        self.world = world
        self.ranks = [
            tuple(
                MPI.PROC_NULL if at_boundary else world.rank + way * stride
                for way, at_boundary in zip((-1, 1), pencil.at_boundary(axis), strict=True)
            )
            for axis, stride in enumerate((1, pencil.sides[0]))
        ]

    def exchange_layers(self, u: Array) -> None:
        """Fills the ghost layers between pencils, a message from each neighbour. Collective."""
        for axis, (before, behind) in enumerate(self.ranks):
            box = list(self.pencil.owned)
            box[axis] = slice(None)
            rows = rows_first(u[:, *box], axis)
            for target, leaving, source, ghosts in (
                (behind, rows[-2 * GHOSTS : -GHOSTS], before, rows[:GHOSTS]),
                (before, rows[GHOSTS : 2 * GHOSTS], behind, rows[-GHOSTS:]),
            ):
                arriving = np.array(ghosts, order="C")
                self.world.Sendrecv(
                    np.ascontiguousarray(leaving), target, recvbuf=arriving, source=source
                )
                ghosts[:] = arriving


UP, DOWN = 1, -1


class Edge:
    """An edge of a pencil that a course crosses, along x (0) or y (1), to or from a rank.

    `rows` has what crosses it at each wavefront, (fronts, 5, places along the edge): that of a
    plane is spread over `when`, which counts from the plane's number."""

    def __init__(self, axis: int, rank: int, when: Indices, fronts: int) -> None:
        self.axis, self.rank, self.when = axis, rank, when
        self.places = np.arange(len(when))
        self.rows = np.zeros((fronts, COMPONENTS, len(when)))

    def receive(self, world: MPI.Intracomm, plane: int) -> None:
        """Waits for a plane's contributions."""
        message = np.empty((len(self.when), COMPONENTS))
        world.Recv(message, self.rank)
        self.rows[plane + self.when, :, self.places] = message

    def send(self, world: MPI.Intracomm, plane: int) -> None:
        """Sends a plane's contributions."""
        world.Send(self.rows[plane + self.when, :, self.places], self.rank)


class Sweeps:
    """Solves the lower and the upper triangular system of a pencil's inner points."""

    def __init__(self, neighbours: Neighbours, operator: ImplicitOperator) -> None:
        self.world = neighbours.world
        self.operator = operator
        self.shape = neighbours.pencil.inside_shape
        self.wavefronts = Wavefronts(self.shape)
        room = self.wavefronts.columns + max(self.shape[:2])
        # By axis what each column contributes to the next, and behind the columns what others do.
        self.coupled = np.empty((3, COMPONENTS, room))
        self.edges: dict[int, tuple[list[Edge], list[Edge]]] = {}
        for way, course in ((UP, self.wavefronts.up), (DOWN, self.wavefronts.down)):
            entries, exits = self.edges[way] = [], []
            for axis, ranks in enumerate(neighbours.ranks):
                source, target = ranks[::way]
                delays, fronts = course.delays[axis], len(course.fronts)
                if source != MPI.PROC_NULL:
                    entries.append(Edge(axis, source, delays, fronts))
                if target != MPI.PROC_NULL:
                    exits.append(Edge(axis, target, delays + self.shape[axis] - 1, fronts))

    def sweep(self, change: Array, way: int) -> None:
        """The lower system (UP) makes a right-hand side the change, the upper one (DOWN) corrects
        it; `change` has the order of wavefronts, (5, points). Collective."""
        course = self.wavefronts.up if way == UP else self.wavefronts.down
        entries, exits = self.edges[way]
        coupled = self.coupled
        coupled[:] = 0
        columns, planes = self.wavefronts.columns, self.shape[2]
        until_complete = len(course.fronts) - planes
        for number, (points, columns_here) in enumerate(course.fronts):
            for edge in entries:
                if number < planes:
                    edge.receive(self.world, number)
                coupled[edge.axis, :, columns : columns + len(edge.when)] = edge.rows[number]
            right = coupled[0].take(course.before[0][columns_here], axis=1)
            right += coupled[1].take(course.before[1][columns_here], axis=1)
            right += coupled[2, :, columns_here]
            here = change[:, points]
            if way == UP:
                right += here
                here[:] = 0
            self.operator.solve(points, right)
            here += right
            self.operator.couple(points, here, way, coupled[:, :, columns_here])
            for edge in exits:
                edge.rows[number] = coupled[edge.axis].take(course.last[edge.axis], axis=1)
                if number >= until_complete:
                    edge.send(self.world, number - until_complete)
