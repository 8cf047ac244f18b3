"""How much there may be of everything, what is said of more, and that what is freed comes again."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.mpi_worlds import COMM_WORLD, Calls, data_of, ints, run_worlds

from shrimpmx.shared.control import Control

COMM_NULL = 0x04000000
INFO_NULL = 0x1C000000
COMM_SELF, INT, BYTE, ERRORS_RETURN = 0x44000001, 0x4C000405, 0x4C00010D, 0x54000001
ANY_SOURCE, ANY_TAG, IGNORED = -2, -1, 1
ERR_COUNT, ERR_TRUNCATE, ERR_NO_MEM, CLASS_MASK = 2, 14, 34, 0xFF
# Contexts of all communicators of a run, and two of the world and self.
CONTEXT_SETS = 131072
INT_MAX = 2**31 - 1


def alone(work: Callable[[Calls], Any]) -> Any:
    """What a rank alone makes of it; errors return."""

    def life(mpi: Calls) -> Any:
        for comm in (COMM_WORLD, COMM_SELF):
            mpi.Comm_set_errhandler(comm, ERRORS_RETURN)
        return work(mpi)

    return run_worlds(1, life)[0]


# A call that makes one of them in the last argument, how it is freed, and how many there may be.
MADE: dict[str, tuple[str, tuple[Any, ...], str, int]] = {
    "communicator": ("Comm_dup", (COMM_SELF,), "Comm_free", 65536),
    "datatype": ("Type_contiguous", (2, INT), "Type_free", 65531),
    "group": ("Comm_group", (COMM_WORLD,), "Group_free", 65536),
    "info object": ("Info_create", (), "Info_free", 65536),
    "operation": ("Op_create", (ctypes.c_void_p(8), 1), "Op_free", 65536),
    "error handler": ("Comm_create_errhandler", (ctypes.c_void_p(8),), "Errhandler_free", 4096),
}


@pytest.mark.parametrize("what", MADE)
def test_what_is_freed_makes_room_for_others(what: str) -> None:
    name, arguments, free, most = MADE[what]

    def work(mpi: Calls) -> tuple[int, int, str]:
        made, code = [ctypes.c_int()], 0
        while code == 0:
            code = mpi.code_of(name, *arguments, made[-1])
            made.append(ctypes.c_int())
        # All worlds of this process have one table: other tests may have left some.
        del made[-2:]
        assert most * 0.9 < len({handle.value for handle in made}) == len(made) <= most
        middle = len(made) // 2
        freed = ctypes.c_int(made[middle].value)
        getattr(mpi, free)(freed)
        again = mpi.code_of(name, *arguments, made[middle])
        for handle in made:
            getattr(mpi, free)(handle)
        return code & CLASS_MASK, again, mpi.text_of(code)

    error_class, again, text = alone(work)
    assert (error_class, again) == (ERR_NO_MEM, 0)
    assert f"no room for another {what}: a rank has at most {most}" in text


def test_keys_of_attributes_stay_while_an_attribute_has_them() -> None:
    def work(mpi: Calls) -> tuple[bool, bool]:
        key, other, later = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        mpi.Comm_create_keyval(None, None, key, None)
        handle = key.value
        mpi.Comm_set_attr(COMM_WORLD, handle, ctypes.c_void_p(1))
        mpi.Comm_free_keyval(key)
        mpi.Comm_create_keyval(None, None, other, None)
        mpi.Comm_delete_attr(COMM_WORLD, handle)
        mpi.Comm_create_keyval(None, None, later, None)
        return other.value == handle, later.value == handle

    assert alone(work) == (False, True)


def test_communicators_come_and_go_for_ever() -> None:
    """More often than there are contexts, and none meets a message of another's."""

    def work(mpi: Calls) -> tuple[int, int]:
        comm, request, found = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(-1)
        mpi.Comm_dup(COMM_SELF, comm)
        mpi.Isend(None, 0, BYTE, 0, 5, comm.value, request)
        mpi.Wait(request, IGNORED)
        for _ in range(CONTEXT_SETS - 2):
            mpi.Comm_free(comm)
            mpi.Comm_dup(COMM_SELF, comm)
        mpi.Iprobe(ANY_SOURCE, ANY_TAG, comm.value, found, IGNORED)
        longest = ctypes.c_int()
        mpi.Comm_dup(comm.value, longest)
        return found.value, longest.value != comm.value

    assert alone(work) == (0, True)


