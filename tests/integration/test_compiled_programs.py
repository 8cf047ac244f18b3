"""MPI programs of C, C++ and Fortran: compiled by `shrimpmx mpicc`, or by MPICH's compilers where
these are installed.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.compiled import compiled, mpirun
from support.conditions import patient

from shrimpmx.cli import main
from shrimpmx.mpi import library

Captured = pytest.CaptureFixture[str]
pytestmark = pytest.mark.skipif(
    not library.interpreter(), reason="this Python has no shared library"
)

RING = r"""
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, heard = -1;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 5, &heard, 1, MPI_INT,
                 (rank + size - 1) % size, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Allreduce(MPI_IN_PLACE, &heard, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%s: rank %d of %d, tag %d, sum %d\n", argv[1], rank, size, status.MPI_TAG, heard);
    return MPI_Finalize();
}
"""
# Around a statement of a program with two ranks.
PROGRAM = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    STATEMENT;
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""


@pytest.mark.nightly("each compiler on each engine", but=2)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize(("compiler", "suffix"), [("mpicc", ".c"), ("mpicxx", ".cc")])
def test_a_program_runs_on_both_engines(
    compiler: str, suffix: str, engine: str, tmp_path: Path, capfd: Captured
) -> None:
    program = compiled(tmp_path, RING, compiler, suffix)
    assert mpirun("-n", "3", "--nodes", "2", program, "ring", engine=engine) == 0
    expected = [f"ring: rank {rank} of 3, tag 5, sum 3" for rank in range(3)]
    assert sorted(capfd.readouterr().out.splitlines()) == expected


def test_a_scenario_runs_one(tmp_path: Path, capfd: Captured) -> None:
    program = compiled(tmp_path, RING)
    settings = ("workload=mpi", f"program={program}", "arguments=ring", "ranks=2", "repeats=1")
    assert main(["run", *settings, "--engine", "simulated", "--output", str(tmp_path / "r")]) == 0
    assert "run_time" in (tmp_path / "r/run.json").read_text()


# Requests of sends that are over at once, in every call that takes requests.
SENT = r"""
    enum { COUNT = 9 };
    MPI_Request all[COUNT];
    MPI_Status status[COUNT];
    int indices[COUNT], out[COUNT], in[COUNT], count, index, flag, done = 0;
    for (int i = 0; i < COUNT; i++)
        if (rank == 0)
            out[i] = i, MPI_Isend(&out[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &all[i]);
        else
            MPI_Recv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE), done += in[i];
    if (rank == 0) {
        MPI_Request_get_status(all[0], &flag, status), done += flag;
        MPI_Wait(&all[0], status), done += status[0].MPI_TAG == MPI_ANY_TAG;
        MPI_Test(&all[1], &flag, status), done += flag;
        MPI_Cancel(&all[2]);
        MPI_Wait(&all[2], status), MPI_Test_cancelled(status, &flag), done += !flag;
        MPI_Request_free(&all[3]);
        MPI_Waitany(COUNT, all, &index, status), done += index == 4;
        MPI_Testany(COUNT, all, &index, &flag, status), done += index == 5;
        MPI_Waitsome(2, all + 6, &count, indices, status), done += count == 2;
        MPI_Waitall(COUNT, all, status);
        for (int i = 0; i < COUNT; i++)
            done += all[i] == MPI_REQUEST_NULL;
        MPI_Waitany(COUNT, all, &index, status), done += index == MPI_UNDEFINED;
    }
    printf("%d\n", done)
