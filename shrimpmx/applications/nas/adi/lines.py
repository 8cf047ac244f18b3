"""Lines of points along an axis, solved for the change of the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from shrimpmx.applications.nas.exact_solution import Array
from shrimpmx.applications.nas.flow.state import CellState, rows_first


class Lines(ABC):
    """A cell's part of all lines along an axis, solved one row of points at a time. Beyond both
    ends of the whole lines the solution is 0, and so is what the first part is handed."""

    handed_on: ClassVar[tuple[int, ...]]  # per line, from part to part by the elimination
    handed_back: ClassVar[tuple[int, ...]]  # by the substitution
    sends_room: ClassVar[bool] = False  # messages have room for the lines of any cell, as NPB's

    @abstractmethod
    def __init__(self, state: CellState, axis: int, time_step: float) -> None:
        """Sets up the equations, with state.rhs as their right-hand side."""

    @abstractmethod
    def eliminate(self, before: Array) -> Array:
        """Row by row upwards, from what the part before handed on; returns what the next needs."""

    @abstractmethod
    def substitute(self, after: Array) -> Array:
        """Downwards likewise; state.rhs becomes the solution."""


def rows_of_lines(field: Array, axis: int) -> Array:
    """A field (..., x, y, z) as an array of shape (rows, ..., lines), in that order in memory."""
    rows = np.ascontiguousarray(rows_first(field, axis))
    return rows.reshape(*rows.shape[:-2], -1)
