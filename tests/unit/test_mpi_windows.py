"""Windows and partitioned messages between ranks of different nodes, under a virtual clock."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from support.mpi_worlds import COMM_WORLD, SUM, TYPES, Calls, data_of, run_worlds

INFO_NULL, PROC_NULL = 0x1C000000, -1
REPLACE, NO_OP, MAXLOC = 0x5800000D, 0x5800000E, 0x5800000C
EXCLUSIVE, SHARED, NOSUCCEED, NOCHECK = 234, 235, 16384, 1024
ERRORS_RETURN, DOUBLE_INT = 0x54000001, ctypes.c_int(0x8C000001).value
ERR_RANK, ERR_WIN, ERR_LOCKTYPE, ERR_RMA_SYNC, ERR_DISP, ERR_RMA_RANGE = 6, 45, 47, 50, 52, 55
ERR_OP, ERR_TRUNCATE = 9, 14
IGNORED = 1
LONG = TYPES["i8"]
WORDS = 40_000


class Window:
    """One of `words` longs on every rank, whose operations have longs."""

    def __init__(self, mpi: Calls, words: int = WORDS) -> None:
        self.mpi, self.memory = mpi, np.zeros(words, "i8")
        made = ctypes.c_int()
        size = self.memory.nbytes
        mpi.Win_create(data_of(self.memory), size, 8, INFO_NULL, COMM_WORLD, made)
        self.handle = made.value

    def put(self, target: int, place: int, *values: int, datatype: int = LONG) -> None:
        count = len(values) if datatype == LONG else 1
        data = np.array(values, "i8")
        self.mpi.Put(data_of(data), len(values), LONG, target, place, count, datatype, self.handle)

    def add(self, target: int, place: int, *values: int, operation: int = SUM) -> None:
        data, count = np.array(values, "i8"), len(values)
        self.mpi.Accumulate(
            data_of(data), count, LONG, target, place, count, LONG, operation, self.handle
        )

    def get(self, target: int, place: int, into: np.ndarray[Any, Any]) -> None:
        count = len(into)
        self.mpi.Get(data_of(into), count, LONG, target, place, count, LONG, self.handle)

    def fetch(self, target: int, place: int, value: int, operation: int = SUM) -> int:
        """Under a lock."""
        data, found = np.array([value], "i8"), np.zeros(1, "i8")
        self.mpi.Fetch_and_op(
            data_of(data), data_of(found), LONG, target, place, operation, self.handle
        )
        self.mpi.Win_flush(target, self.handle)
        return int(found[0])

    def fence(self, assertion: int = 0) -> None:
        self.mpi.Win_fence(assertion, self.handle)

    def free(self) -> None:
        self.mpi.Win_free(ctypes.c_int(self.handle))


def vector(mpi: Calls) -> int:
    """Four longs, each of three words."""
    made = ctypes.c_int()
    mpi.Type_vector(4, 1, 3, LONG, made)
    mpi.Type_commit(made)
    return made.value


@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_what_fences_enclose_is_over_at_the_second(loss: float) -> None:
    def work(mpi: Calls) -> None:
        window, rank, size = Window(mpi), mpi.rank, mpi.size
        far, strided = np.zeros(20_000, "i8"), np.zeros(4, "i8")
        spread = vector(mpi)
        window.fence()
        for target in range(size):
            window.put(target, 10 * rank, rank + 1, rank + 2)
            window.put(target, 100 + 20 * rank, 1, 2, 3, 4 + rank, datatype=spread)
            window.add(target, 90, rank + 1, 10)
            window.add(target, 95, rank, operation=REPLACE)
        window.put((rank + 1) % size, 1000, *range(rank, rank + 20_000))
        window.put(PROC_NULL, 0, 1)
        window.fence()
        total = size * (size + 1) // 2
        assert [*window.memory[90:92]] == [total, 10 * size]
        assert 0 <= window.memory[95] < size
        for other in range(size):
            assert [*window.memory[10 * other :][:2]] == [other + 1, other + 2]
            assert [*window.memory[100 + 20 * other :][:10:3]] == [1, 2, 3, 4 + other]
        left = (rank - 1) % size
        assert (window.memory[1000:21_000] == np.arange(left, left + 20_000)).all()
        window.get((rank + 1) % size, 1000, far)
        mpi.Get(
            data_of(strided), 4, LONG, (rank + 1) % size, 100 + 20 * rank, 1, spread, window.handle
        )
        window.fence(NOSUCCEED)
        assert (far == np.arange(rank, rank + 20_000)).all()
        assert [*strided] == [1, 2, 3, 4 + rank]
        window.free()

    run_worlds(3, work, loss=loss)


def test_atomic_accesses_lose_nothing() -> None:
    def work(mpi: Calls) -> list[int]:
        window, found = Window(mpi, 16), []
        handle, swapped = window.handle, np.zeros(1, "i8")
        for turn in range(5):
            mpi.Win_lock(SHARED if turn % 2 else EXCLUSIVE, 0, 0, handle)
            found.append(window.fetch(0, 3, 1))
            mpi.Win_unlock(0, handle)
        mpi.Win_lock_all(0, handle)
        for target in range(mpi.size):
            window.fetch(target, 4, 2)
        new, old = np.array([mpi.rank + 1], "i8"), np.zeros(1, "i8")
        mpi.Compare_and_swap(data_of(new), data_of(old), data_of(swapped), LONG, 0, 5, handle)
        mpi.Win_flush_all(handle)
        assert window.fetch(mpi.rank, 4, 0, NO_OP) >= 2
        mpi.Win_unlock_all(handle)
        mpi.Ibarrier(COMM_WORLD, None)
        assert window.memory[4] == 2 * mpi.size
        window.free()
        return [*found, int(swapped[0])]

    results = run_worlds(3, work)
    assert sorted(number for each in results for number in each[:5]) == list(range(15))
    assert sorted(each[5] == 0 for each in results) == [False, False, True]


def test_a_pair_of_a_value_and_its_index_has_a_gap() -> None:
    def work(mpi: Calls) -> None:
        made, memory, given = ctypes.c_int(), np.zeros(4, "f8"), np.zeros(4, "f8")
        given[0::2] = mpi.rank + 1
        given.view("i4")[2::4] = mpi.rank
        mpi.Win_create(data_of(memory), 32, 1, INFO_NULL, COMM_WORLD, made)
        mpi.Win_fence(0, made.value)
        mpi.Accumulate(data_of(given), 2, DOUBLE_INT, 0, 0, 2, DOUBLE_INT, MAXLOC, made.value)
        mpi.Win_fence(0, made.value)
        if mpi.rank == 0:
            assert [*memory[0::2]] == [mpi.size] * 2
            assert [*memory.view("i4")[2::4]] == [mpi.size - 1] * 2
        mpi.Win_free(made)

    run_worlds(3, work)


def test_groups_give_access_and_take_it_back() -> None:
    def work(mpi: Calls) -> None:
        window, group = Window(mpi, 16), ctypes.c_int()
        handle = window.handle
        mpi.Win_get_group(handle, group)
        for turn in range(3):
            mpi.Win_post(group.value, 0, handle)
            mpi.Win_start(group.value, 0, handle)
            for target in range(mpi.size):
                window.put(target, mpi.rank, 10 * turn + mpi.rank)
            mpi.Win_complete(handle)
            mpi.Win_wait(handle)
            assert [*window.memory[: mpi.size]] == [10 * turn + rank for rank in range(mpi.size)]
        mpi.Group_free(group)
        window.free()

    run_worlds(3, work)


def test_requests_and_dynamic_windows() -> None:
    def work(mpi: Calls) -> None:
        made, requests = ctypes.c_int(), (ctypes.c_int * 3)()
        mpi.Win_create_dynamic(INFO_NULL, COMM_WORLD, made)
        memory, places = np.zeros(64, "i8"), np.zeros(mpi.size, "i8")
        mpi.Win_attach(made.value, data_of(memory), memory.nbytes)
        own = np.array([memory.ctypes.data], "i8")
        mpi.Iallgather(data_of(own), 1, LONG, data_of(places), 1, LONG, COMM_WORLD, None)
        target = (mpi.rank + 1) % mpi.size
        far = int(places[target])
        data, found, before = (np.array([value], "i8") for value in (7, 0, 0))
        at = [ctypes.addressof(requests) + 4 * number for number in range(3)]
        mpi.Win_lock_all(0, made.value)
        mpi.Rput(data_of(data), 1, LONG, target, far, 1, LONG, made.value, at[0])
        mpi.Raccumulate(data_of(data), 1, LONG, target, far, 1, LONG, SUM, made.value, at[1])
        mpi.Rget(data_of(found), 1, LONG, target, far, 1, LONG, made.value, at[2])
        mpi.Waitall(3, requests, 1)
        assert found[0] in (7, 14)
        mpi.Rget_accumulate(
            *(None, 0, LONG),
            *(data_of(before), 1, LONG),
            *(target, far, 1, LONG),
            NO_OP,
            made.value,
            at[0],
        )
        mpi.Wait(at[0], 1)
        mpi.Win_flush(target, made.value)
        assert before[0] == 14
        mpi.Win_set_errhandler(made.value, ERRORS_RETURN)
        # Only the target knows what is attached there.
        mpi.Put(data_of(data), 1, LONG, target, far + memory.nbytes, 1, LONG, made.value)
        assert mpi.code_of("Win_flush", target, made.value) == ERR_RMA_RANGE
        mpi.Get(data_of(found), 1, LONG, target, far - 8, 1, LONG, made.value)
        assert mpi.code_of("Win_flush", target, made.value) == ERR_RMA_RANGE
        mpi.Win_unlock_all(made.value)
        mpi.Ibarrier(COMM_WORLD, None)
        mpi.Win_detach(made.value, data_of(memory))
        assert mpi.code_of("Win_detach", made.value, data_of(memory)) == 56
        mpi.Win_free(made)

    run_worlds(3, work)


def test_errors_go_to_the_handler_of_the_window() -> None:
    def work(mpi: Calls) -> None:
        window = Window(mpi, 16)
        handle, data = window.handle, data_of(np.zeros(4, "i8"))
        mpi.Win_set_errhandler(handle, ERRORS_RETURN)

        def code(name: str, *arguments: Any) -> int:
            return mpi.code_of(name, *arguments)

        def put(target: int, place: int, count: int = 1, win: int = handle) -> int:
            return code("Put", data, count, LONG, target, place, count, LONG, win)

        assert put(0, 0) == ERR_RMA_SYNC
        window.fence()
        assert put(mpi.size, 0) == ERR_RANK
        assert put(0, -1) == ERR_DISP
        assert [put(0, 16), put(0, 13, 4), put(0, 2**60)] == [ERR_RMA_RANGE] * 3
        assert code("Put", data, 2, LONG, 0, 0, 1, LONG, handle) == ERR_TRUNCATE
        add = ("Accumulate", data, 1, LONG, 0, 0, 1, LONG)
        assert code(*add, 0x5800000B, handle) == ERR_OP
        assert code("Win_unlock", 0, handle) == ERR_RMA_SYNC
        assert put(0, 0) == 0
        assert code("Win_lock", EXCLUSIVE, 0, 0, handle) == ERR_RMA_SYNC
        window.fence(NOSUCCEED)
        assert code("Win_lock", 1, 0, 0, handle) == ERR_LOCKTYPE
        mpi.Win_lock(SHARED, mpi.rank, NOCHECK, handle)
        assert code("Win_fence", 0, handle) == ERR_RMA_SYNC
        assert code("Win_free", ctypes.c_int(handle)) == ERR_RMA_SYNC
        mpi.Win_unlock(mpi.rank, handle)
        assert code("Win_complete", handle) == code("Win_wait", handle) == ERR_RMA_SYNC
        window.free()
        mpi.Comm_set_errhandler(COMM_WORLD, ERRORS_RETURN)
        assert put(0, 0) == ERR_WIN

    run_worlds(2, work)


@pytest.mark.parametrize(("sent", "got"), [(4, 2), (3, 2), (2, 6)])
def test_a_partition_has_arrived_with_the_last_of_its_bytes(sent: int, got: int) -> None:
    """Of the sender's partitions one more has left at each look."""

    def work(mpi: Calls) -> list[list[bool]]:
        data = np.arange(12) if mpi.rank == 0 else np.zeros(12, "i8")
        parts, own = (sent, "Psend_init") if mpi.rank == 0 else (got, "Precv_init")
        request, flag, looks = ctypes.c_int(), ctypes.c_int(), []
        getattr(mpi, own)(
            *(data_of(data), parts, 12 // parts, LONG, 1 - mpi.rank, 7, COMM_WORLD),
            *(INFO_NULL, request),
        )
        mpi.Start(request)

        def has_arrived(partition: int) -> bool:
            mpi.Parrived(request.value, partition, flag)
            return flag.value != 0

        for partition in range(sent):
            if mpi.rank == 0:
                mpi.Pready(partition, request.value)
            mpi.Ibarrier(COMM_WORLD, None)
            if mpi.rank == 1:
                looks.append([has_arrived(number) for number in range(got)])
            mpi.Ibarrier(COMM_WORLD, None)
        mpi.Wait(request, IGNORED)
        mpi.Request_free(request)
        assert (data == np.arange(12)).all()
        return looks

    assert run_worlds(2, work)[1] == [
        [(number + 1) * sent <= left * got for number in range(got)] for left in range(1, sent + 1)
    ]
