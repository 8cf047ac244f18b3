"""How CG's ranks share its matrix: in a grid of process rows and columns, as NPB has it.

Ranks count along the rows of the grid. There are as many columns as rows, or twice as many. A
vector is divided like the columns of the matrix, and each process row has all of it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MatrixPartition:
    """One rank's part of the matrix, and its partners."""

    rows: range
    columns: range
    summed: range  # of its rows of a product: those that it gets summed over the process row
    sum_partners: tuple[int, ...]  # it exchanges with one after the other to sum over the row
    transpose_partner: int  # takes the summed part of a product as its part of a vector


def partition(rank: int, ranks: int, order: int) -> MatrixPartition:
    """The part of `rank`; `ranks` is a power of two."""
    log_ranks = ranks.bit_length() - 1
    grid_columns, grid_rows = 1 << (log_ranks + 1) // 2, 1 << log_ranks // 2
    row, column = divmod(rank, grid_columns)
    halves = grid_columns // grid_rows  # 1 or 2
    rows = _share(range(order), row, grid_rows)
    partner_row, half = divmod(column, halves)
    return MatrixPartition(
        rows=rows,
        columns=_share(_share(range(order), partner_row, grid_rows), half, halves),
        summed=_share(rows, half, halves),
        sum_partners=tuple(
            row * grid_columns + (column ^ 1 << bit)
            for bit in reversed(range(grid_columns.bit_length() - 1))
        ),
        transpose_partner=partner_row * grid_columns + row * halves + half,
    )


def _share(whole: range, number: int, shares: int) -> range:
    """One of so many equal shares; the first ones have one more if it does not come out even."""
    size, more = divmod(len(whole), shares)
    first = number * size + min(number, more)
    return whole[first : first + size + (number < more)]
