"""MPI programs of Fortran, by mpif.h and by the modules mpi and mpi_f08: MPICH's library of Fortran
over the MPI library here, and the functions of programs that it calls.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.conditions import patient

from shrimpmx.cli import main
from shrimpmx.mpi import library

Captured = pytest.CaptureFixture[str]
pytestmark = [
    pytest.mark.skipif(not library.interpreter(), reason="this Python has no shared library"),
    pytest.mark.skipif(
        not shutil.which("mpifort.mpich"), reason="needs MPICH's compiler of Fortran"
    ),
]


def compiled(directory: Path, text: str, suffix: str = ".f90") -> str:
    """The program's path."""
    source, program = directory / f"program{suffix}", directory / "program"
    source.write_text(text)
    options = ("-fallow-argument-mismatch", "-ffixed-line-length-none", "-w")
    words = ["mpifort.mpich", *options, "-o", program, source]
    subprocess.run(words, check=True, timeout=patient(60), cwd=directory)
    return str(program)


def mpirun(*words: str, engine: str = "forked") -> int:
    return main(["mpirun", "--engine", engine, *words])


# The program in Fortran, by each way to MPI that it has.
WAYS = {
    "mpif.h": ("", "include 'mpif.h'\n integer :: status(MPI_STATUS_SIZE)", "status(MPI_TAG)"),
    "mpi": ("use mpi", "integer :: status(MPI_STATUS_SIZE)", "status(MPI_TAG)"),
    "mpi_f08": ("use mpi_f08", "type(MPI_Status) :: status", "status%MPI_TAG"),
}
RING = """
program ring
  {use}
  {declared}
  integer :: rank, ranks, heard, code
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 5, heard, 1, MPI_INTEGER, &
    mod(rank + ranks - 1, ranks), MPI_ANY_TAG, MPI_COMM_WORLD, status, code)
  call MPI_Allreduce(MPI_IN_PLACE, heard, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  print '(4(a, i0))', 'rank ', rank, ' of ', ranks, ', tag ', {tag}, ', sum ', heard
  call MPI_Finalize(code)
end program
"""


@pytest.mark.nightly("each program", but=3)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("way", WAYS)
def test_a_program_of_fortran(way: str, engine: str, tmp_path: Path, capfd: Captured) -> None:
    use, declared, tag = WAYS[way]
    program = compiled(tmp_path, RING.format(use=use, declared=declared, tag=tag))
    assert mpirun("-n", "3", "--nodes", "2", program, engine=engine) == 0
    expected = [f"rank {rank} of 3, tag 5, sum 3" for rank in range(3)]
    assert sorted(capfd.readouterr().out.splitlines()) == expected


# -- functions of programs, in Fortran 77 ------------------------------------------------