def test_a_context_that_some_ranks_still_have_is_given_to_nobody() -> None:
    """Rank 1 keeps each communicator that rank 0 frees, and a message of it."""

    def work(mpi: Calls) -> bool:
        kept, rounds = [], 40
        for number in range(rounds):
            comm = ctypes.c_int()
            mpi.Comm_dup(COMM_WORLD, comm)
            if mpi.rank == 0:
                value, request = ctypes.c_int(number), ctypes.c_int()
                mpi.Isend(value, 1, INT, 1, 0, comm.value, request)
                mpi.Wait(request, IGNORED)
                mpi.Comm_free(comm)
            else:
                kept.append(comm)
        for number, comm in enumerate(kept):
            value = ctypes.c_int(-1)
            mpi.Recv(value, 1, INT, 0, 0, comm.value, IGNORED)
            assert value.value == number
            mpi.Comm_free(comm)
        return True

    assert run_worlds(2, work) == [True, True]


def uses_of_contexts(control: Control) -> NDArray[np.uint32]:
    """They are the last part."""
    return np.frombuffer(control.segment.view(), np.uint32)[-CONTEXT_SETS:]


@pytest.mark.parametrize("finish", ["Wait", "Waitall", "Test"])
def test_no_way_makes_a_communicator_where_no_contexts_are_left(finish: str) -> None:
    """Nor does it take a message from the world's, and with contexts the same way makes one."""

    def made_by(mpi: Calls, name: str, *arguments: Any) -> tuple[int, int]:
        made, request, done = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        if name != "Comm_idup":
            return mpi.code_of(name, *arguments, made), made.value
        mpi.Comm_idup(*arguments, made, request)
        if finish == "Waitall":
            return mpi.code_of("Waitall", 1, request, IGNORED), made.value
        if finish == "Wait":
            return mpi.code_of("Wait", request, IGNORED), made.value
        for _ in range(5):  # a test alone lets no time pass for the other rank
            mpi.Ibarrier(COMM_WORLD, None)
        code = mpi.code_of("Test", request, done, IGNORED)
        assert done.value or code
        return code, made.value

    def work(mpi: Calls) -> None:
        mpi.Comm_set_errhandler(COMM_WORLD, ERRORS_RETURN)
        uses = uses_of_contexts(mpi.control)
        value, found = ctypes.c_int(7), ctypes.c_int()
        if mpi.rank == 0:
            mpi.Send(value, 1, INT, 1, 5, COMM_WORLD)
            uses[uses == 0] = 1
        mpi.Ibarrier(COMM_WORLD, None)
        ways = [
            ("Comm_dup", (COMM_WORLD,)),
            ("Comm_idup", (COMM_WORLD,)),
            ("Comm_split", (COMM_WORLD, 0, 0)),
        ]
        for name, arguments in ways:
            code, made = made_by(mpi, name, *arguments)
            assert code & CLASS_MASK == ERR_NO_MEM
            assert "no room for another communicator" in mpi.text_of(code)
            assert mpi.code_of("Comm_size", made, ctypes.c_int()) != 0
        mpi.Ibarrier(COMM_WORLD, None)
        if mpi.rank == 0:
            uses[uses == 1] = 0
        else:
            mpi.Iprobe(0, 5, COMM_WORLD, found, IGNORED)
            assert found.value
            mpi.Recv(value, 1, INT, 0, 5, COMM_WORLD, IGNORED)
        mpi.Ibarrier(COMM_WORLD, None)
        for name, arguments in ways:
            code, made = made_by(mpi, name, *arguments)
            assert code == 0
            mpi.Ibarrier(made, None)
            mpi.Comm_free(ctypes.c_int(made))

    run_worlds(2, work)


