"""IS: its keys by NPB's definition, one by one, and the buckets that each rank gets."""

from __future__ import annotations

import numpy as np
import pytest

from shrimpmx.applications.nas.integer_keys import bucket_edges, keys_of
from shrimpmx.applications.nas.random_numbers import MULTIPLIER, SEED, uniform


def test_random_numbers_follow_the_recurrence() -> None:
    state, numbers = SEED, uniform(1000)
    for number in numbers:
        state = MULTIPLIER * state % 2**46
        assert number == state / 2**46


def test_a_key_is_a_quarter_of_the_largest_times_four_numbers() -> None:
    numbers = uniform(4 * 500).reshape(-1, 4)
    expected = [int(2**11 / 4 * sum(four)) for four in numbers]
    assert keys_of(0, 500, 11).tolist() == expected
    assert keys_of(123, 300, 11).tolist() == expected[123:423]


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_each_rank_gets_buckets_until_it_has_its_share(ranks: int) -> None:
    totals = np.array([3, 0, 5, 8, 1, 1, 6, 0, 2, 6, 0, 0], np.int32)
    edges = bucket_edges(totals, ranks)
    share = totals.sum() // ranks
    given, ends = 0, []
    for bucket, keys in enumerate(totals, 1):
        given += keys
        if len(ends) < ranks and given >= (len(ends) + 1) * share:
            ends.append(bucket)
    ends += [len(totals)] * (ranks - len(ends))
    assert edges.tolist() == [0, *ends]


def test_more_ranks_than_buckets_leave_the_last_ones_without() -> None:
    assert bucket_edges(np.array([0, 8, 0], np.int32), 8).tolist() == [0, 2, 3, 3, 3, 3, 3, 3, 3]