# Each tells what it got; those of attributes have values and states of INTEGER.
OLD = """
      program old
      implicit none
      include 'mpif.h'
      integer key, other, code, value, kept, rank, size, doubled, op
      integer handler, dup, sent(2), got(2), class, state, request
      integer status(MPI_STATUS_SIZE)
      integer(kind=MPI_ADDRESS_KIND) extra
      logical there, flag
      real reals(2), least(2)
      double precision doubles(2), most(2)
      external copies, deletes, doubles_sum, handles
      external queries, frees, cancels
      call MPI_INIT(code)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, code)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, code)

      state = -11
      call MPI_KEYVAL_CREATE(copies, deletes, key, state, code)
      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, other, state, code)
      call MPI_ATTR_PUT(MPI_COMM_SELF, key, -7, code)
      call MPI_ATTR_PUT(MPI_COMM_SELF, other, -123456789, code)
      call MPI_COMM_DUP(MPI_COMM_SELF, dup, code)
      call MPI_ATTR_GET(dup, key, value, there, code)
      if (rank .eq. 0) print *, 'copy', value, there
      call MPI_ATTR_GET(dup, other, value, there, code)
      if (rank .eq. 0) print *, 'dup', value, there
      call MPI_ATTR_DELETE(dup, key, code)
      call MPI_ATTR_GET(dup, key, value, there, code)
      if (rank .eq. 0) print *, 'gone', there
      call MPI_ATTR_PUT(dup, key, 99, code)
      call MPI_ERRHANDLER_SET(dup, MPI_ERRORS_RETURN, code)
      call MPI_COMM_FREE(dup, code)
      if (rank .eq. 0) print *, 'refused', code
      call MPI_KEYVAL_FREE(key, code)

      call MPI_OP_CREATE(doubles_sum, .true., op, code)
      sent(1) = rank + 1
      sent(2) = -rank
      call MPI_ALLREDUCE(sent, got, 2, MPI_INTEGER, op, MPI_COMM_WORLD, code)
      if (rank .eq. 0) print *, 'op', got
      call MPI_OP_FREE(op, code)

      call MPI_ERRHANDLER_CREATE(handles, handler, code)
      call MPI_ERRHANDLER_SET(MPI_COMM_WORLD, handler, code)
      call MPI_SEND(rank, 1, MPI_INTEGER, 77, 0, MPI_COMM_WORLD, code)
      call MPI_ERROR_CLASS(code, class, code)
      if (rank .eq. 0) print *, 'class', class .eq. MPI_ERR_RANK

      sent(1) = 10 - rank
      sent(2) = rank
      call MPI_ALLREDUCE(sent, got, 1, MPI_2INTEGER, MPI_MINLOC, MPI_COMM_WORLD, code)
      reals(1) = 1.5 + rank
      reals(2) = rank
      call MPI_ALLREDUCE(reals, least, 1, MPI_2REAL, MPI_MAXLOC, MPI_COMM_WORLD, code)
      doubles(1) = -rank
      doubles(2) = rank
      call MPI_ALLREDUCE(doubles, most, 1, MPI_2DOUBLE_PRECISION, MPI_MINLOC, MPI_COMM_WORLD, code)
      if (rank .eq. 0) print *, 'pairs', got, int(2 * least), int(most)

      extra = 4242
      call MPI_GREQUEST_START(queries, frees, cancels, extra, request, code)
      call MPI_TEST(request, flag, status, code)
      if (rank .eq. 0) print *, 'complete', flag
      call MPI_CANCEL(request, code)
      call MPI_GREQUEST_COMPLETE(request, code)
      call MPI_WAIT(request, status, code)
      if (rank .eq. 0) print *, 'status', status(MPI_TAG), request .eq. MPI_REQUEST_NULL, extra
      call MPI_FINALIZE(code)
      end

      subroutine copies(comm, key, state, from, to, flag, code)
      integer comm, key, state, from, to, code
      logical flag
      if (state .ne. -11) print *, 'state', state
      to = from - 1
      flag = .true.
      code = 0
      end

      subroutine deletes(comm, key, value, state, code)
      integer comm, key, value, state, code
      if (state .ne. -11) print *, 'state', state
      code = 0
      if (value .eq. 99) code = 3
      end

      subroutine doubles_sum(in, into, length, datatype)
      include 'mpif.h'
      integer length, datatype, in(length), into(length), i
      if (datatype .ne. MPI_INTEGER) print *, 'datatype', datatype
      do 10 i = 1, length
        into(i) = into(i) + in(i)
10    continue
      end

      subroutine handles(comm, code)
      include 'mpif.h'
      integer comm, code
      if (comm .ne. MPI_COMM_WORLD) print *, 'comm', comm
      end

      subroutine queries(extra, status, code)
      include 'mpif.h'
      integer(kind=MPI_ADDRESS_KIND) extra
      integer status(MPI_STATUS_SIZE), code, other
      call MPI_STATUS_SET_ELEMENTS(status, MPI_INTEGER, 3, other)
      call MPI_STATUS_SET_CANCELLED(status, .false., other)
      status(MPI_TAG) = extra - 4200
      code = 0
      end

      subroutine frees(extra, code)
      include 'mpif.h'
      integer(kind=MPI_ADDRESS_KIND) extra
      integer code
      extra = extra + 1
      code = 0
      end

      subroutine cancels(extra, complete, code)
      include 'mpif.h'
      integer(kind=MPI_ADDRESS_KIND) extra
      logical complete
      integer code
      if (complete .or. extra .ne. 4242) print *, 'cancel', extra
      code = 0
      end
"""


