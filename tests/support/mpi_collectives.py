"""Each collective call against numpy, as a rank of a world in this process makes it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.mpi_worlds import COMM_WORLD, IN_PLACE, MAX, SUM, Calls, data_of, ints, type_of

Array = NDArray[Any]
# A prime: affine functions x -> a x + b modulo it make a group that does not commute.
MODULUS = 7919
LONG = 0x4C000807
UNTOUCHED = -99
User = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p
)


def affine(one: Array, other: Array) -> Array:
    """The function that applies `other` first, element by element."""
    return np.stack(
        [
            one[..., 0] * other[..., 0] % MODULUS,
            (one[..., 0] * other[..., 1] + one[..., 1]) % MODULUS,
        ],
        axis=-1,
    )


@User
def compose(data: int, into: int, length: Any, _datatype: Any) -> None:
    shape = ctypes.c_long * (2 * length[0])
    ours = np.frombuffer(shape.from_address(into), np.int64).reshape(-1, 2)
    ours[:] = affine(np.frombuffer(shape.from_address(data), np.int64).reshape(-1, 2), ours)


def composed(parts: Array) -> Array:
    """Of those of all ranks, in their order."""
    result = parts[-1]
    for part in parts[-2::-1]:
        result = affine(part, result)
    return result


class Kind:
    """A reduction: its operation and datatype, what each rank gives, and what numpy makes of it."""

    def __init__(self, mpi: Calls, name: str) -> None:
        self.name, self.operation, self.datatype = name, SUM, LONG
        self.shape: tuple[int, ...] = ()
        if name == "max":
            self.operation = MAX
        if name == "affine":
            operation, datatype = ctypes.c_int(), ctypes.c_int()
            mpi.Op_create(ctypes.cast(compose, ctypes.c_void_p), 0, operation)
            mpi.Type_contiguous(2, LONG, datatype)
            mpi.Type_commit(datatype)
            self.operation, self.datatype, self.shape = operation.value, datatype.value, (2,)

    def given(self, rank: int, count: int) -> Array:
        size = count * (2 if self.shape else 1)
        numbers = (np.arange(size) * 17 + rank * 101 + 3) % MODULUS
        return numbers.astype(np.int64).reshape((count, *self.shape))

    def of(self, ranks: range, count: int) -> Array:
        parts = np.array([self.given(rank, count) for rank in ranks])
        if self.name == "affine":
            return composed(parts)
        return parts.sum(axis=0) if self.name == "sum" else parts.max(axis=0)

    def empty(self, count: int) -> Array:
        return np.full((count, *self.shape), UNTOUCHED, np.int64)


def calls(mpi: Calls, name: str) -> Iterator[Callable[..., None]]:
    """The blocking call, and the one with a request and a wait."""
    function = getattr(mpi, f"I{name}")

    def started(*arguments: Any) -> None:
        request = ctypes.c_int()
        function(*arguments, request)
        mpi.Wait(request, 1)

    yield lambda *arguments: function(*arguments, None)
    yield started


def given(rank: int, count: int) -> Array:
    return np.arange(count, dtype=np.int32) + 1000 * rank


def moves(mpi: Calls, count: int) -> None:
    """Bcast, gather, scatter, allgather and alltoall of `count` elements a rank."""
    rank, size = mpi.rank, mpi.size
    everything = np.array([given(each, count) for each in range(size)]).reshape(size, count)
    kind = type_of(everything)
    for root in {0, size - 1, size // 2}:
        for bcast in calls(mpi, "bcast"):
            data = given(root if rank == root else -1, count)
            bcast(data_of(data), count, kind, root, COMM_WORLD)
            assert (data == given(root, count)).all()
        for gather in calls(mpi, "gather"):
            into = np.full((size, count), -1, np.int32)
            into[rank] = mine = given(rank, count)
            in_place = rank == root and count % 2
            gather(IN_PLACE if in_place else data_of(mine), count, kind, data_of(into), count, kind,
                   root, COMM_WORLD)  # fmt: skip
            assert rank != root or (into == everything).all()
        for scatter in calls(mpi, "scatter"):
            mine = np.full(count, -1, np.int32)
            in_place = rank == root and count % 2
            scatter(data_of(everything), count, kind, IN_PLACE if in_place else data_of(mine),
                    count, kind, root, COMM_WORLD)  # fmt: skip
            assert in_place or (mine == everything[rank]).all()
    for allgather in calls(mpi, "allgather"):
        for in_place in (False, True):
            into = np.full((size, count), -1, np.int32)
            into[rank] = mine = given(rank, count)
            allgather(IN_PLACE if in_place else data_of(mine), count, kind, data_of(into), count,
                      kind, COMM_WORLD)  # fmt: skip
            assert (into == everything).all()
    for alltoall in calls(mpi, "alltoall"):
        for in_place in (False, True):
            mine = np.array([given(10 * rank + each, count) for each in range(size)])
            into = mine.copy() if in_place else np.full_like(mine, -1)
            alltoall(IN_PLACE if in_place else data_of(mine), count, kind, data_of(into), count,
                     kind, COMM_WORLD)  # fmt: skip
            assert all((into[each] == given(10 * each + rank, count)).all() for each in range(size))


def uneven_moves(mpi: Calls, count: int) -> None:
    """The calls with counts and places: rank r has `count` + r % 3 elements, the last first."""
    rank, size = mpi.rank, mpi.size
    counts = [count + each % 3 for each in range(size)]
    places = [sum(counts[each + 1 :]) for each in range(size)]
    total = sum(counts)
    whole = np.empty(total, np.int32)
    for each in range(size):
        whole[places[each] : places[each] + counts[each]] = given(each, counts[each])
    kind, mine, own = type_of(whole), given(rank, counts[rank]), counts[rank]
    for root in {0, size - 1}:
        into = np.full(total, -1, np.int32)
        mpi.Igatherv(data_of(mine), own, kind, data_of(into), ints(*counts), ints(*places), kind,
                     root, COMM_WORLD, None)  # fmt: skip
        assert rank != root or (into == whole).all()
        part = np.full(own, -1, np.int32)
        mpi.Iscatterv(data_of(whole), ints(*counts), ints(*places), kind, data_of(part), own, kind,
                      root, COMM_WORLD, None)  # fmt: skip
        assert (part == mine).all()
    into = np.full(total, -1, np.int32)
    mpi.Iallgatherv(data_of(mine), own, kind, data_of(into), ints(*counts), ints(*places), kind,
                    COMM_WORLD, None)  # fmt: skip
    assert (into == whole).all()
    # Rank r sends (r + q) % 3 elements to rank q.
    counts = [(rank + each) % 3 for each in range(size)]
    places = [3 * each for each in range(size)]
    sent = np.arange(3 * size, dtype=np.int32) + 1000 * rank
    into = np.full(3 * size, -1, np.int32)
    mpi.Ialltoallv(data_of(sent), ints(*counts), ints(*places), kind, data_of(into), ints(*counts),
                   ints(*places), kind, COMM_WORLD, None)  # fmt: skip
    for each in range(size):
        expected = [3 * rank + 1000 * each + step for step in range(counts[each])]
        expected += [-1] * (3 - counts[each])
        assert into[3 * each : 3 * each + 3].tolist() == expected


def reductions(mpi: Calls, kind: Kind, count: int) -> None:
    """Reduce, allreduce, scan and reduce-scatter, in place and not."""
    rank, size = mpi.rank, mpi.size
    described = (kind.datatype, kind.operation)
    mine = kind.given(rank, count)
    for in_place in (False, True):
        data = IN_PLACE if in_place else data_of(mine)
        for root in {0, size - 1, size // 2}:
            for reduce in calls(mpi, "reduce"):
                into = mine.copy() if in_place else kind.empty(count)
                source = data if rank == root else data_of(mine)
                reduce(source, data_of(into), count, *described, root, COMM_WORLD)
                if rank == root:
                    assert (into == kind.of(range(size), count)).all()
        for name, ranks in (
            ("allreduce", range(size)), ("scan", range(rank + 1)), ("exscan", range(rank)),
        ):  # fmt: skip
            for call in calls(mpi, name):
                into = mine.copy() if in_place else kind.empty(count)
                call(data, data_of(into), count, *described, COMM_WORLD)
                if ranks:
                    assert (into == kind.of(ranks, count)).all(), name
        whole = kind.given(rank, count * size)
        sum_of_whole = kind.of(range(size), count * size)
        for call in calls(mpi, "reduce_scatter_block"):
            into = whole.copy() if in_place else kind.empty(count)
            data = IN_PLACE if in_place else data_of(whole)
            call(data, data_of(into), count, *described, COMM_WORLD)
            assert (into[:count] == sum_of_whole[rank * count : (rank + 1) * count]).all()
        counts = [count + each % 3 for each in range(size)]
        whole = kind.given(rank, sum(counts))
        place = sum(counts[:rank])
        into = whole.copy() if in_place else kind.empty(counts[rank])
        data = IN_PLACE if in_place else data_of(whole)
        mpi.Ireduce_scatter(data, data_of(into), ints(*counts), *described, COMM_WORLD, None)
        expected = kind.of(range(size), sum(counts))[place : place + counts[rank]]
        assert (into[: counts[rank]] == expected).all()


def everything(counts: tuple[int, ...], kinds: tuple[str, ...]) -> Callable[[Calls], bool]:
    """The work of a rank that makes all of them."""

    def work(mpi: Calls) -> bool:
        all_kinds = [Kind(mpi, name) for name in kinds]
        for count in counts:
            moves(mpi, count)
            uneven_moves(mpi, count)
            for kind in all_kinds:
                reductions(mpi, kind, count)
            for barrier in calls(mpi, "barrier"):
                barrier(COMM_WORLD)
        return True

    return work
