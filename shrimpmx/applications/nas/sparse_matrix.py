"""CG's matrix: a weighted sum of outer products of sparse random vectors.

RNR-94-007 (kernel CG): vector k of `order` has random elements at `nonzeros` random places and 1/2
at place k, and weight CONDITION^(k / order). CONDITION - shift is added to the diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from shrimpmx.applications.nas.random_numbers import uniform

CONDITION = 0.1
# Elements that a product gathers, multiplies and sums before the next ones: they stay in a cache.
BLOCK = 1 << 15
OUTER_PRODUCTS = 1 << 12  # that are made at once

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class _Rows:
    """Some rows, none of them empty: their elements, and room for products."""

    elements: Floats
    columns: Indices
    begins: Indices  # of each row, in `elements`
    products: Floats
    where: slice  # in the vector of all rows


class SparseMatrix:
    """A matrix by rows, each with one element or more."""

    def __init__(self, elements: Floats, columns: Indices, begins: Indices) -> None:
        """Row i has the elements from begins[i] to begins[i + 1], shape (rows + 1,)."""
        rows = len(begins) - 1
        cuts = np.unique(np.searchsorted(begins, np.arange(0, len(elements) + BLOCK, BLOCK)))
        cuts = np.append(cuts[cuts < rows], rows)
        products = np.empty(np.diff(begins[cuts]).max())
        self.elements, self.columns, self.begins = elements, columns, begins
        self._blocks = [
            _Rows(
                elements[begins[first] : begins[end]],
                columns[begins[first] : begins[end]],
                begins[first:end] - begins[first],
                products[: begins[end] - begins[first]],
                slice(first, end),
            )
            for first, end in pairwise(cuts)
        ]

    def multiply(self, vector: Floats, out: Floats) -> None:
        """Writes the product with `vector` to `out`, shape (rows,)."""
        for rows in self._blocks:
            # Without "clip" NumPy gathers into memory of its own first.
            np.take(vector, rows.columns, out=rows.products, mode="clip")
            np.multiply(rows.products, rows.elements, out=rows.products)
            np.add.reduceat(rows.products, rows.begins, out=out[rows.where])


def matrix_block(
    order: int, nonzeros: int, shift: float, rows: range, columns: range
) -> SparseMatrix:
    """The official matrix, less what is outside these rows and columns."""
    parts = list(_outer_products(order, nonzeros, rows, columns))
    both = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
    parts.append((_key(both, both, rows, columns), np.full(len(both), CONDITION - shift)))
    # An explicit zero where a row has no element here.
    taken = np.concatenate([keys for keys, _ in parts]) // len(columns)
    empty = np.flatnonzero(np.bincount(taken, minlength=len(rows)) == 0)
    parts.append((empty * len(columns), np.zeros(len(empty))))
    keys, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _summed(keys, values, len(rows), len(columns))


def random_vectors(order: int, nonzeros: int) -> tuple[Indices, Floats]:
    """Places and values of the vectors' elements, shape (order, nonzeros + 1) both.

    Pairs of random numbers are a value and a place; one whose place is too great, or taken by
    this vector already, is passed over.
    """
    power = 1 << (order - 1).bit_length()
    pairs = int(1.01 * power * nonzeros) + 2000
    drawn = uniform(1 + 2 * pairs)[1:]  # NPB leaves the first one out
    places = (power * drawn[1::2]).astype(np.intp)
    fits = places < order
    places, values = places[fits], drawn[::2][fits]
    chosen = _first_distinct(places.tolist(), order, nonzeros)
    numbers = np.arange(order)[:, np.newaxis]
    places = np.hstack((places[chosen].reshape(order, nonzeros), numbers))
    values = np.hstack((values[chosen].reshape(order, nonzeros), np.full((order, 1), 0.5)))
    # A vector that has its own number among its places has 1/2 there, and no further element.
    own = places[:, :-1] == numbers
    values[:, :-1][own] = 0.5
    values[own.any(axis=1), -1] = 0
    return places, values


def _first_distinct(places: list[int], vectors: int, length: int) -> list[int]:
    """Indices of those that `vectors` vectors take, each `length` different ones in turn."""
    chosen: list[int] = []
    index = 0
    for _ in range(vectors):
        taken: dict[int, int] = {}
        while len(taken) < length:
            taken.setdefault(places[index], index)
            index += 1
        chosen.extend(taken.values())
    return chosen


def _outer_products(
    order: int, nonzeros: int, rows: range, columns: range
) -> Iterator[tuple[Indices, Floats]]:
    """Keys and values of the block's elements, in the order of their vectors."""
    places, values = random_vectors(order, nonzeros)
    weights = np.cumprod(np.append(1.0, np.full(order - 1, CONDITION ** (1 / order))))
    scaled = weights[:, np.newaxis] * values
    in_rows = (places >= rows.start) & (places < rows.stop)
    in_columns = (places >= columns.start) & (places < columns.stop)
    for first in range(0, order, OUTER_PRODUCTS):
        some = slice(first, first + OUTER_PRODUCTS)
        vector, column, row = np.nonzero(in_columns[some, :, None] & in_rows[some, None, :])
        vector += first
        keys = _key(places[vector, row], places[vector, column], rows, columns)
        yield keys, values[vector, row] * scaled[vector, column]


def _key(row: Indices, column: Indices, rows: range, columns: range) -> Indices:
    """Numbers the elements of a block, row by row."""
    return (row - rows.start) * len(columns) + (column - columns.start)


def _summed(keys: Indices, values: Floats, rows: int, columns: int) -> SparseMatrix:
    """The matrix; values of the same element are added in their order."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.append(True, keys[1:] != keys[:-1])
    elements = np.zeros(np.count_nonzero(first))
    np.add.at(elements, np.cumsum(first) - 1, values[order])
    row, column = np.divmod(keys[first], columns)
    return SparseMatrix(elements, column, np.searchsorted(row, np.arange(rows + 1)))
