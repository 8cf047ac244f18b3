"""CG: its matrix by NPB's definition, element by element, and how ranks share it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt
import pytest

from shrimpmx.applications.nas.matrix_partition import partition
from shrimpmx.applications.nas.random_numbers import uniform
from shrimpmx.applications.nas.sparse_matrix import CONDITION, SparseMatrix, matrix_block

ORDER, NONZEROS, SHIFT = 37, 5, 10.0


def definition() -> npt.NDArray[np.float64]:
    """The matrix, made as RNR-94-007 says it."""
    numbers = iter(uniform(5000)[1:])
    matrix, weight = np.zeros((ORDER, ORDER)), 1.0
    for number in range(ORDER):
        vector: dict[int, float] = {}
        while len(vector) < NONZEROS:
            value, place = next(numbers), int(64 * next(numbers))
            if place < ORDER:
                vector.setdefault(place, value)
        vector[number] = 0.5
        for column, one in vector.items():
            for row, other in vector.items():
                matrix[row, column] += other * (weight * one)
        weight *= CONDITION ** (1 / ORDER)
    return matrix + (CONDITION - SHIFT) * np.eye(ORDER)


def dense(matrix: SparseMatrix, columns: int) -> npt.NDArray[np.float64]:
    rows = np.zeros((len(matrix.begins) - 1, columns))
    numbers = np.repeat(np.arange(len(rows)), np.diff(matrix.begins))
    rows[numbers, matrix.columns] = matrix.elements
    return rows


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16, 64])
def test_the_parts_are_the_official_matrix(ranks: int) -> None:
    expected = definition()
    found = np.full_like(expected, np.nan)
    for rank in range(ranks):
        part = partition(rank, ranks, ORDER)
        block = matrix_block(ORDER, NONZEROS, SHIFT, part.rows, part.columns)
        found[np.ix_(part.rows, part.columns)] = dense(block, len(part.columns))
        vector, product = np.arange(1.0, 1 + len(part.columns)), np.empty(len(part.rows))
        block.multiply(vector, product)
        assert np.allclose(product, dense(block, len(part.columns)) @ vector)
    assert (found == expected).all()


def test_the_smallest_class_has_as_many_elements_as_npb_says() -> None:
    assert len(matrix_block(1400, 7, 10, range(1400), range(1400)).elements) == 78148


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("order", [1400, 77])
def test_partners_sum_a_process_row_and_hand_over_what_each_needs(ranks: int, order: int) -> None:
    parts = [partition(rank, ranks, order) for rank in range(ranks)]
    rows = defaultdict(set)
    for rank, part in enumerate(parts):
        rows[part.rows].add(rank)
        taker = parts[part.transpose_partner]
        assert taker.columns == part.summed
        assert taker.transpose_partner == rank
        assert all(rank == parts[one].sum_partners[i] for i, one in enumerate(part.sum_partners))
    for row, members in rows.items():
        reached = {min(members)}
        for step in range(len(parts[0].sum_partners)):
            reached |= {parts[rank].sum_partners[step] for rank in reached}
        assert reached == members
        assert sum(len(set(parts[rank].columns)) for rank in members) == order, row