@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_functions_of_a_program_of_fortran_77(engine: str, tmp_path: Path, capfd: Captured) -> None:
    program = compiled(tmp_path, OLD, ".f")
    assert mpirun("-n", "3", "--nodes", "2", program, engine=engine) == 0
    lines = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
    assert lines == [
        "copy -8 T",
        "dup -123456789 T",
        "gone F",
        "refused 3",
        "op 6 -3",
        "class T",
        "pairs 8 2 7 4 -2 2",
        "complete F",
        "status 42 T 4243",
    ]


# The same by modules: values and states of attributes have the width of addresses, and handles are
# types of their own in mpi_f08.
NEW = """
module functions
  use {module}
  implicit none
contains
  subroutine copies(object, key, state, from, to, flag, code)
    {datatype} :: object
    integer :: key, code
    integer(kind=MPI_ADDRESS_KIND) :: state, from, to
    logical :: flag
    to = from + state
    flag = .true.
    code = MPI_SUCCESS
  end subroutine
  subroutine deletes(object, key, value, state, code)
    {datatype} :: object
    integer :: key, code
    integer(kind=MPI_ADDRESS_KIND) :: value, state
    print *, 'delete', value
    code = MPI_SUCCESS
  end subroutine
  subroutine handles(comm, code)
    {comm} :: comm
    integer :: code
    if (comm /= MPI_COMM_SELF) print *, 'not of self'
    print *, 'handler'
  end subroutine
end module

program new
  use {module}
  use functions
  implicit none
  integer :: key, code, bytes, integers, addresses, datatypes, combiner, numbers(2), own
  integer(kind=MPI_ADDRESS_KIND) :: value, state, no_addresses(1)
  {datatype} :: datatype, dup, same, none(1)
  {errhandler} :: handler
  integer(selected_int_kind(12)) :: long, longs
  real(selected_real_kind(20)) :: wide, widest
  logical :: there
  call MPI_Init(code)

  state = 2_MPI_ADDRESS_KIND ** 40
  call MPI_Type_create_keyval(copies, deletes, key, state, code)
  call MPI_Type_contiguous(2, MPI_INTEGER, datatype, code)
  call MPI_Type_set_attr(datatype, key, -1_MPI_ADDRESS_KIND, code)
  call MPI_Type_dup(datatype, dup, code)
  call MPI_Type_get_attr(dup, key, value, there, code)
  print *, 'copy', value, there
  call MPI_Type_free(dup, code)
  call MPI_Type_delete_attr(datatype, key, code)
  call MPI_Type_free_keyval(key, code)

  call MPI_Comm_create_errhandler(handles, handler, code)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler, code)
  call MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER, code)

  call MPI_Type_create_f90_integer(12, datatype, code)
  call MPI_Type_create_f90_integer(12, same, code)
  long = 2_8 ** 40
  call MPI_Allreduce(long, longs, 1, datatype, MPI_SUM, MPI_COMM_WORLD, code)
  call MPI_Type_size(datatype, bytes, code)
  print *, 'integer', longs, bytes, datatype == same
  call MPI_Type_create_f90_real(20, MPI_UNDEFINED, datatype, code)
  call MPI_Type_get_envelope(datatype, integers, addresses, datatypes, combiner, code)
  call MPI_Type_get_contents(datatype, 2, 0, 0, numbers, no_addresses, none, code)
  print *, 'real', integers, addresses, datatypes, combiner == MPI_COMBINER_F90_REAL, &
    numbers(1), numbers(2) == MPI_UNDEFINED
  wide = 1 / 3.0_16
  call MPI_Allreduce(wide, widest, 1, datatype, MPI_PROD, MPI_COMM_SELF, code)
  print *, 'quadruple', widest == wide
  call MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, datatype, code)
  call MPI_Sizeof(numbers, own, code)
  print *, 'match', datatype == MPI_COMPLEX16, own
  call MPI_Finalize(code)
end program
"""


