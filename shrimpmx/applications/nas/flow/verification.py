"""What NPB verifies of the flow: norms by component."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.nas.exact_solution import COMPONENTS, Array
from shrimpmx.applications.nas.kernel import Check

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
