"""libmpi.so.12: its names, what works without a run, and the way into and out of a run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.conditions import patient
from support.tree import ROOT

from shrimpmx.errors import InputError
from shrimpmx.mpi import library
from shrimpmx.mpi.constants import HANDLES, NUMBERS
from shrimpmx.mpi.functions import EXPORTED, FUNCTIONS, TABLE
from shrimpmx.mpi.generate import numbers

# Functions that mpi4py declares and that MPI 4.1 does not have: those of MPI 5 and of ULFM.
LATER = re.compile(r"Abi_|\w+_(from|to)int$|Comm_i?(agree|shrink)$|Comm_\w*(failed|revoked?)$")
# What programs name beside functions; those of Fortran are written by its libraries.
DATA = {
    *("MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPIR_C_MPI_UNWEIGHTED", "MPIR_C_MPI_WEIGHTS_EMPTY"),
    *("MPIR_F08_MPI_IN_PLACE", "MPIR_F08_MPI_BOTTOM", "MPI_T_PVAR_ALL_HANDLES"),
    *(
        f"{first}_{each}_IGNORE"
        for first in ("MPI_F", "MPI_F08")
        for each in ("STATUS", "STATUSES")
    ),
    *(f"MPIR_F08_MPI_{each}_IGNORE_OBJ" for each in ("STATUS", "STATUSES")),
}
ERR_OTHER = 15


def symbols(*options: str | Path) -> set[str]:
    """The dynamic symbols of a library that begin with MPI_ or PMPI_."""
    done = subprocess.run(["nm", "-D", *options], capture_output=True, text=True, check=True)
    words = [line.split()[-2:] for line in done.stdout.splitlines()]
    return {name for kind, name in words if kind != "w" and "MPI_" in name}


def program(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python program that ran with the names of support.mpi_stub."""
    return subprocess.run(
        [sys.executable, "-c", f"from support.mpi_stub import *\n{textwrap.dedent(text)}"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=patient(30),
    )


def output(text: str) -> list[str]:
    """The lines that a program printed which ended well."""
    done = program(text)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


# -- names ------------------------------------------------------------------------


def test_the_library_exports_each_function_by_two_names_and_nothing_else() -> None:
    found = symbols("--defined-only", library.library_path())
    functions = {f"{prefix}MPI_{name}" for name in EXPORTED for prefix in ("", "P")}
    assert found == functions | DATA
    assert not any("MPI_Abi_" in name for name in found), "mpi4py would look for another ABI"


@pytest.fixture
def mpi4py() -> Path:
    """Where the package is; only found, not loaded."""
    spec = importlib.util.find_spec("mpi4py")
    if spec is None or spec.origin is None:
        pytest.skip("mpi4py is not installed")
    return Path(spec.origin).parent


def test_the_list_has_every_function_of_mpi_once(mpi4py: Path) -> None:
    assert len(set(EXPORTED)) == len(EXPORTED)
    theirs = re.findall(r"^ *\w+ MPI_(\w+) *\(", (mpi4py / "libmpi.pxd").read_text(), re.M)
    assert len(theirs) > 500
    assert {name for name in theirs if not LATER.match(name)} <= set(EXPORTED)


def test_the_library_has_all_that_debians_has() -> None:
    """Of MPI 4.0, tools included."""
    library_of_debian = Path("/usr/lib/x86_64-linux-gnu/libmpich.so.12")
    if not library_of_debian.exists():
        pytest.skip("MPICH is not installed")
    theirs = {
        name
        for name in symbols("--defined-only", library_of_debian)
        if re.match("P?MPI_[A-Z]", name)
    }
    assert len(theirs) > 1000
    assert theirs <= symbols("--defined-only", library.library_path())


def test_mpi4py_finds_all_that_it_needs(mpi4py: Path) -> None:
    modules = list(mpi4py.glob("MPI.mpich*.so"))
    assert modules, "not the wheel of PyPI, which has a module for each ABI"
    for module in modules:
        needed = symbols("--undefined-only", module)
        assert len(needed) > 300
        assert needed <= symbols("--defined-only", library.library_path())


def plain(declaration: str) -> str:
    """The type of an argument without const, arrays as pointers and no name; rows stay arrays."""
    rows = declaration.replace("const", "").replace("[3]", "#").replace("[]", "*")
    kind, stars = re.match(r"\s*(\w+)(.*)", rows).groups()  # type: ignore[union-attr]
    return str(kind) + "".join(sorted(re.findall(r"[*#]", stars)))


def test_the_arguments_are_those_that_mpi4py_declares(mpi4py: Path) -> None:
    text = (mpi4py / "libmpi.pxd").read_text()
    theirs = dict(re.findall(r"^    (?:int|double) MPI_(\w+) *\(([^)]*)\)", text, re.M))
    twins = {f"{each.name}_c": each.large for each in FUNCTIONS if each.large}
    assert len(twins) >= 150
    for name, declarations in (
        {each.name: each.declarations for each in FUNCTIONS} | twins
    ).items():
        arguments = [one for one in theirs[name].split(",") if one.strip(" .")]
        assert list(map(plain, declarations)) == list(map(plain, arguments)), name


def test_handles_and_numbers_are_those_that_mpi4py_was_compiled_with(mpi4py: Path) -> None:
    ours = {**numbers(), **NUMBERS}
    for handles in HANDLES.values():
        ours |= handles
    done = subprocess.run(
        [sys.executable, "-c", THEIRS, *ours],
        env={**os.environ, "MPI4PY_LIBMPI": str(library.library_path())},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(done.stdout)
    assert len(theirs) > 180
    # The version is ours, and MPICH's ports, which are refused, have longer names since. Types that
    # a later MPICH has are null there, and MPI_ERR_ABI is unknown.
    none = HANDLES["Datatype"]["DATATYPE_NULL"]
    theirs = {
        name: value
        for name, value in theirs.items()
        if name not in ("VERSION", "MAX_PORT_NAME", "ERR_ABI")
        and (value != none or name == "DATATYPE_NULL")
    }
    assert {name: ours[name] & 0xFFFFFFFF for name in theirs} == theirs


# The values of those names that mpi4py has.
THEIRS = """
import json, sys
from mpi4py import MPI

values = {name: getattr(MPI, name) for name in sys.argv[1:] if hasattr(MPI, name)}
print(json.dumps({
    name: (value if isinstance(value, int) else MPI._handleof(value)) & 0xFFFFFFFF
    for name, value in values.items()
}))
"""


def test_the_library_needs_nothing_but_the_c_library() -> None:
    done = subprocess.run(
        ["readelf", "-d", library.library_path()], capture_output=True, text=True, check=True
    )
    needed = [line.split("[")[1] for line in done.stdout.splitlines() if "(NEEDED)" in line]
    assert {name.split(".")[0] for name in needed} <= {"libc", "libdl", "libpthread"}
    assert "[libmpi.so.12]" in done.stdout


def test_a_library_that_was_not_built_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    with pytest.raises(InputError, match=r"libmpi\.so\.12 is missing: build it with"):
        library.library_path()


# -- outside a run ----------------------------------------------------------------


def test_queries_work_before_init() -> None:
    assert output(
        """
        major, minor, length = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        text = ctypes.create_string_buffer(8192)
        mpi.MPI_Get_version(ctypes.byref(major), ctypes.byref(minor))
        mpi.MPI_Get_library_version(text, ctypes.byref(length))
        print(flag("Initialized"), flag("Finalized"), major.value, minor.value)
        print(text.value.decode().split()[0], len(text.value) == length.value)
        mpi.MPI_Wtime.restype = mpi.MPI_Wtick.restype = ctypes.c_double
        print(0 < mpi.MPI_Wtick() < 1e-6, mpi.MPI_Wtime() < mpi.MPI_Wtime())
        print(mpi.MPI_Pcontrol(1))
        """
    ) == ["0 0 4 1", "shrimpmx True", "True True", "0"]


def test_arithmetic_and_fortran_handles_need_no_run() -> None:
    assert output(
        """
        mpi.MPI_Aint_add.restype = mpi.MPI_Aint_diff.restype = ctypes.c_ssize_t
        near, far = ctypes.c_ssize_t(3), ctypes.c_ssize_t(1 << 40)
        print(mpi.MPI_Aint_add(far, far) == 1 << 41, mpi.MPI_Aint_diff(near, far) < 0)
        print({mpi[f"MPI_{name}_{way}"](0x44000001) == 0x44000001
               for name in "Comm Errhandler File Group Info Message Op Request Type Win".split()
               for way in ("c2f", "f2c")}, mpi.MPI_File_c2f(None), mpi.MPI_File_f2c(0))
        status, fortran = (ctypes.c_int * 5)(1, 2, 3, 4, 5), (ctypes.c_int * 5)()
        print(mpi.MPI_Status_c2f(status, fortran), fortran[:])
        print(mpi.MPI_Status_f2c(fortran, ctypes.c_void_p(1)), mpi.MPI_Status_c2f(None, fortran))
        unweighted, empty = (ctypes.c_size_t.in_dll(mpi, f"MPI_{name}").value
                             for name in ("UNWEIGHTED", "WEIGHTS_EMPTY"))
        print(unweighted, empty)
        """
    ) == ["True True", "{True} 0 0", "0 [1, 2, 3, 4, 5]", "12 12", "1 2"]


def test_any_other_call_before_init_ends_the_process_with_a_sentence() -> None:
    for call in ("MPI_Comm_size(0x44000000, None)", "MPI_Finalize()", "PMPI_Barrier(0x44000000)"):
        done = program(f"mpi.{call}")
        name = call.split("(")[0].removeprefix("P")
        assert (done.returncode, done.stderr) == (1, f"{name} was called before MPI_Init\n")


# -- a run ------------------------------------------------------------------------


def test_init_takes_the_table_of_the_world() -> None:
    for library_name, asked in (("mpi", "_thread(None, None, 2, level)"), ("mpi_with_gil", "")):
        assert output(
            f"""
            level = ctypes.pointer(ctypes.c_int(-1))
            stub_world({{"Finalize": lambda: print("finalized") or 0}}, 1, print)
            print({library_name}.MPI_Init{asked or "(None, None)"}, level[0])
            print(flag("Initialized"), flag("Finalized"), mpi.MPI_Init(None, None) & 0xFF)
            print({library_name}.MPI_Finalize())
            print(flag("Initialized"), flag("Finalized"))
            """
        ) == [
            "2" if asked else "0",
            "0 1" if asked else "0 -1",
            f"1 0 {ERR_OTHER}",
            "finalized",
            "0",
            "1 1",
        ]


def test_each_function_gives_its_arguments_to_its_own_field() -> None:
    assert output(
        """
        seen = []
        def recorder(name):
            return lambda *arguments: seen.append((name, arguments)) or FIELDS[name]
        stub_world({name: recorder(name) for name in FIELDS})
        mpi.MPI_Init(None, None)
        room = (ctypes.c_size_t * 64)()
        for function in sorted((*FUNCTIONS, *TWINS), key=lambda each: each.name == "Finalize"):
            # What is needed points somewhere.
            given = tuple(
                ctypes.addressof(room) + 8 * number if name in function.needed else number
                for number, name in enumerate(function.arguments, 1)
            )
            call = prototype(function, of_table=False)((f"MPI_{function.name}", mpi))
            # One that waits is the one that starts, without a request.
            field = function.entry
            assert call(*given) == FIELDS[field], function.name
            name, arguments = seen.pop()
            assert (name, len(arguments)) == (field, len(given) + bool(function.waits_for))
            assert not function.waits_for or arguments[-1] == 0
            for number, got, declared, wanted in zip(
                given, arguments, function.declarations, function.table
            ):
                if wanted.startswith("Counts"):
                    large = not declared.startswith("const int ")
                    assert (got.numbers, got.are_large) == (number, large), function.name
                elif not (declared.startswith("int *") and wanted.startswith("MPI_")):
                    assert got == number, function.name
        print(len(FIELDS), flag("Finalized"))
        """
    ) == [f"{len(TABLE)} 1"]


def test_a_handle_that_could_not_be_made_is_null() -> None:
    assert output(
        """
        stub_world({})
        mpi.MPI_Init(None, None)
        for function in FUNCTIONS:
            for made, null in function.made.items():
                handles = {name: ctypes.c_int(77) for name in function.needed}
                given = [ctypes.addressof(handles[name]) if name in handles else 0
                         for name in function.arguments]
                call = prototype(function, of_table=False)((f"MPI_{function.name}", mpi))
                assert call(*given) == FAILURE
                assert handles[made].value == null, function.name
        print(sorted({made for function in FUNCTIONS for made in function.made}))
        """
    ) == [
        "['comm_cart', 'comm_dist_graph', 'comm_graph', 'intercomm', 'newcomm', 'newgroup', "
        "'newinfo', 'newintercomm', 'newintracomm', 'newtype', 'request']"
    ]


def test_the_table_of_a_world_has_every_function() -> None:
    assert output(
        """
        from shrimpmx.mpi import world
        table = (ctypes.c_size_t * len(TABLE)).from_address(address_of(world.start(0)))
        print([function.name for function, address in zip(TABLE, table) if not address])
        """
    ) == ["[]"]


def test_no_call_but_queries_works_after_finalize() -> None:
    start = 'stub_world({"Finalize": lambda: 0}); mpi.MPI_Init(None, None); mpi.MPI_Finalize()'
    for call in ("MPI_Finalize()", "MPI_Barrier(0x44000000)", "MPI_Init(None, None)"):
        done = program(f"{start}; mpi.{call}")
        assert (done.returncode, done.stderr) == (
            1,
            f"{call.split('(')[0]} was called after MPI_Finalize\n",
        )


def test_mpi_is_as_before_while_finalize_runs() -> None:
    """The deleters of attributes are called in it, and these call MPI."""
    assert output(
        """
        inside = []
        finalize = lambda: inside.append((mpi.MPI_Barrier(0), flag("Finalized"))) or 7
        stub_world({"Finalize": finalize, "Ibarrier": lambda comm, request: 5})
        mpi.MPI_Init(None, None)
        print(mpi.MPI_Finalize(), inside)
        """
    ) == ["7 [(5, 0)]"]


def test_a_forked_child_finds_mpi_finalized() -> None:
    done = program(
        """
        import os
        stub_world({"Finalize": lambda: 0, "Ibarrier": lambda comm, request: 5})
        mpi.MPI_Init(None, None)
        child = os.fork()
        if child == 0:
            print(flag("Initialized"), flag("Finalized"), flush=True)
            mpi.MPI_Barrier(0)
        status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status), mpi.MPI_Barrier(0), flag("Finalized"))
        """
    )
    assert done.stdout.splitlines() == ["1 1", "1 5 0"]
    assert done.stderr == (
        "MPI_Barrier was called in a process forked from a rank, where MPI is finalized\n"
    )
    assert done.returncode == 0


def test_a_process_forked_before_init_is_like_any_other() -> None:
    assert output(
        """
        import os
        stub_world({"Finalize": lambda: 0})
        if child := os.fork():
            assert os.waitpid(child, 0)[1] == 0
        mpi.MPI_Init(None, None)
        print(flag("Initialized"), flag("Finalized"), mpi.MPI_Finalize(), flush=True)
        os._exit(0)
        """
    ) == ["1 0 0", "1 0 0"]


# -- a run that does not begin ------------------------------------------------------


def test_an_error_of_the_users_is_one_sentence() -> None:
    done = program(
        """
        from shrimpmx.errors import SegmentError
        def fail(required): raise SegmentError("the run has ended")
        stub_world({}, before=fail)
        mpi.MPI_Init(None, None)
        """
    )
    assert (done.returncode, done.stderr) == (2, "shrimpmx: the run has ended\n")


def test_an_exit_keeps_its_code_and_runs_what_python_does_at_exit() -> None:
    done = program(
        """
        import atexit
        atexit.register(print, "at exit")
        stub_world({}, before=lambda required: sys.exit(7))
        mpi_with_gil.MPI_Init(None, None)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "at exit\n", "")


@pytest.mark.parametrize(
    "interrupt",
    [
        "stub_world({}, before=lambda _: signal.raise_signal(signal.SIGINT))",
        """
        class Finder:
            def find_spec(name, *_):
                if name == "shrimpmx.mpi.starting":
                    signal.raise_signal(signal.SIGINT)
        sys.meta_path.insert(0, Finder)
        """,
    ],
    ids=["world", "start"],
)
def test_an_interrupt_before_the_world_has_started_ends_the_process_without_a_word(
    interrupt: str,
) -> None:
    done = program(f"import signal\n{textwrap.dedent(interrupt)}\nmpi.MPI_Init(None, None)")
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "")


def test_a_fault_of_ours_shows_its_traceback() -> None:
    done = program("stub_world({}, before=lambda required: 1 / 0)\nmpi.MPI_Init(None, None)")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    done = program('stub_world({}, provided="many")\nmpi.MPI_Init(None, None)')
    assert (done.returncode, done.stderr.splitlines()[-1][:9]) == (2, "TypeError")


def test_a_python_without_shrimpmx_is_told_where_it_is_needed() -> None:
    done = program('sys.modules["shrimpmx.mpi.starting"] = None; mpi.MPI_Init(None, None)')
    assert done.returncode == 2
    assert done.stderr.endswith("MPI_Init needs shrimpmx in the Python that runs the program\n")


def test_a_program_without_an_interpreter_is_refused(tmp_path: Path) -> None:
    source, binary = tmp_path / "program.c", tmp_path / "program"
    source.write_text("int MPI_Init(int *, char ***); int main(void) { return MPI_Init(0, 0); }")
    path = library.library_path()
    limit_s = patient(30)
    compile_it = ["gcc", source, "-o", binary, path, f"-Wl,-rpath,{path.parent}"]
    subprocess.run(compile_it, check=True, timeout=limit_s)
    done = subprocess.run([binary], capture_output=True, text=True, check=False, timeout=limit_s)
    assert (done.returncode, done.stderr) == (
        2,
        "MPI_Init found no Python in this process: start the program by `shrimpmx mpirun`, with "
        "a Python that has a shared library (Debian: package libpython3.x)\n",
    )
