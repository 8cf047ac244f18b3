"""Files in programs of C, Python and Fortran: on one node, on several, on simulated ones."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
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

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 40, INTS = 3, ROOM = BLOCKS * INTS };
static int rank, size, wrong;
static const char *name;
#define CHECK(it) do { if (!(it)) { wrong++; fprintf(stderr, "%d: %s\n", rank, #it); } } while (0)

static int class_of(int code) {
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static int count_of(MPI_Status *status) {
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    return count;
}

static MPI_File opened(int amode, MPI_Info info) {
    MPI_File file;
    CHECK(!MPI_File_open(MPI_COMM_WORLD, name, amode, info, &file));
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    return file;
}

/* Blocks of the ranks in turn, from memory with gaps, by few windows or many. */
static void mixed(const char *how, const char *window) {
    MPI_Info info;
    MPI_Datatype blocks, theirs, gaps;
    MPI_Status status;
    MPI_Offset bytes;
    int data[2 * ROOM], back[2 * ROOM], whole[ROOM];
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", how);
    MPI_Info_set(info, "romio_cb_read", how);
    MPI_Info_set(info, "cb_buffer_size", window);
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR, info);
    MPI_Info_free(&info);
    MPI_Type_vector(BLOCKS, INTS, INTS * size, MPI_INT, &blocks);
    MPI_Type_create_resized(blocks, 0, 4 * ROOM * size, &theirs);
    MPI_Type_vector(ROOM, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&theirs);
    MPI_Type_commit(&gaps);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 12 + 4 * INTS * rank, MPI_INT, theirs, "native", MPI_INFO_NULL);
    for (int at = 0; at < 2 * ROOM; at++)
        data[at] = 1000 * rank + at;
    MPI_File_write_all(file, data, 1, gaps, &status);
    CHECK(count_of(&status) == ROOM);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 12 + 4 * ROOM * size);
    memset(back, 0, sizeof back);
    MPI_File_read_at_all(file, 0, back, 1, gaps, &status);
    CHECK(count_of(&status) == ROOM);
    for (int at = 0; at < ROOM; at++)
        CHECK(back[2 * at] == 1000 * rank + 2 * at && (at == ROOM - 1 || back[2 * at + 1] == 0));
    /* Behind the end there is nothing. */
    MPI_File_read_at_all(file, ROOM - 2, back, 10, MPI_INT, &status);
    CHECK(count_of(&status) == 2 && back[1] == 1000 * rank + 2 * (ROOM - 1));
    MPI_File_set_view(file, 12, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    int other = (rank + 1) % size;
    MPI_File_read_at(file, INTS * other, whole, INTS, MPI_INT, &status);
    CHECK(whole[0] == 1000 * other && whole[2] == 1000 * other + 4);
    MPI_Type_free(&blocks);
    MPI_Type_free(&theirs);
    MPI_Type_free(&gaps);
    MPI_File_close(&file);
    CHECK(file == MPI_FILE_NULL);
}

static void pointers(void) {
    MPI_Offset place;
    MPI_Status status;
    MPI_Request requests[2];
    int one = rank, seen = -1, *all = calloc(size, sizeof *all), more[2] = {rank, rank};
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_ordered(file, more, rank % 2 + 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position_shared(file, &place);
    CHECK(place == size + size / 2);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered_begin(file, more, rank % 2 + 1, MPI_INT);
    MPI_File_read_ordered_end(file, more, &status);
    CHECK(more[0] == rank && count_of(&status) == rank % 2 + 1);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_shared(file, &one, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 0, all, size, MPI_INT, &status);
    CHECK(count_of(&status) == size);
    for (int other = 0, found; other < size; other++) {
        found = 0;
        for (int at = 0; at < size; at++)
            found += all[at] == other;
        CHECK(found == 1);
    }
    MPI_File_seek(file, -1, MPI_SEEK_END);
    MPI_File_get_position(file, &place);
    CHECK(place == size + size / 2 - 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(file, 10 + rank, MPI_SEEK_SET);
    MPI_File_iwrite(file, &one, 1, MPI_INT, &requests[0]);
    MPI_File_iwrite_at_all(file, 100 + rank, &one, 1, MPI_INT, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_iread_at(file, 100 + (rank + 1) % size, &seen, 1, MPI_INT, &requests[0]);
    MPI_Wait(&requests[0], &status);
    CHECK(seen == (rank + 1) % size && count_of(&status) == 1);
    MPI_File_get_position(file, &place);
    CHECK(place == 11 + rank);
    MPI_File_set_atomicity(file, 1);
    MPI_File_write_at_all_begin(file, 10, &one, 1, MPI_INT);
    CHECK(class_of(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN)) == MPI_SUCCESS);
    CHECK(class_of(MPI_File_write_all(file, &one, 1, MPI_INT, &status)) == MPI_ERR_OTHER);
    MPI_File_write_at_all_end(file, &one, &status);
    free(all);
    MPI_File_close(&file);
}

static int twice(void *memory, MPI_Datatype type, int count, void *disk, MPI_Offset place,
                 void *out) {
    for (int at = 0; at < count; at++)
        if (*(int *)out)
            ((short *)disk)[at] = ((int *)memory)[at] * 2;
        else
            ((int *)memory)[at] = ((short *)disk)[at] / 2;
    return MPI_SUCCESS;
}

static int halved(MPI_Datatype type, MPI_Aint *extent, void *to) {
    *extent = 2;
    return MPI_SUCCESS;
}

static void views(void) {
    static int out = 1, in = 0;
    MPI_Datatype etype, filetype, grid, got_etype, got_filetype;
    MPI_Offset place;
    MPI_Aint extent;
    char representation[MPI_MAX_DATAREP_STRING];
    unsigned char bytes[4];
    int value = 0x01020304, back = 0, many[3] = {1, 2, 3}, sizes[2] = {4, 4}, sub[2] = {2, 2},
        starts[2] = {1, 2};
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Type_contiguous(2, MPI_INT, &etype);
    MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, etype, &filetype);
    MPI_Type_dup(filetype, &grid);
    MPI_Type_commit(&etype);
    MPI_Type_commit(&grid);
    MPI_File_set_view(file, 5, etype, grid, "internal", MPI_INFO_NULL);
    MPI_Type_free(&filetype);
    MPI_Type_free(&grid);
    MPI_File_get_view(file, &place, &got_etype, &got_filetype, representation);
    CHECK(place == 5 && !strcmp(representation, "internal"));
    MPI_Type_free(&got_etype);
    MPI_Type_free(&got_filetype);
    MPI_Type_free(&etype);
    MPI_File_get_byte_offset(file, 3, &place);
    CHECK(place == 5 + 8 * (2 * 4 + 3));
    MPI_File_get_byte_offset(file, 4 + 1, &place);
    CHECK(place == 5 + 8 * (16 + 4 + 3));
    MPI_File_set_view(file, 8 * rank, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
    MPI_File_get_type_extent(file, MPI_LONG, &extent);
    CHECK(extent == 4);
    MPI_File_set_view(file, 4 * rank, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, 0, &back, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(back == value);
    MPI_File_set_view(file, 4 * rank, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 0, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(bytes[0] == 1 && bytes[3] == 4);
    CHECK(!MPI_Register_datarep("out", MPI_CONVERSION_FN_NULL, twice, halved, &out));
    CHECK(!MPI_Register_datarep("in", twice, MPI_CONVERSION_FN_NULL, halved, &in));
    CHECK(class_of(MPI_Register_datarep("in", twice, twice, halved, &in)) == MPI_ERR_DUP_DATAREP);
    MPI_File_set_view(file, 6 * rank, MPI_INT, MPI_INT, "out", MPI_INFO_NULL);
    MPI_File_write_at(file, 0, many, 3, MPI_INT, MPI_STATUS_IGNORE);
    memset(many, 0, sizeof many);
    MPI_File_set_view(file, 6 * rank, MPI_INT, MPI_INT, "in", MPI_INFO_NULL);
    MPI_File_read_at(file, 1, many, 2, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(many[0] == 2 && many[1] == 3);
    MPI_File_close(&file);
}

static void errors(void) {
    MPI_File file = (MPI_File)-1;
    MPI_Offset bytes;
    MPI_Status status;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Datatype type;
    /* Before the file's beginning, descending, and with an empty block. */
    int places[3][3] = {{-1, 2, 4}, {3, 1, 5}, {2, 4, 5}}, lengths[3][3] = {{1, 1, 1}, {1, 1, 1},
        {1, 0, 1}};
    int value = 0, length, amode, again = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR;
    int code = MPI_File_open(MPI_COMM_WORLD, "none/x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_Error_string(code, text, &length);
    CHECK(class_of(code) == MPI_ERR_NO_SUCH_FILE && file == MPI_FILE_NULL);
    CHECK(!strcmp(text, "MPI_ERR_NO_SUCH_FILE: none/x: No such file or directory"));
    CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, name, again, MPI_INFO_NULL, &file)) ==
          MPI_ERR_FILE_EXISTS);
    amode = MPI_MODE_RDWR | MPI_MODE_RDONLY;
    CHECK(class_of(MPI_File_open(MPI_COMM_SELF, name, amode, MPI_INFO_NULL, &file)) ==
          MPI_ERR_AMODE);
    amode = rank ? MPI_MODE_RDWR : MPI_MODE_RDONLY;
    CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file)) ==
          (size > 1 ? MPI_ERR_AMODE : MPI_SUCCESS));
    CHECK(class_of(MPI_File_open(MPI_COMM_WORLD, ".", MPI_MODE_RDWR, MPI_INFO_NULL, &file)) ==
          MPI_ERR_BAD_FILE);
    CHECK(class_of(MPI_File_get_size(MPI_FILE_NULL, &bytes)) == MPI_ERR_FILE);
    CHECK(class_of(MPI_File_delete("none", MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK(class_of(MPI_File_write(file, &value, 1, MPI_INT, &status)) == MPI_ERR_READ_ONLY);
    CHECK(class_of(MPI_File_set_size(file, 1)) == MPI_ERR_READ_ONLY);
    CHECK(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "best", MPI_INFO_NULL)) ==
          MPI_ERR_UNSUPPORTED_DATAREP);
    CHECK(class_of(MPI_File_seek(file, -1, MPI_SEEK_SET)) == MPI_ERR_ARG);
    for (int at = 0; at < 3; at++) {
        MPI_Type_indexed(3, lengths[at], places[at], MPI_INT, &type);
        MPI_Type_commit(&type);
        code = MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL);
        CHECK(class_of(code) == (at < 2 ? MPI_ERR_IO : MPI_SUCCESS));
        MPI_Type_free(&type);
    }
    MPI_File_get_byte_offset(file, 3, &bytes);
    CHECK(bytes == 4 * 9);
    /* The error of one leaves the others alone. */
    code = MPI_File_read_at_all(file, 0, &value, rank ? 1 : -1, MPI_INT, &status);
    CHECK(class_of(code) == (rank ? MPI_SUCCESS : MPI_ERR_COUNT));
    MPI_File_close(&file);
    amode = MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file);
    CHECK(class_of(MPI_File_read(file, &value, 1, MPI_INT, &status)) == MPI_ERR_ACCESS);
    CHECK(class_of(MPI_File_write(file, &value, 1, MPI_INT, &status)) ==
          MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(!MPI_File_write_shared(file, &value, 1, MPI_INT, &status) && count_of(&status) == 1);
    MPI_File_close(&file);
    CHECK(class_of(MPI_File_delete(name, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
    file = (MPI_File)4711;
    CHECK(class_of(MPI_File_close(&file)) == MPI_ERR_FILE);
    CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    name = argv[1];
    mixed("automatic", "5000");
    mixed("enable", "70");
    mixed("disable", "1");
    pointers();
    views();
    errors();
    MPI_Finalize();
    return wrong > 0;
}
"""


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
