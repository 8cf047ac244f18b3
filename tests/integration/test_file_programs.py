"""Files in programs of C, Python and Fortran: on one node, on several, on simulated ones."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import support
from support.compiled import compiled, mpirun
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.mpi import library

Captured = pytest.CaptureFixture[str]
needs_shared_library = pytest.mark.skipif(
    not library.interpreter(), reason="this Python has no shared library"
)
PLACES = {
    "one node": ("forked", ["-n", "3", "--nodes", "1"]),
    "two nodes": ("forked", ["-n", "4", "--nodes", "2"]),
    "simulated nodes": ("simulated", ["-n", "4", "--nodes", "2"]),
}

PROGRAM = Path(support.__file__).with_name("file_calls.c").read_text()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(tmp_path_factory.mktemp("files"), PROGRAM)


@needs_shared_library
@pytest.mark.parametrize("place", PLACES)
def test_a_program_of_c(place: str, program: str, tmp_path: Path, capfd: Captured) -> None:
    engine, words = PLACES[place]
    code = mpirun(*words, program, str(tmp_path / "data"), engine=engine)
    assert (code, capfd.readouterr().out) == (0, "")


def test_a_program_of_mpi4py_writes_and_reads(tmp_path: Path, capfd: Captured) -> None:
    pytest.importorskip("mpi4py")
    text = f"""
    file = MPI.File.Open(world, "{tmp_path}/data", MPI.MODE_CREATE | MPI.MODE_RDWR)
    mine = np.full(5, rank, "i4")
    rows = MPI.INT.Create_vector(5, 1, size).Commit()
    file.Set_view(4 * rank, MPI.INT, rows)
    file.Write_all(mine)
    found = np.empty(5 * size, "i4")
    file.Set_view(0, MPI.INT)
    file.Iread_at_all(0, found).Wait()
    assert (found == np.tile(np.arange(size), 5)).all()
    assert file.Get_info().Get("cb_nodes") == str(size) and file.group.size == size
    try:
        MPI.File.Open(world, "{tmp_path}/none")
    except MPI.Exception as error:
        assert "none: No such file or directory" in str(error)
    seen = []
    file.Set_errhandler(MPI.File.Create_errhandler(lambda of, code: seen.append(of == file)))
    try:
        file.Seek(-1)
    except MPI.Exception as error:
        assert (error.Get_error_class(), seen) == (MPI.ERR_ARG, [True])
    file.Close()
    if rank == 0:
        print("done")
    """
    assert mpirun("-n", "3", "--nodes", "3", *mpi_program(tmp_path, text, MPI4PY)) == 0
    assert capfd.readouterr().out == "done\n"


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_a_killed_rank_ends_the_run_and_leaves_what_was_written(
    engine: str, tmp_path: Path, capfd: Captured
) -> None:
    pytest.importorskip("mpi4py")
    text = f"""
    import os, signal
    file = MPI.File.Open(world, "{tmp_path}/data", MPI.MODE_CREATE | MPI.MODE_RDWR)
    rows = MPI.INT.Create_vector(1000, 1, size).Commit()
    file.Set_view(4 * rank, MPI.INT, rows)
    file.Write_all(np.full(1000, 7, "i4"))
    world.Barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    file.Write_all(np.full(1000, 8, "i4"))
    """
    command = mpi_program(tmp_path, text, MPI4PY)
    assert mpirun("-n", "3", "--nodes", "3", *command, engine=engine) == 137
    assert "was killed by SIGKILL, and the others were ended" in capfd.readouterr().err
    assert (tmp_path / "data").read_bytes() == (7).to_bytes(4, "little") * 3000


FORTRAN = """
program files
  use mpi
  implicit none
  integer :: rank, ranks, file, code, rows, mine(4), all(12), status(MPI_STATUS_SIZE), amode
  integer(kind=MPI_OFFSET_KIND) :: place
  character(len=256) :: name
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call get_command_argument(1, name)
  amode = ior(MPI_MODE_CREATE, MPI_MODE_RDWR)
  call MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, file, code)
  call MPI_Type_vector(4, 1, ranks, MPI_INTEGER, rows, code)
  call MPI_Type_commit(rows, code)
  place = 4 * rank
  call MPI_File_set_view(file, place, MPI_INTEGER, rows, 'native', MPI_INFO_NULL, code)
  mine = rank
  call MPI_File_write_all(file, mine, 4, MPI_INTEGER, status, code)
  place = 0
  call MPI_File_set_view(file, place, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, code)
  call MPI_File_read_at(file, place, all, 4 * ranks, MPI_INTEGER, status, code)
  call MPI_File_close(file, code)
  print '(i0)', sum(all) * merge(1, 0, file == MPI_FILE_NULL)
  call MPI_Finalize(code)
end program
"""


@needs_shared_library
@pytest.mark.skipif(not shutil.which("mpifort.mpich"), reason="needs Debian's MPICH")
def test_a_program_of_fortran(tmp_path: Path, capfd: Captured) -> None:
    source, program = tmp_path / "files.f90", tmp_path / "files"
    source.write_text(FORTRAN)
    subprocess.run(["mpifort.mpich", "-o", program, source], check=True)
    assert mpirun("-n", "3", "--nodes", "1", str(program), str(tmp_path / "data")) == 0
    assert capfd.readouterr().out.split() == ["12", "12", "12"]
