"""libmpi_abi.so.1: its names, its numbers beside those of MPICH's ABI, and what needs no run."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.conditions import patient
from support.tree import ROOT

from shrimpmx.cli import main
from shrimpmx.mpi import constants, generate_standard, library, standard
from shrimpmx.mpi.functions import STANDARD
from shrimpmx.mpi.generate import numbers

# What mpi4py declares that is not of MPI 5.0: ULFM's, Fortran's, and MPI 1's.
OTHERS = re.compile(
    r"Comm_i?(agree|shrink)$|Comm_\w*(failed|revoked?)$|\w+_(c2f|f2c)$|Status_\w*f0?8"
    r"|Address$|Errhandler_(create|get|set)$|Type_(extent|hindexed|hvector|lb|struct|ub)$"
)
EXPORTED = {
    *(each.name for each in (*generate_standard.EXPORTED, *STANDARD)),
    *generate_standard.ALIASES,
    *generate_standard.INTEGERS,
    *("Aint_add", "Aint_diff"),
}


def path() -> Path:
    return library.library_path(library.STANDARD_LIBRARY)


def test_the_library_exports_each_function_of_mpi_5_by_two_names_and_nothing_else() -> None:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", path()], capture_output=True, text=True, check=True
    )
    found = {line.split()[-1] for line in done.stdout.splitlines()}
    assert {name for name in found if "MPI" in name} == {
        f"{first}MPI_{name}" for name in EXPORTED for first in ("", "P")
    }
    spec = importlib.util.find_spec("mpi4py")
    if spec is None or spec.origin is None:
        pytest.skip("mpi4py is not installed")
    text = (Path(spec.origin).parent / "libmpi.pxd").read_text()
    theirs = set(re.findall(r"^ *\w+ MPI_(\w+) *\(", text, re.M))
    assert len(theirs) > 500
    assert {name for name in theirs if not OTHERS.match(name)} <= EXPORTED


def test_the_library_needs_nothing_but_the_c_library() -> None:
    done = subprocess.run(["readelf", "-d", path()], capture_output=True, text=True, check=True)
    needed = [line.split("[")[1] for line in done.stdout.splitlines() if "(NEEDED)" in line]
    assert {name.split(".")[0] for name in needed} <= {"libc", "libdl", "libpthread"}
    assert "[libmpi_abi.so.1]" in done.stdout
    assert path().with_name("libmpi_abi.so.0").resolve() == path()


def test_each_predefined_handle_has_one_number_of_its_own() -> None:
    aliases = {"LONG_LONG_INT", "C_COMPLEX"}
    found = [
        (name, value)
        for handles in standard.HANDLES.values()
        for name, value in handles.items()
        if name not in aliases
    ]
    assert len({value for _, value in found}) == len(found)
    assert all(0 < value <= standard.LAST_HANDLE for _, value in found)
    for kind, handles in standard.HANDLES.items():
        if kind != "File":
            beyond = constants.HANDLES[kind].keys() - handles.keys()
            assert beyond <= {"FLOAT16", "LB", "UB"}
            assert handles.keys() <= constants.HANDLES[kind].keys()


def test_numbers_of_the_two_abis_are_converted_without_loss() -> None:
    """Also those that mean something on one side alone, which mean nothing on the other."""
    known = numbers() | constants.NUMBERS
    for of in (*standard.MEANINGS.values(), standard.MODES):
        mpich = {name: known[name] for name in of}
        there = generate_standard.paired(of, mpich)
        back = generate_standard.paired(mpich, of)
        assert {there[value] for value in of.values()} == {*mpich.values()}
        assert {other: value for value, other in there.items()} == back
    left = known.keys() - standard.NUMBERS.keys()
    assert all(name.startswith("COMBINER_") for name in left), left


def test_versions_and_integers_of_handles_need_no_run() -> None:
    mpi = ctypes.CDLL(str(path()))
    major, minor = ctypes.c_int(), ctypes.c_int()
    for name, expected in (("Abi_get_version", (1, 0)), ("Get_version", (5, 0))):
        assert mpi[f"MPI_{name}"](ctypes.byref(major), ctypes.byref(minor)) == 0
        assert (major.value, minor.value) == expected
    assert mpi.MPI_Abi_get_version(None, None) == standard.NUMBERS["ERR_ARG"]
    mpi.MPI_Type_fromint.restype = ctypes.c_void_p
    assert mpi.MPI_Type_fromint(0x209) == 0x209
    assert mpi.MPI_Type_toint(ctypes.c_void_p(0x209)) == 0x209
    true, false, is_set = ctypes.c_int(9), ctypes.c_int(9), ctypes.c_int()
    booleans = [ctypes.byref(each) for each in (true, false)]
    assert mpi.MPI_Abi_get_fortran_booleans(4, *booleans, ctypes.byref(is_set)) == 0
    assert (true.value, false.value, is_set.value) == (1, 0, 1)
    assert mpi.MPI_Abi_set_fortran_booleans(4, *booleans) == standard.NUMBERS["ERR_ABI"]
    assert mpi.MPI_Abi_set_fortran_booleans(3, *booleans) == standard.NUMBERS["ERR_ARG"]
    assert mpi.MPI_Abi_set_fortran_info(None) == standard.NUMBERS["ERR_ABI"]


def test_any_other_call_before_init_ends_the_process_with_a_sentence() -> None:
    for name in ("Comm_size", "Alltoallw", "Win_get_attr", "Op_create"):
        text = f"import ctypes; ctypes.CDLL({str(path())!r}).MPI_{name}(*[None] * 9)"
        done = subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=patient(30),
        )
        assert (done.returncode, done.stderr) == (1, f"MPI_{name} was called before MPI_Init\n")


def test_the_compiler_commands_have_both_abis(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["mpicc", "-abi", "-show", "x.c"]) == 0
    shown = capfd.readouterr().out.split()
    assert shown[-1] == "-l:libmpi_abi.so.1"
    assert f"-I{library.include_path(library.STANDARD_LIBRARY)}" in shown
    assert "-abi" not in shown
    source = tmp_path / "x.cc"
    source.write_text("#include <mpi.h>\nstatic_assert(sizeof(MPI_Status) == 32);\n")
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    assert main(["mpicxx", "-abi", *strict, str(source)]) == 0
