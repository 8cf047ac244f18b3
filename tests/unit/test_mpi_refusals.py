"""Calls that are not implemented: they raise an error, by the handler of their communicator."""

from __future__ import annotations

import ctypes
import re

import pytest
from support.mpi_worlds import COMM_WORLD, Calls, run_worlds

from shrimpmx.mpi import error
from shrimpmx.mpi.functions import BY_NAME

ERRORS_RETURN, COMM_SELF = 0x54000001, 0x44000001
Handler = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def refused(mpi: Calls, name: str, comm: int) -> None:
    """The call with zeros for all else; AssertionError, since it is refused."""
    declared = BY_NAME[name].declarations
    arguments = [comm if re.match(r"MPI_Comm \w", each) else 0 for each in declared]
    with pytest.raises(AssertionError, match=f"MPI_{name} returned"):
        getattr(mpi, name)(*arguments)


def test_a_refusal_goes_to_the_handler_of_its_communicator_or_to_that_of_the_world() -> None:
    seen: list[tuple[int, str]] = []

    @Handler
    def note(comm: ctypes.Array, code: ctypes.Array) -> None:
        seen.append((comm[0] & 0xFFFFFFFF, error.name_of(code[0])))

    def work(mpi: Calls) -> int:
        handler, dup = ctypes.c_int(), ctypes.c_int()
        mpi.Comm_create_errhandler(ctypes.cast(note, ctypes.c_void_p), handler)
        for comm in (COMM_WORLD, COMM_SELF):
            mpi.Comm_set_errhandler(comm, handler.value)
        mpi.Comm_dup(COMM_WORLD, dup)
        refused(mpi, "Psend_init", dup.value)
        refused(mpi, "Precv_init", COMM_SELF)
        refused(mpi, "Session_init", 0)
        mpi.Comm_set_errhandler(dup.value, ERRORS_RETURN)
        refused(mpi, "Psend_init", dup.value)
        handle = dup.value & 0xFFFFFFFF
        mpi.Comm_free(dup)
        return handle

    dup = run_worlds(1, work)[0]
    assert seen == [
        (dup, "MPI_Psend_init"),
        (COMM_SELF, "MPI_Precv_init"),
        (COMM_WORLD, "MPI_Session_init"),
    ]
