"""The keys that IS sorts, and how its ranks share the buckets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shrimpmx.applications.nas.random_numbers import seed_after, states

BATCH = 1 << 16  # keys that are drawn at once

Integers = npt.NDArray[np.int32]


def keys_of(first: int, count: int, log_max_key: int) -> Integers:
    """The official keys from number `first` on, shape (count,): a quarter of the largest key times
    the sum of four numbers in (0, 1), which is exact in integers."""
    keys = np.empty(count, np.int32)
    for done in range(0, count, BATCH):
        some = keys[done : done + BATCH]
        four = states(4 * len(some), seed_after(4 * (first + done))).reshape(-1, 4).T
        some[:] = (four[0] + four[1] + four[2] + four[3]) >> np.uint64(48 - log_max_key)
    return keys


def bucket_edges(totals: Integers, ranks: int) -> npt.NDArray[np.intp]:
    """Where the buckets of each rank begin, and the end of the last one, shape (ranks + 1,).

    A rank gets buckets until it and those before have their share of the keys. One bucket may
    hold the shares of several ranks; the later ones then get the next buckets, or none.
    """
    up_to = np.cumsum(totals, dtype=np.int64)
    number = np.arange(ranks)
    last = np.searchsorted(up_to, (number + 1) * (up_to[-1] // ranks))
    last = np.maximum.accumulate(last - number) + number
    edges = np.zeros(ranks + 1, np.intp)
    np.minimum(last + 1, len(totals), out=edges[1:])
    return edges
