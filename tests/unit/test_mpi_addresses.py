"""Addresses that are missing: every call of MPI with NULL for each of those that it needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

from support.conditions import patient
from support.tree import ROOT


def output(text: str) -> list[str]:
    """The lines of a Python program that ended well, with the names of support.mpi_stub."""
    done = subprocess.run(
        [sys.executable, "-c", f"from support.mpi_stub import *\n{textwrap.dedent(text)}"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=patient(30),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


# Addresses that may be NULL, or count at some ranks only, where the calls themselves look.
OTHERS = r"""
    (location|base|extra_state|copy_fn|delete_fn|argv|argvs|errcodes|maxprocs|infos
    |command|commands|port_name
    |attribute_val|pset_name|text|coords|remain_dims|destweights|sourceweights|destinations
    |(read|write|extent)_fn
    |(send|recv)(buf|counts|types)|[sr]?displs|buf|buffer|(in|out|inout)buf
    |(origin|result|compare)_addr)$
"""


def test_a_call_that_lacks_an_address_is_not_made() -> None:
    """Every call, with NULL for each of its addresses in turn; the handler of errors is told."""
    (found,) = output(
        """
        codes = []
        tell = lambda handle, code: codes.append(code) or 0
        stub_world({"Comm_call_errhandler": tell, "File_call_errhandler": tell})
        mpi.MPI_Init(None, None)
        room = (ctypes.c_int * 64)(*64 * [1])
        place, found, left = ctypes.addressof(room), 0, set()
        for function in FUNCTIONS:
            addresses = [name for name, declared in zip(function.arguments, function.declarations)
                         if "*" in declared or "[" in declared]
            for missing in addresses:
                given = [0 if name == missing else place if name in addresses else 1
                         for name in function.arguments]
                code = prototype(function, of_table=False)((f"MPI_{function.name}", mpi))(*given)
                if code & 0xFF == 12:
                    assert codes.pop() == code, (function.name, missing)
                    found += 1
                else:
                    left.add(missing)
        print(found > 250, codes, *sorted(left))
        """
    )
    assert found.startswith("True [] ")
    others = re.compile(OTHERS, re.VERBOSE)
    assert [name for name in found.split()[2:] if not others.match(name)] == []


def test_lists_without_elements_and_a_status_that_is_ignored() -> None:
    """The former may be NULL; the latter has nothing to be read."""
    lines = output(
        """
        from shrimpmx.mpi.functions import _LISTS

        stub_world({"Comm_call_errhandler": lambda comm, code: 0})
        mpi.MPI_Init(None, None)
        room = (ctypes.c_int * 64)()
        place = ctypes.addressof(room)
        def called(function, **others):
            given = [others.get(name, place if name in function.needed else 0)
                     for name in function.arguments]
            return prototype(function, of_table=False)((f"MPI_{function.name}", mpi))(*given) & 0xFF
        left_out = ("Finalize", "Comm_call_errhandler", "Wtime", "Wtick")
        for function in (each for each in FUNCTIONS if each.name not in left_out):
            lists = {name: 0 for name in function.arguments if name in _LISTS}
            assert called(function, **lists) == FAILURE, function.name
            if "status" in function.arguments:
                ignored = called(function, status=1)
                reads = "status" in function.name.lower() and "Request" not in function.name
                reads |= function.name in ("Get_count", "Get_elements_x", "Test_cancelled")
                assert ignored == (12 if reads else FAILURE), function.name
        """
    )
    assert lines == []
