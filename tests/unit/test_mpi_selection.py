"""Which algorithm a collective of MPI takes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from shrimpmx.errors import InputError
from shrimpmx.mpi import selection
from shrimpmx.mpi.selection import ALGORITHM_OF, COLLECTIVE_OF, TABLE, algorithm_name


@pytest.fixture(autouse=True)
def nothing_forced() -> Iterator[None]:
    selection.algorithms_select({})
    yield
    selection.algorithms_select({})


def test_every_call_finds_an_algorithm() -> None:
    """The last row of a collective has no condition; names are known."""
    for collective in COLLECTIVE_OF:
        assert [row for row in TABLE if row[0] == collective][-1][2:] == (0, 1, 0)
    assert {row[0] for row in TABLE} == set(COLLECTIVE_OF)
    assert {row[1] for row in TABLE} == set(ALGORITHM_OF)


@pytest.mark.parametrize("row", [row for row in TABLE if row[2] > 0 or row[3] > 1])
def test_a_row_begins_at_its_length_and_number_of_ranks(
    row: tuple[str, str, int, int, int],
) -> None:
    collective, algorithm, length, ranks, _ = row
    others = 17 if ranks == 1 else ranks
    assert algorithm_name(collective, length, others) == algorithm
    if length > 0:
        assert algorithm_name(collective, length - 1, others) != algorithm
    if ranks > 1:
        assert algorithm_name(collective, length, ranks - 1) != algorithm


def test_what_an_algorithm_needs_is_there() -> None:
    name = algorithm_name
    assert (name("allgather", 64, 8), name("allgather", 64, 7)) == ("recursive-doubling", "bruck")
    assert name("allgather", 64, 8, even=False) == "ring"
    assert name("alltoall", 64, 16, even=False) == "all-at-once"
    assert name("allreduce", 1 << 20, 4) == "rabenseifner"
    assert name("allreduce", 1 << 20, 4, commutes=False) == "recursive-doubling"
    assert name("reduce_scatter", 1 << 20, 4, commutes=False) == "tree"


def test_an_algorithm_that_is_forced_is_taken_wherever_it_can_work() -> None:
    for collective, algorithm in {row[:2] for row in TABLE}:
        selection.algorithms_select({f"SHRIMPMX_MPI_{collective.upper()}": algorithm, "HOME": "/"})
        for length in (0, 100, 1 << 30):
            for ranks in (2, 4, 64):
                assert algorithm_name(collective, length, ranks) == algorithm
    selection.algorithms_select({"SHRIMPMX_MPI_REDUCE_SCATTER": "pairwise"})
    assert algorithm_name("reduce_scatter", 0, 4, commutes=False) == "tree"
    assert algorithm_name("alltoall", 0, 4) == "all-at-once"


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        (
            "SHRIMPMX_MPI_ALLTOALL",
            "brook",
            "SHRIMPMX_MPI_ALLTOALL=brook: the algorithms of alltoall are all-at-once, bruck, "
            "pairwise",
        ),
        ("SHRIMPMX_MPI_BARRIER", "ring", "SHRIMPMX_MPI_BARRIER names no collective"),
        ("SHRIMPMX_MPI_ALLTOAL", "ring", "; did you mean 'alltoall'?"),
    ],
)
def test_another_name_is_one_sentence(variable: str, value: str, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        selection.algorithms_select({variable: value})


@pytest.mark.parametrize("name", ["DEBUG", "FOO", "ALGORITHM"])
def test_a_name_that_is_near_none_is_compared_without_its_prefix(name: str) -> None:
    with pytest.raises(InputError) as caught:
        selection.algorithms_select({f"SHRIMPMX_MPI_{name}": "ring"})
    assert "did you mean" not in str(caught.value)