def test_every_way_to_make_a_communicator_gives_its_contexts_back() -> None:
    """Each rank's share, of those that get none, too."""

    def work(mpi: Calls) -> int:
        rank, made, group, some = mpi.rank, ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        mpi.Comm_group(COMM_WORLD, group)
        mpi.Group_incl(group.value, 2, ints(0, 1), some)
        undefined, color = -32766, rank // 2
        ways: list[tuple[str, tuple[Any, ...]]] = [
            ("Comm_dup", (COMM_WORLD,)),
            ("Comm_split", (COMM_WORLD, undefined if rank == 1 else 0, 0)),
            ("Comm_split_type", (COMM_WORLD, 1, 0, INFO_NULL)),
            ("Comm_split_type", (COMM_WORLD, 3, 0, INFO_NULL)),
            ("Comm_create", (COMM_WORLD, some.value)),
            ("Cart_create", (COMM_WORLD, 1, ints(2), ints(0), 0)),
            ("Graph_create", (COMM_WORLD, 1, ints(0), ints(0), 0)),
        ]
        if rank < 2:
            ways.append(("Comm_create_group", (COMM_WORLD, some.value, 7)))
        for name, arguments in ways:
            getattr(mpi, name)(*arguments, made)
            if made.value != COMM_NULL:
                mpi.Comm_free(made)
        local, inter, merged, dup = (ctypes.c_int() for _ in range(4))
        mpi.Comm_split(COMM_WORLD, color, 0, local)
        mpi.Intercomm_create(local.value, 0, COMM_WORLD, 2 - 2 * color, 5, inter)
        mpi.Intercomm_merge(inter.value, 0, merged)
        mpi.Comm_dup(inter.value, dup)
        for comm in (dup, merged, inter, local):
            mpi.Comm_free(comm)
        mpi.Ibarrier(COMM_WORLD, None)
        return 0

    def look(control: Control) -> None:
        uses = uses_of_contexts(control)
        left.extend(uses[uses != 0].tolist())

    left: list[int] = []
    run_worlds(3, work, look=look)
    assert left == []


def test_no_rank_gets_a_communicator_that_another_has_no_room_for() -> None:
    """Whoever leads, and of whichever ranks it would be; where all have room each gets one."""

    def work(mpi: Calls) -> None:
        rank, full = mpi.rank, mpi.rank == 1
        for comm in (COMM_WORLD, COMM_SELF):
            mpi.Comm_set_errhandler(comm, ERRORS_RETURN)
        group, some, local, inter, request = (ctypes.c_int() for _ in range(5))
        mpi.Comm_group(COMM_WORLD, group)
        mpi.Group_incl(group.value, 2, ints(0, 1), some)
        color = rank // 2
        mpi.Comm_split(COMM_WORLD, color, 0, local)
        leader = (local.value, 0, COMM_WORLD, 2 - 2 * color, 5)
        mpi.Intercomm_create(*leader, inter)
        mpi.Comm_group(local.value, group)
        ways: list[tuple[str, tuple[Any, ...]]] = [
            ("Comm_dup", (COMM_WORLD,)),
            ("Comm_dup", (inter.value,)),
            ("Comm_split", (COMM_WORLD, -32766 if rank == 2 else rank, 0)),
            ("Comm_split", (inter.value, 0, 0)),
            ("Comm_create", (COMM_WORLD, some.value)),
            ("Comm_create", (inter.value, group.value)),
            ("Cart_create", (COMM_WORLD, 1, ints(2), ints(0), 0)),
            ("Intercomm_create", leader),
            ("Intercomm_merge", (inter.value, 0)),
            *[("Comm_create_group", (COMM_WORLD, some.value, 7))] * (rank < 2),
        ]
        kept = [ctypes.c_int()]
        while full and mpi.code_of("Comm_dup", COMM_SELF, kept[-1]) == 0:
            kept.append(ctypes.c_int())
        for expected in (ERR_NO_MEM, 0):
            mpi.Ibarrier(COMM_WORLD, None)
            for name, arguments in ways:
                made = ctypes.c_int()
                code = mpi.code_of(name, *arguments, made)
                assert code & CLASS_MASK == expected, (rank, name, mpi.text_of(code))
                assert (made.value == COMM_NULL) or not expected
                if made.value != COMM_NULL:
                    mpi.Comm_free(made)
            mpi.Comm_idup(COMM_WORLD, made, request)
            assert mpi.code_of("Wait", request, IGNORED) & CLASS_MASK == expected
            while len(kept) > 1:
                mpi.Comm_free(kept.pop(0))

    run_worlds(3, work)