"""


@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_sends_that_are_over_at_once(engine: str, tmp_path: Path, capfd: Captured) -> None:
    program = compiled(tmp_path, PROGRAM.replace("STATEMENT", SENT))
    assert mpirun("-n", "2", "--nodes", "1", program, engine=engine) == 0
    assert sorted(capfd.readouterr().out.split()) == ["17", "36"]


# What rank 1 does, the exit code, and what is said of it.
ENDS = {
    "exit": ("if (rank) exit(3)", 3, "rank1 (pid "),
    "abort": ("if (rank) MPI_Abort(MPI_COMM_WORLD, 9)", 9, "rank 1 called MPI_Abort with code 9"),
    "crash": (
        "if (rank) raise(SIGSEGV)",
        139,
        "by SIGSEGV, and the others were ended; ",
    ),
    "abort of C": ("if (rank) abort()", 134, "by SIGABRT, and the others were ended; "),
    "signal": (
        "if (rank) raise(SIGKILL)",
        137,
        "by SIGKILL, and the others were ended\n",
    ),
    "no finalize": ("if (rank) exit(0)", 1, "ended without MPI_Finalize"),
    "wrong": (
        "MPI_Send(&rank, 1, MPI_INT, 7, 0, MPI_COMM_WORLD)",
        1,
        "MPI_Send: MPI_ERR_RANK",
    ),
    "init twice": ("MPI_Init(NULL, NULL)", 1, ": MPI_Init: MPI is initialized already"),
    "no datatype": ("MPI_Type_size(MPI_DATATYPE_NULL, &rank)", 1, "MPI_Type_size: MPI_ERR_TYPE"),
    "no result": ("MPI_Type_extent(MPI_INT, NULL)", 1, "MPI_Type_extent: "),
    "no flag": ("MPI_Initialized(NULL)", 1, "MPI_Initialized: "),
    "no version": ("MPI_Get_version(&rank, NULL)", 1, "MPI_Get_version: "),
    "open session": (
        "MPI_Session it; MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &it)",
        1,
        "or with an open session",
    ),
}


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
def test_a_crash_names_the_command_that_shows_where(tmp_path: Path, capfd: Captured) -> None:
    program = compiled(tmp_path, PROGRAM.replace("STATEMENT", "if (rank) abort()"))
    assert mpirun("-n", "2", program) == 134
    found = re.search(r"; `(gdb .*)` in place of `(.*)` shows where$", capfd.readouterr().err, re.M)
    assert found is not None
    assert found[2] == program
    assert mpirun("-n", "2", *found[1].split()) != 0
    assert re.search(r"^#\d+ .* in main ", capfd.readouterr().out, re.M)


@pytest.mark.nightly("each end", but=2)
@pytest.mark.parametrize("end", ENDS)
def test_its_end_becomes_that_of_the_run(end: str, tmp_path: Path, capfd: Captured) -> None:
    statement, code, words = ENDS[end]
    program = compiled(tmp_path, PROGRAM.replace("STATEMENT", statement))
    assert mpirun("-n", "2", program) == code
    said = capfd.readouterr().err
    assert words in said
    assert "Python" not in said
    assert "Traceback" not in said


# What MPI_Init leaves as it was: a statement of a rank, and its output.
KEPT = {
    "random numbers": ('printf("%d\\n", rand())', "1804289383\n"),
    "interrupt": (
        "struct sigaction is; sigaction(SIGINT, NULL, &is);"
        'printf("%d\\n", is.sa_handler == SIG_DFL)',
        "1\n",
    ),
    "its own signals": (
        "int kept = 1; for (int number = 1; number < 65; number++) { struct sigaction is;"
        "if (number != SIGRTMIN && sigaction(number, NULL, &is) == 0)"
        "kept &= is.sa_handler == SIG_DFL; }"
        'printf("%d\\n", kept)',
        "1\n",
    ),
    "the buffer of its output": ('printf("%d\\n", stdout->_flags & 2)', "0\n"),  # unbuffered
    "the stack of its handlers": (
        'stack_t is; sigaltstack(NULL, &is);printf("%d\\n", is.ss_flags == SS_DISABLE)',
        "1\n",
    ),
}


@pytest.mark.nightly("each property", but=3)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("kept", KEPT)
def test_the_start_changes_nothing_of_the_programs(
    kept: str, engine: str, tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    statement, expected = KEPT[kept]
    text = PROGRAM.replace("STATEMENT", statement)
    program = compiled(tmp_path, f"#define _GNU_SOURCE\n{text}")
    assert mpirun("-n", "1", program, engine=engine) == 0
    assert capfd.readouterr().out == expected


def test_ctrl_c_ends_a_rank_that_waits(tmp_path: Path) -> None:
    statement = (
        'puts("waits"); fflush(stdout);'
        "MPI_Recv(&rank, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE)"
    )
    program = compiled(tmp_path, PROGRAM.replace("STATEMENT", statement))
    command = [sys.executable, "-m", "shrimpmx", "mpirun", "-n", "2", program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "waits\n"
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=patient(30))
    assert run.returncode == 130
    assert "Traceback" not in said
    assert "Exception" not in said


def test_large_sends_to_each_other_are_a_deadlock(tmp_path: Path, capfd: Captured) -> None:
    """Though each goes on asking whether its partner lives."""
    statement = (
        "static char data[1 << 20];"
        "MPI_Send(data, sizeof data, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD)"
    )
    program = compiled(tmp_path, PROGRAM.replace("STATEMENT", statement))
    assert mpirun("-n", "2", "--nodes", "2", program, engine="simulated") == 3
    said = capfd.readouterr().err
    assert "Deadlock: no rank can make progress: rank0: MPI_Send to rank 1" in said
    assert "rank1: MPI_Send to rank 0" in said


def test_a_function_that_the_library_lacks_is_told(tmp_path: Path, capfd: Captured) -> None:
    """Of a program that was built with a later MPICH: by its name, and by the loader's code."""
    later, source, program = (tmp_path / name for name in ("libmpi.so.12", "new.c", "new"))
    source.write_text(
        "int MPI_Init(void *a, void *b) { return 0; } int MPI_Later(void) { return 0; }"
    )
    made = ["cc", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.12", "-o", later, source]
    subprocess.run(made, check=True, timeout=patient(60))
    source.write_text(
        "int MPI_Init(void *, void *); int MPI_Later(void);"
        "int main(void) { MPI_Init(0, 0); return MPI_Later(); }"
    )
    made = ["cc", "-Wl,-z,lazy", "-o", program, source, later]
    subprocess.run(made, check=True, timeout=patient(60))
    assert mpirun("-n", "1", str(program)) == 127
    said = capfd.readouterr().err
    assert "MPI_Later" in said
    assert "a function missing from shrimpmx's MPI library" in said


def test_results_of_int_and_names_of_mpi_1(tmp_path: Path, capfd: Captured) -> None:
    """Of functions that the table has with another type, or by another name."""
    statement = r"""
        int size, elements, flag, *highest, key, block = 1;
        double data[4] = {1, 2, 3, 4};
        MPI_Datatype pair, old = MPI_DOUBLE, built;
        MPI_Aint extent, lb, ub, here, there, offset = 8;
        MPI_Status status;
        MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
        MPI_Type_commit(&pair);
        MPI_Type_size(pair, &size);
        MPI_Sendrecv(data, 3, MPI_DOUBLE, rank, 0, data, 2, pair, rank, 0, MPI_COMM_WORLD, &status);
        MPI_Get_elements(&status, pair, &elements);
        printf("%d %d", size, elements);
        MPI_Status_set_elements(&status, pair, 2);
        MPI_Get_elements(&status, pair, &elements);
        MPI_Type_struct(1, &block, &offset, &old, &built);
        MPI_Type_extent(built, &extent);
        MPI_Type_lb(built, &lb);
        MPI_Type_ub(built, &ub);
        printf(" %d %ld %ld %ld", elements, (long)extent, (long)lb, (long)ub);
        MPI_Address(data, &here);
        MPI_Address(data + 1, &there);
        MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &flag);
        printf(" %ld %d %d", (long)(there - here), flag, *highest > 32767);
        MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL);
        MPI_Attr_put(MPI_COMM_WORLD, key, &size);
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Attr_get(copy, key, &highest, &flag);
        printf(" %d %d\n", flag, *highest)
        """
    program = compiled(tmp_path, PROGRAM.replace("STATEMENT", statement))
    assert mpirun("-n", "1", program) == 0
    assert capfd.readouterr().out == "16 3 2 8 8 16 8 1 1 1 16\n"


def test_without_an_interpreter_a_sentence_says_what_to_do(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled(tmp_path, RING)
    monkeypatch.setattr("shrimpmx.cluster.engine.program.interpreter", dict)
    assert mpirun("-n", "2", program, "ring") == 2
    assert (
        "MPI_Init found no Python in this process: start the program by" in capfd.readouterr().err
    )


def test_the_compilers_words_and_exit_code_are_its_own(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return undeclared; }\n")
    assert main(["mpicc", "-c", str(source), "-o", str(tmp_path / "broken.o")]) == 1
    assert "undeclared" in capfd.readouterr().err
    assert main(["mpicc", "-show", "-c", "x.c"]) == 0
    assert "-l:libmpi.so.12" not in capfd.readouterr().out
    assert main(["mpicxx", "-show", "x.cc", "-lm"]) == 0
    shown = capfd.readouterr().out.split()
    assert shown[-1] == "-l:libmpi.so.12"
    assert "-lm" in shown
    assert main(["mpicc", "--help"]) == 0
    assert "MPICH" in capfd.readouterr().out
    monkeypatch.setenv("CC", "shrimpmx mpicc")  # as `make CC=...` does
    assert main(["mpicc", "-show", "-c", "x.c"]) == 0
    assert "shrimpmx" not in capfd.readouterr().out.split()
    monkeypatch.setenv("SHRIMPMX_CC", "no-such-compiler -O2")
    assert main(["mpicc", "x.c"]) == 2
    assert capfd.readouterr().err == (
        "shrimpmx: SHRIMPMX_CC names no-such-compiler, which cannot be found\n"
    )


@pytest.mark.skipif(not shutil.which("mpicc.mpich"), reason="needs MPICH's compiler")
def test_a_program_that_mpich_has_compiled(tmp_path: Path, capfd: Captured) -> None:
    """Its library is libmpich.so.12."""
    source, program = tmp_path / "ring.c", tmp_path / "ring"
    source.write_text(RING)
    subprocess.run(["mpicc.mpich", "-o", program, source], check=True, timeout=patient(60))
    assert mpirun("-n", "2", str(program), "ring") == 0
    assert capfd.readouterr().out.count("sum 1") == 2


def test_the_interpreter_is_that_of_the_command(tmp_path: Path, capfd: Captured) -> None:
    """Its environment has what a rank needs, whatever the program's directory has."""
    (tmp_path / "numpy.py").write_text("raise SystemExit('not this one')\n")
    program = compiled(tmp_path, RING)
    assert mpirun("--wdir", str(tmp_path), "-n", "2", program, "ring") == 0
    assert "not this one" not in capfd.readouterr().err


@pytest.mark.parametrize("where", ["stdout", "stderr"])
def test_what_is_said_of_an_end_begins_a_line(where: str, tmp_path: Path, capfd: Captured) -> None:
    """Whatever the program has left unfinished, in its own buffer or on its way."""
    statement = f"""
        fprintf({where}, "the first half");
        if (argc > 1) fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 3)"""
    program = compiled(tmp_path, PROGRAM.replace("STATEMENT", statement))
    for words in ((), ("flushed",)):
        assert mpirun("-n", "2", program, *words) == 3
        told = capfd.readouterr()
        assert "\nshrimpmx: rank1 (pid " in told.err
        if where == "stdout":
            assert "\nrank 1 called MPI_Abort" in told.err
            assert "the first half\n" in told.out or words


def test_of_a_long_broadcast_only_receivers_tell(tmp_path: Path, capfd: Captured) -> None:
    statement = """
        static int data[100000];
        int class;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Error_class(MPI_Bcast(data, rank ? 10 : 100000, MPI_INT, 0, MPI_COMM_WORLD), &class);
        printf("%d %d\\n", rank, class == (rank ? MPI_ERR_TRUNCATE : MPI_SUCCESS))"""
    program = compiled(tmp_path, PROGRAM.replace("STATEMENT", statement))
    assert mpirun("-n", "2", "--nodes", "2", program) == 0
    assert sorted(capfd.readouterr().out.splitlines()) == ["0 1", "1 1"]


@pytest.mark.parametrize(
    ("suffix", "compiler"), [(".c", "mpicc"), (".cc", "mpicxx"), (".f90", "mpifort.mpich")]
)
def test_a_source_is_no_program(
    suffix: str, compiler: str, tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"ring{suffix}").write_text(RING)
    for name in (f"ring{suffix}", f"./ring{suffix}"):
        assert mpirun("-n", "2", name) == 2
        assert capfd.readouterr().err.endswith(
            f"{name!r} is the source of a program: compile it by `"
            f"{'shrimpmx ' * (suffix != '.f90')}{compiler} -o ring {name}`, and start ./ring\n"
        )


def test_an_executable_is_no_python_file(tmp_path: Path, capfd: Captured) -> None:
    program = compiled(tmp_path, RING)
    assert main(["run", f"program={program}"]) == 2
    assert "is an executable, not a Python file: set workload=mpi" in capfd.readouterr().err