@pytest.mark.nightly("each module", but=2)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
def test_functions_and_datatypes_by_modules(
    module: str, engine: str, tmp_path: Path, capfd: Captured
) -> None:
    handles = {name.lower(): f"type(MPI_{name})" for name in ("Datatype", "Comm", "Errhandler")}
    kinds = handles if module == "mpi_f08" else dict.fromkeys(handles, "integer")
    program = compiled(tmp_path, NEW.format(module=module, **kinds))
    assert mpirun("-n", "1", program, engine=engine) == 0
    lines = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
    assert lines == [
        f"copy {2**40 - 1} T",
        f"delete {2**40 - 1}",
        "delete -1",
        "handler",
        f"integer {2**40} 8 T",
        "real 2 0 0 T 20 T",
        "quadruple T",
        "match T 4",
    ]


# -- C++ ---------------------------------------------------------------------------------

CPP = r"""
#include <mpi.h>
#include <cstdio>

static void sum(const void *in, void *into, int length, const MPI::Datatype &datatype) {
    for (int at = 0; at < length; at++)
        ((int *)into)[at] += ((const int *)in)[at];
}

static int copied(const MPI::Comm &, int, void *, void *from, void *to, bool &flag) {
    *(char **)to = (char *)from + 1;
    flag = true;
    return MPI_SUCCESS;
}

static int deleted(MPI::Comm &, int, void *value, void *) {
    std::printf("delete %s\n", (char *)value);
    return MPI_SUCCESS;
}

static void handle(MPI::Comm &comm, int *code, ...) {
    std::printf("handler %d %d\n", *code == MPI_ERR_OTHER, comm == MPI::COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI::Init(argc, argv);
    const int rank = MPI::COMM_WORLD.Get_rank();
    int one = rank + 1, all = 0;
    MPI::Op op;
    op.Init(sum, true);
    MPI::COMM_WORLD.Allreduce(&one, &all, 1, MPI::INT, op);
    if (rank == 0) {
        std::printf("op %d\n", all);
        char text[] = "text", *found;
        const int key = MPI::Comm::Create_keyval(copied, deleted, NULL);
        MPI::COMM_SELF.Set_attr(key, text);
        MPI::Intracomm dup = MPI::COMM_SELF.Dup();
        const bool is_there = dup.Get_attr(key, &found);
        std::printf("copy %d %s\n", is_there, found);
        dup.Free();
        MPI::COMM_SELF.Delete_attr(key);
        MPI::Errhandler handler = MPI::Comm::Create_errhandler(handle);
        MPI::COMM_WORLD.Set_errhandler(handler);
        MPI::COMM_WORLD.Call_errhandler(MPI_ERR_OTHER);
        MPI::COMM_WORLD.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
        try {
            MPI::COMM_WORLD.Send(&one, 1, MPI::INT, 77, 0);
        } catch (MPI::Exception &error) {
            std::printf("thrown %d\n", error.Get_error_class() == MPI_ERR_RANK);
        }
    }
    MPI::Finalize();
}
"""


@pytest.mark.skipif(not shutil.which("mpicxx.mpich"), reason="needs MPICH's compiler of C++")
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_functions_of_a_program_of_cpp(engine: str, tmp_path: Path, capfd: Captured) -> None:
    """By the bindings of MPI 2, which MPICH's library of C++ has."""
    source, program = tmp_path / "program.cc", tmp_path / "program"
    source.write_text(CPP)
    words = ["mpicxx.mpich", "-w", "-o", program, source]
    subprocess.run(words, check=True, timeout=patient(60))
    assert mpirun("-n", "3", str(program), engine=engine) == 0
    assert capfd.readouterr().out.splitlines() == [
        "op 6",
        "copy 1 ext",
        "delete ext",
        "delete text",
        "handler 1 1",
        "thrown 1",
    ]