@pytest.mark.parametrize(
    "make",
    [
        ("Type_contiguous", 8, "enormous"),
        ("Type_vector", INT_MAX, 1, INT_MAX, "enormous"),
        ("Type_create_hvector", INT_MAX, 1, 2**60, INT),
        ("Type_create_hindexed", 2, ints(1, 1), (ctypes.c_long * 2)(-(2**62), 2**62), INT),
        ("Type_indexed", 1, ints(1), ints(INT_MAX), "enormous"),
    ],
    ids=lambda make: make[0],
)
def test_a_datatype_whose_sizes_do_not_fit_is_refused(make: tuple[Any, ...]) -> None:
    def work(mpi: Calls) -> tuple[int, str]:
        one, enormous = ctypes.c_int(), ctypes.c_int()
        mpi.Type_contiguous(INT_MAX, INT, one)
        mpi.Type_contiguous(2**28, one.value, enormous)
        name, *arguments = (enormous.value if each == "enormous" else each for each in make)
        code = mpi.code_of(name, *arguments, ctypes.c_int())
        return code & CLASS_MASK, mpi.text_of(code)

    error_class, text = alone(work)
    assert error_class == ERR_COUNT
    assert "the datatype is too large" in text


@pytest.mark.parametrize(
    "make",
    [
        ("Type_create_hindexed", 3, ints(0, 4, 0), (ctypes.c_long * 3)(2**62, 8, -(2**62)), INT),
        ("Type_create_hvector", 0, 1, 2**62, INT),
        ("Type_create_struct", 2, ints(0, 4), (ctypes.c_long * 2)(2**63 - 1, 8), ints(BYTE, INT)),
    ],
    ids=lambda make: make[0],
)
def test_blocks_without_elements_may_lie_anywhere(make: tuple[Any, ...]) -> None:
    def work(mpi: Calls) -> tuple[int, int, int]:
        made, size = ctypes.c_int(), ctypes.c_longlong(-1)
        lower, extent = ctypes.c_long(-1), ctypes.c_long(-1)
        name, *arguments = make
        getattr(mpi, name)(*arguments, made)
        mpi.Type_size_x(made.value, ctypes.addressof(size))
        mpi.Type_get_extent(made.value, ctypes.addressof(lower), ctypes.addressof(extent))
        return size.value, lower.value, extent.value

    assert alone(work) == ((0, 0, 0) if "hvector" in make[0] else (16, 8, 16))


def test_counts_of_a_status_have_63_bits() -> None:
    def work(mpi: Calls) -> list[int]:
        status, found = (ctypes.c_int * 5)(), ctypes.c_longlong()
        counts = []
        for count in (0, 1, 2**31, 2**61, 2**62, 2**63 - 1):
            mpi.Status_set_elements_x(status, BYTE, count)
            mpi.Status_set_cancelled(status, 1)
            mpi.Get_elements_x(status, BYTE, ctypes.c_void_p(ctypes.addressof(found)))
            counts.append(found.value == count)
        too_many = [mpi.code_of("Status_set_elements_x", status, INT, count) & CLASS_MASK
                    for count in (-1, 2**61)]  # fmt: skip
        return [*counts, *too_many]

    assert alone(work) == [True] * 6 + [ERR_COUNT] * 2


def test_a_long_message_without_room_holds_up_nobody() -> None:
    """Whatever its receiver waits for; it is above 2 GiB, of memory without pages."""

    def work(mpi: Calls) -> int:
        request, length = ctypes.c_int(), INT_MAX + 10
        if mpi.rank == 0:
            data = np.zeros(length, "u1")
            mpi.Send(data_of(data), length, BYTE, 1, 1, COMM_WORLD)
            mpi.Send(None, 0, BYTE, 1, 2, COMM_WORLD)
            return 0
        room = (ctypes.c_char * 40)()
        mpi.Comm_set_errhandler(COMM_WORLD, ERRORS_RETURN)
        mpi.Irecv(room, 40, BYTE, 0, 1, COMM_WORLD, request)
        mpi.Recv(None, 0, BYTE, 0, 2, COMM_WORLD, IGNORED)
        return mpi.code_of("Wait", request, IGNORED) & CLASS_MASK

    assert run_worlds(2, work) == [0, ERR_TRUNCATE]
