"""IS, integer sort: the ranks of integer keys, by a sort into buckets that the ranks share.

RNR-94-007 (kernel IS). In each iteration all ranks sum their bucket sizes (Allreduce), give each
rank neighbouring buckets with about as many keys as it has had, tell each other how many keys
they will send (Alltoall), send them (Alltoallv), and count how often each key occurs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from shrimpmx.applications.nas.integer_keys import Integers, bucket_edges, keys_of
from shrimpmx.applications.nas.kernel import Check, Kernel, Outcome, timed

ITERATIONS = 10
# Memory of a key: itself, sorted, received, and as an index while it is counted.
KEY_BYTES = 4 + 4 + 4 + 8


@dataclass(frozen=True)
class Problem:
    """2^log_keys keys below 2^log_max_key, and the ranks of test keys that must come out."""

    log_keys: int
    log_max_key: int
    log_buckets: int
    most_ranks: int
    test_indices: tuple[int, ...]
    test_ranks: tuple[int, ...]  # before the first iteration
    iterations: int = ITERATIONS

    def ranks_at(self, iteration: int) -> list[int]:
        """The official ranks of the test keys, which are small or large keys: each iteration adds
        a key that is smaller and one that is larger than all of them."""
        half = 1 << self.log_keys - 1
        return [rank + iteration if rank < half else rank - iteration for rank in self.test_ranks]


PROBLEMS = {
    "S": Problem(16, 11, 9, 128, (48427, 17148, 23627, 62548, 4431), (0, 18, 346, 64917, 65463)),
    "W": Problem(
        *(20, 16, 10, 1024),
        (357773, 934767, 875723, 898999, 404505),
        (1247, 11696, 1039987, 1043896, 1048018),
    ),
    "A": Problem(
        *(23, 19, 10, 1024),
        (2112377, 662041, 5336171, 3642833, 4250760),
        (103, 17522, 123927, 8288933, 8388265),
    ),
    "B": Problem(
        *(25, 21, 10, 1024),
        (41869, 812306, 5102857, 18232239, 26860214),
        (33422937, 10244, 59149, 33135281, 99),
    ),
}


class IntegerSort(Kernel[Problem]):
    """IS."""

    name = "IS"
    title = "integer sort"
    problems = PROBLEMS

    def ranks_rule(self) -> str:
        return "a power of two, up to 1024 (class S: 128)"

    def takes_ranks(self, ranks: int, problem: Problem) -> bool:
        return ranks.bit_count() == 1 and ranks <= problem.most_ranks

    def memory_bytes(self, problem: Problem, ranks: int) -> int:
        return (KEY_BYTES << problem.log_keys) + (2 * 8 << problem.log_max_key)

    def describe(self, problem: Problem) -> str:
        keys, greatest = 1 << problem.log_keys, 1 << problem.log_max_key
        return f"{keys} keys below {greatest}, {problem.iterations} iterations"

    def shortened(self, problem: Problem, iterations: int) -> Problem | None:
        return replace(problem, iterations=iterations) if 1 <= iterations <= ITERATIONS else None

    def run(self, problem: Problem, world: MPI.Intracomm) -> Outcome:
        sort = _Sort(problem, world)
        sort.rank_keys(1)
        right = 0
        with timed(world) as timer:
            for iteration in range(1, problem.iterations + 1):
                right += sort.rank_keys(iteration)
        found = np.array((right, sort.out_of_order(), sort.sum_received(), sort.sum_sent()))
        world.Allreduce(MPI.IN_PLACE, found)
        right, wrong, received, sent = map(int, found)
        checks = (
            Check("right ranks of test keys", right, problem.iterations * len(problem.test_ranks)),
            Check("sorted keys out of order", wrong, 0),
            Check("sum of sorted keys", received, sent),
        )
        return Outcome(timer.seconds, float(problem.iterations << problem.log_keys), checks)


class _Sort:
    """The keys of this rank, and those that it gets to rank."""

    def __init__(self, problem: Problem, world: MPI.Intracomm) -> None:
        self._problem = problem
        self._world = world
        count = (1 << problem.log_keys) // world.size
        self._keys = keys_of(world.rank * count, count, problem.log_max_key)
        self._sorted = np.empty_like(self._keys)
        # More than the share and a bucket never comes; the first iteration knows the buckets.
        self._room = np.empty(0, np.int32)
        self._received = self._room  # keys, less the smallest that this rank may get
        self._low = 0
        self._ranks = np.empty(0, np.int64)
        self._shift = problem.log_max_key - problem.log_buckets
        self._bucket_lows = (np.arange((1 << problem.log_buckets) + 1) << self._shift).astype("i")
        owner, self._test_places = np.divmod(problem.test_indices, count)
        self._has_test_key = owner == world.rank
        self._test_places[~self._has_test_key] = 0
        # The bucket sizes; behind them the test keys, which one rank has and all learn.
        self._sizes = np.empty((1 << problem.log_buckets) + len(owner), np.int32)
        self._totals = np.empty_like(self._sizes)

    def rank_keys(self, iteration: int) -> int:
        """An iteration: the number of test keys whose rank, found here, is the official one."""
        if self._world.rank == 0:
            greatest = 1 << self._problem.log_max_key
            self._keys[[iteration, iteration + ITERATIONS]] = iteration, greatest - iteration
        buckets = 1 << self._problem.log_buckets
        begins = self._sort_into_buckets()
        self._sizes[:buckets] = np.diff(begins)
        self._sizes[buckets:] = self._keys[self._test_places] * self._has_test_key
        self._world.Allreduce(self._sizes, self._totals)
        totals, test_keys = self._totals[:buckets], self._totals[buckets:]
        edges = bucket_edges(totals, self._world.size)
        self._exchange(np.diff(begins[edges]).astype(np.int32), totals)
        first, end = edges[self._world.rank : self._world.rank + 2].tolist()
        self._low = first << self._shift
        values = (end << self._shift) - self._low
        if self._low:
            self._received -= self._low
        occurrences = np.bincount(self._received, minlength=values)
        self._ranks = np.cumsum(occurrences)
        smaller = int(totals[:first].sum())
        right = 0
        for key, rank in zip(test_keys.tolist(), self._problem.ranks_at(iteration), strict=True):
            if 0 <= (place := key - self._low) < values:
                right += bool(smaller + self._ranks[place] - occurrences[place] == rank)
        return right

    def _sort_into_buckets(self) -> npt.NDArray[np.intp]:
        """Where each bucket begins, and the end of the last. NumPy sorts integers faster than it
        puts them into buckets; their order in a bucket does not matter."""
        np.copyto(self._sorted, self._keys)
        self._sorted.sort()
        return np.searchsorted(self._sorted, self._bucket_lows)

    def _exchange(self, send_counts: Integers, totals: Integers) -> None:
        receive_counts = np.empty_like(send_counts)
        self._world.Alltoall(send_counts, receive_counts)
        count = sum(receive_counts.tolist())
        if count > len(self._room):
            self._room = np.empty(max(count, len(self._keys) + int(totals.max())), np.int32)
        self._received = self._room[:count]
        self._world.Alltoallv([self._sorted, send_counts], [self._received, receive_counts])

    def out_of_order(self) -> int:
        """Number of keys here that stand wrong when they are placed by their ranks. Collective."""
        placed = np.repeat(np.arange(len(self._ranks)), np.diff(self._ranks, prepend=0))
        wrong = int(np.count_nonzero(placed != np.sort(self._received)))
        greatest = np.array(placed[-1] + self._low if len(placed) else -1)
        before = np.array(-1)  # the greatest key of all ranks before
        self._world.Exscan(greatest, before, MPI.MAX)
        return wrong + int(len(placed) > 0 and before > placed[0] + self._low)

    def sum_received(self) -> int:
        """Of the keys that this rank has ranked."""
        return int(self._received.sum(dtype=np.int64)) + self._low * len(self._received)

    def sum_sent(self) -> int:
        """Of the keys that this rank had before they were sorted."""
        return int(self._keys.sum(dtype=np.int64))
