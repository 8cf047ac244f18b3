"""MPI_Dims_create against a search through all grids."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

from support.tree import ROOT

ERR_DIMS, ERR_ARG = 11, 12

# A world of one, in a process of its own: it cannot be left again.
HEAD = """
import ctypes
import itertools
import math

from shrimpmx.mpi.library import library_path

ERRORS_RETURN, WORLD = 0x54000001, 0x44000000
mpi = ctypes.CDLL(str(library_path()))
mpi.MPI_Init(None, None)
mpi.MPI_Comm_set_errhandler(WORLD, ERRORS_RETURN)

def dims_create(number, dims):
    found = (ctypes.c_int * len(dims))(*dims)
    return mpi.MPI_Dims_create(number, len(dims), found) or list(found)
"""


def output(text: str) -> list[str]:
    """The lines that a program printed which ended well."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(text) + "\nmpi.MPI_Finalize()"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_grid_is_the_most_even_one() -> None:
    """Its largest and smallest dimension are as close as in any grid; of such grids the smallest is
    the largest, then the largest the smallest, and so on."""
    assert (
        output(
            """
        def most_even(number, count):
            divisors = [each for each in range(1, number + 1) if number % each == 0]
            grids = itertools.combinations_with_replacement(divisors[::-1], count)
            grids = [list(grid) for grid in grids if math.prod(grid) == number]
            return min(grids, key=lambda grid: (grid[0] - grid[-1], -grid[-1], grid))

        for count in range(1, 5):
            for number in range(1, 401):
                assert dims_create(number, count * [0]) == most_even(number, count), number
        # Those in which the grid with the least largest dimension is another one.
        for number, count in ((3696, 3), (4620, 3), (5040, 3), (5850, 3), (3600, 4)):
            assert dims_create(number, count * [0]) == most_even(number, count), number
        """
        )
        == []
    )


def test_large_numbers() -> None:
    assert output(
        """
        print(dims_create(2**31 - 1, [0, 0]), dims_create(2**30, [0, 0, 0]))
        print(dims_create(46341 * 46337, [0, 0]), dims_create(64, 40 * [0]) == 6 * [2] + 34 * [1])
        # This number has more divisors than any other below 2**31.
        print(dims_create(2095133040, [0, 0, 0]), dims_create(2095133040, 5 * [0]))
        """
    ) == [
        "[2147483647, 1] [1024, 1024, 1024]",
        "[46341, 46337] True",
        "[1292, 1287, 1260] [81, 77, 76, 68, 65]",
    ]


def test_dimensions_that_are_given_stay() -> None:
    """The first rows are the standard's own example (MPI 3.1, 7.5.2)."""
    assert output(
        """
        print(dims_create(6, [0, 0]), dims_create(7, [0, 0]), dims_create(6, [0, 3, 0]))
        print(dims_create(7, [0, 3, 0]))
        print(dims_create(24, [0, 2, 0, 2]), dims_create(6, [3, 2]), dims_create(1, []))
        print(dims_create(6, [-1, 0]), dims_create(0, [0]), mpi.MPI_Dims_create(4, -1, None))
        """
    ) == [
        "[3, 2] [7, 1] [2, 3, 1]",
        str(ERR_DIMS),
        "[3, 2, 2, 2] [3, 2] []",
        f"{ERR_DIMS} {ERR_ARG} {ERR_DIMS}",
    ]
