"""Programs of MPI 5's standard ABI: attributes, errors, requests, windows and files.

They check themselves, and were run under MPICH 5.0.2 by libmpi_abi.so.1 as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiled import mpirun, standard_program

from shrimpmx.mpi import library

Captured = pytest.CaptureFixture[str]
pytestmark = pytest.mark.skipif(
    not library.interpreter(), reason="this Python has no shared library"
)

ATTRIBUTES = r"""
static int copies, deletes;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    CHECK(comm == MPI_COMM_WORLD && extra == &copies);
    copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    deletes++;
    return value == &rank ? MPI_ERR_NAME : MPI_SUCCESS;
}

static void attributes(void) {
    int key, duplicated, flag, *value;
    MPI_Comm other;
    MPI_Comm_create_keyval(copy, delete, &key, &copies);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &duplicated, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &size);
    MPI_Comm_set_attr(MPI_COMM_WORLD, duplicated, &copies);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_get_attr(other, key, &value, &flag);
    CHECK(flag && value == &size && copies == 1);
    MPI_Comm_get_attr(other, duplicated, &value, &flag);
    CHECK(flag && value == &copies);
    MPI_Comm_free(&other);
    CHECK(deletes == 1);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, duplicated);
    /* A function's own code comes back. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &rank);
    CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key) == MPI_ERR_NAME);
    MPI_Comm_free_keyval(&key);
    CHECK(key == MPI_KEYVAL_INVALID);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    CHECK(flag && *value >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag);
    CHECK(flag && *value == MPI_ANY_SOURCE);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag);
    CHECK(flag && *value == MPI_PROC_NULL);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
}
"""

ERRORS = r"""
static int handled;

static void handle(MPI_Comm *comm, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    CHECK(*comm == MPI_COMM_WORLD && class == MPI_ERR_RANK);
    handled++;
}

static void errors(void) {
    MPI_Errhandler handler, found;
    int class, own, code, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    code = MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_RANK && handled == 1);
    MPI_Error_string(code, text, &length);
    CHECK(strncmp(text, "MPI_ERR_RANK", 12) == 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
    CHECK(found == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    CHECK(handler == MPI_ERRHANDLER_NULL);
    /* Handles of another kind, NULL among them, and numbers of another ABI. */
    code = MPI_Send(&rank, 1, (MPI_Datatype)NULL, 0, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TYPE);
    code = MPI_Send(&rank, 1, (MPI_Datatype)MPI_COMM_WORLD, 0, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TYPE);
    code = MPI_Send(&rank, 1, MPI_INT, MPI_ANY_TAG, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_RANK);
    code = MPI_Comm_size(MPI_COMM_WORLD, NULL);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_ARG);
    MPI_Error_string(code, text, &length);
    CHECK(strncmp(text, "MPI_Comm_size: ", 15) == 0);
    MPI_Add_error_class(&own);
    CHECK(own > MPI_ERR_LASTCODE);
    MPI_Add_error_code(own, &code);
    MPI_Add_error_string(code, "hello");
    MPI_Error_string(code, text, &length);
    MPI_Error_class(code, &class);
    CHECK(strcmp(text, "hello") == 0 && class == own);
    MPI_Request request;
    MPI_Status status;
    char small;
    MPI_Irecv(&small, 1, MPI_CHAR, rank, 0, MPI_COMM_WORLD, &request);
    MPI_Send(text, 2, MPI_CHAR, rank, 0, MPI_COMM_WORLD);
    code = MPI_Waitall(1, &request, &status);
    CHECK(code == MPI_ERR_IN_STATUS && status.MPI_ERROR == MPI_ERR_TRUNCATE);
}
"""

OTHERS = r"""
static int query(void *extra, MPI_Status *status) {
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = 9;
    MPI_Status_set_elements(status, MPI_INT, 4);
    MPI_Status_set_cancelled(status, 1);
    return extra == &size ? MPI_SUCCESS : MPI_ERR_ARG;
}
static int frees(void *extra) { return MPI_SUCCESS; }
static int cancels(void *extra, int complete) { return MPI_SUCCESS; }

static void generalized(void) {
    MPI_Request request;
    MPI_Status status;
    int count, cancelled;
    MPI_Grequest_start(query, frees, cancels, &size, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == 9 && count == 4 && cancelled);
}

static void windows(void) {
    int *memory, *flavor, *model, flag, one = 1, old = -1;
    MPI_Win win;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    *memory = 0;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_ALLOCATE);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
    CHECK(flag && *model == MPI_WIN_UNIFIED);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, win);
    CHECK(rank != 0 || *memory == size);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win);
    MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_NO_OP, win);
    MPI_Win_unlock(0, win);
    CHECK(old == size);
    MPI_Win_free(&win);
    CHECK(win == MPI_WIN_NULL);
}

static void files(const char *name) {
    MPI_File file;
    MPI_Status status;
    MPI_Offset offset, bytes;
    MPI_Datatype etype, filetype;
    int amode, count, value = rank + 1, found = 0;
    char representation[MPI_MAX_DATAREP_STRING];
    int class;
    const int code = MPI_File_open(MPI_COMM_WORLD, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL,
                                   &file);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_NO_SUCH_FILE);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    MPI_File_get_amode(file, &amode);
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE));
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, rank, &value, 1, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 1);
    MPI_Barrier(MPI_COMM_WORLD); /* after which the file has its size */
    MPI_File_seek(file, -1, MPI_SEEK_END);
    MPI_File_get_position(file, &offset);
    CHECK(offset == size - 1);
    MPI_File_read(file, &found, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(found == size);
    MPI_File_get_view(file, &bytes, &etype, &filetype, representation);
    CHECK(etype == MPI_INT && filetype == MPI_INT && bytes == 0);
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
    MPI_File_close(&file);
    CHECK(file == MPI_FILE_NULL);
}

static void about_the_abi(void) {
    int major, minor, flag, length = 16;
    char value[16];
    MPI_Info info;
    MPI_Abi_get_version(&major, &minor);
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    MPI_Get_version(&major, &minor);
    CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION);
    MPI_Abi_get_info(&info);
    MPI_Info_get_string(info, "mpi_count_size", &length, value, &flag);
    CHECK(flag && strcmp(value, "8") == 0);
    MPI_Info_free(&info);
    CHECK(info == MPI_INFO_NULL);
    MPI_Abi_get_fortran_info(&info);
    if (info != MPI_INFO_NULL) {
        length = 16;
        MPI_Info_get_string(info, "mpi_logical_size", &length, value, &flag);
        CHECK(flag && strcmp(value, "4") == 0);
        MPI_Info_free(&info);
    }
}
"""


def test_attributes_and_errors(tmp_path: Path, capfd: Captured) -> None:
    program = standard_program(tmp_path, ATTRIBUTES + ERRORS, "attributes(); errors();")
    assert mpirun("-n", "2", program) == 0
    assert capfd.readouterr().out == "all well\n"


def test_requests_windows_and_files(tmp_path: Path, capfd: Captured) -> None:
    calls = "about_the_abi(); generalized(); windows(); files(argv[1]);"
    program = standard_program(tmp_path, OTHERS, calls)
    assert mpirun("-n", "2", program, str(tmp_path / "file")) == 0
    assert capfd.readouterr().out == "all well\n"
