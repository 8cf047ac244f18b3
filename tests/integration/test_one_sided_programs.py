"""Windows in programs of C, Python and Fortran: on one node, on several, on simulated ones."""

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
    "simulated node": ("simulated", ["-n", "3", "--nodes", "1"]),
    "simulated nodes": ("simulated", ["-n", "4", "--nodes", "2"]),
}

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;
#define CHECK(it) do { if (!(it)) { wrong++; fprintf(stderr, "%d: %s\n", rank, #it); } } while (0)

static void atomics(void) {
    long *memory, old, one = 1, values[3];
    MPI_Win win;
    MPI_Win_allocate(8 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    memset(memory, 0, 8 * sizeof *memory);
    MPI_Barrier(MPI_COMM_WORLD);
    /* An exclusive lock excludes, also between ranks of the node and others. */
    for (int turn = 0; turn < 50; turn++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&old, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
        old++;
        MPI_Put(&old, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < 50; turn++)
        for (int target = 0; target < size; target++) {
            MPI_Accumulate(&one, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, win);
            MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 2, MPI_SUM, win);
        }
    MPI_Win_flush_all(win);
    /* A spin lock of the program's. */
    for (int turn = 0; turn < 10; turn++) {
        long free_now = 0, mine = rank + 1;
        do {
            MPI_Compare_and_swap(&mine, &free_now, &old, MPI_LONG, size - 1, 3, win);
            MPI_Win_flush(size - 1, win);
        } while (old != 0);
        MPI_Get(&old, 1, MPI_LONG, size - 1, 4, 1, MPI_LONG, win);
        MPI_Win_flush(size - 1, win);
        old++;
        MPI_Put(&old, 1, MPI_LONG, size - 1, 4, 1, MPI_LONG, win);
        MPI_Win_flush(size - 1, win);
        MPI_Accumulate(&free_now, 1, MPI_LONG, size - 1, 3, 1, MPI_LONG, MPI_REPLACE, win);
        MPI_Win_flush(size - 1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    memcpy(values, memory, sizeof values);
    MPI_Win_unlock(rank, win);
    CHECK(values[0] == (rank ? 0 : 50 * size));
    CHECK(values[1] == 50 * size && values[2] == 50 * size);
    CHECK(memory[4] == (rank == size - 1 ? 10 * size : 0));
    MPI_Win_free(&win);
    CHECK(win == MPI_WIN_NULL);
}

/* What was there before, by each operation on what the one before has left. */
static void operations(void) {
    static const struct {
        MPI_Op op;
        long data, before;
    } all[] = {{MPI_REPLACE, 6, 0}, {MPI_SUM, 4, 6},   {MPI_PROD, 3, 10}, {MPI_MAX, 31, 30},
               {MPI_MIN, 29, 31},   {MPI_BAND, 12, 29}, {MPI_BOR, 3, 12},  {MPI_BXOR, 1, 15},
               {MPI_NO_OP, 9, 14},  {MPI_LAND, 0, 14}, {MPI_NO_OP, 0, 0}};
    char apart[1 + sizeof(long)], *page;
    long *memory, old, others[2];
    MPI_Win win;
    const int length = 70000;
    MPI_Win_allocate(2 * length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, 2 * length);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int target = 0; target < size; target++) {
        const MPI_Aint at = 16 * rank;
        for (int turn = 0; turn < (int)(sizeof all / sizeof *all); turn++) {
            memcpy(apart + 1, &all[turn].data, sizeof(long)); /* which is not aligned */
            MPI_Fetch_and_op(turn % 2 ? (void *)(apart + 1) : (void *)&all[turn].data, &old,
                             MPI_LONG, target, at, all[turn].op, win);
            MPI_Win_flush(target, win);
            CHECK(old == all[turn].before);
        }
        long two[2] = {5, 7};
        MPI_Accumulate(two, 2, MPI_LONG, target, at, 2, MPI_LONG, MPI_SUM, win);
        MPI_Get_accumulate(NULL, 0, MPI_LONG, others, 2, MPI_LONG, target, at, 2, MPI_LONG,
                           MPI_NO_OP, win);
        MPI_Win_flush(target, win);
        CHECK(others[0] == 5 && others[1] == 7);
        MPI_Compare_and_swap(&two[1], &two[1], &old, MPI_LONG, target, at, win);
        MPI_Win_flush(target, win);
        CHECK(old == 5);
        MPI_Compare_and_swap(&two[1], &two[0], &old, MPI_LONG, target, at, win);
        MPI_Compare_and_swap(&two[0], &two[1], &others[0], MPI_LONG, target, at, win);
        MPI_Win_flush(target, win);
        CHECK(old == 5 && others[0] == 7);
    }
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    page = malloc(2 * length);
    for (int at = 0; at < length; at++)
        page[at] = (char)(at * 7 + rank);
    MPI_Put(page, length, MPI_CHAR, (rank + 1) % size, length, length, MPI_CHAR, win);
    MPI_Win_flush((rank + 1) % size, win);
    for (int behind = 0; behind < 48; behind += 16) {
        memset(page, 0, 2 * length);
        MPI_Get(page + behind, length, MPI_CHAR, (rank + 1) % size, length, length, MPI_CHAR, win);
        MPI_Win_flush((rank + 1) % size, win);
        int differ = 0;
        for (int at = 0; at < length; at++)
            differ += page[behind + at] != (char)(at * 7 + rank);
        CHECK(differ == 0 && page[behind + length] == 0);
    }
    free(page);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void in_common(const char *apart) {
    MPI_Comm node;
    MPI_Win win;
    MPI_Info info;
    MPI_Aint length;
    int unit, own, others, *memory, *theirs;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &own);
    MPI_Comm_size(node, &others);
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", apart);
    MPI_Win_allocate_shared(own * 4, 4, info, node, &memory, &win);
    MPI_Info_free(&info);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int at = 0; at < own; at++)
        memory[at] = 100 * own + at;
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    for (int other = 0; other < others; other++) {
        MPI_Win_shared_query(win, other, &length, &unit, &theirs);
        CHECK(length == 4 * other && unit == 4);
        for (int at = 0; at < other; at++)
            CHECK(theirs[at] == 100 * other + at);
        CHECK(strcmp(apart, "false") || own == 0 || other == 0 || theirs - memory ==
              other * (other - 1) / 2 - own * (own - 1) / 2);
    }
    MPI_Win_shared_query(win, MPI_PROC_NULL, &length, &unit, &theirs);
    CHECK(length == (others > 1 ? 4 : 0));
    MPI_Barrier(node);
    /* Stores of others are seen by a rank that polls. */
    if (others > 1 && own == 0) {
        theirs[0] = 77;
        MPI_Win_sync(win);
    } else if (own == 1) {
        while (*(volatile int *)memory != 77)
            MPI_Win_sync(win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&node);
}

static void what_belongs_to_it(void) {
    MPI_Win win;
    MPI_Group group, world;
    MPI_Aint *length;
    int *unit, *flavor, *model, flag, same, key, class;
    char name[MPI_MAX_OBJECT_NAME];
    void *base;
    double memory[4];
    MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    CHECK(flag && base == memory);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &length, &flag);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
    CHECK(*length == 32 && *unit == 8 && *flavor == MPI_WIN_FLAVOR_CREATE);
    CHECK(*model == MPI_WIN_UNIFIED);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL);
    MPI_Win_set_attr(win, key, memory);
    MPI_Win_get_attr(win, key, &base, &flag);
    CHECK(flag && base == memory);
    MPI_Win_delete_attr(win, key);
    MPI_Win_get_attr(win, key, &base, &flag);
    CHECK(!flag);
    MPI_Win_free_keyval(&key);
    MPI_Win_set_name(win, "ours");
    MPI_Win_get_name(win, name, &flag);
    CHECK(!strcmp(name, "ours") && flag == 4);
    MPI_Win_get_group(win, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &same);
    CHECK(same == MPI_IDENT);
    MPI_Win_post(group, 0, win);
    MPI_Win_start(group, 0, win);
    MPI_Win_complete(win);
    for (flag = 0; !flag;)
        MPI_Win_test(win, &flag);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Put(memory, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win), &class);
    CHECK(class == MPI_ERR_RMA_SYNC);
    /* Memory that other ranks cannot reach has no bytes for them. */
    MPI_Aint there;
    MPI_Win_shared_query(win, rank, &there, &same, &base);
    CHECK(there == sizeof memory && base == memory && same == 8);
    MPI_Win_shared_query(win, (rank + 1) % size, &there, &same, &base);
    CHECK(size == 1 || (there == 0 && base == NULL));
    MPI_Win_shared_query(win, MPI_PROC_NULL, &there, &same, &base);
    CHECK(rank == 0 ? there == sizeof memory && base == memory : there == 0 && base == NULL);
    MPI_Win_free(&win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Win_shared_query(win, 0, &there, &same, &base), &class);
    CHECK(class == MPI_ERR_RMA_FLAVOR);
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    atomics();
    operations();
    in_common("false");
    in_common("true");
    what_belongs_to_it();
    printf("%d wrong\n", wrong);
    return MPI_Finalize();
}
"""


@pytest.mark.nightly("each engine and number of nodes", but=2)
@needs_shared_library
@pytest.mark.parametrize("place", PLACES)
def test_a_program_of_c(place: str, tmp_path: Path, capfd: Captured) -> None:
    engine, words = PLACES[place]
    assert mpirun(*words, compiled(tmp_path, PROGRAM), engine=engine) == 0
    assert capfd.readouterr().out.split("\n")[:-1] == ["0 wrong"] * int(words[1])


ERRORS = {
    "rank": ("MPI_Put(&rank, 1, MPI_INT, 9, 0, 1, MPI_INT, win)", "MPI_Put: MPI_ERR_RANK"),
    "range": ("MPI_Get(&rank, 1, MPI_INT, 0, 1, 1, MPI_INT, win)", "MPI_Get: MPI_ERR_RMA_RANGE"),
    "epoch": ("MPI_Win_unlock(0, win)", "MPI_Win_unlock: MPI_ERR_RMA_SYNC"),
}


@pytest.mark.nightly("each error", but=2)
@needs_shared_library
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_ends_a_program_that_handles_none(
    error: str, tmp_path: Path, capfd: Captured
) -> None:
    statement, sentence = ERRORS[error]
    text = f"""
    #include <mpi.h>
    int main(int argc, char **argv) {{
        int rank = 0;
        MPI_Win win;
        MPI_Init(&argc, &argv);
        MPI_Win_create(&rank, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_fence(0, win);
        {statement};
        return MPI_Finalize();
    }}
    """
    assert mpirun("-n", "2", compiled(tmp_path, text)) == 1
    assert sentence in capfd.readouterr().err


PYTHON = """
memories = [bytearray(800), np.zeros(100), None]
for memory in memories:
    win = (MPI.Win.Allocate(800, 8, comm=world) if memory is None
           else MPI.Win.Create(memory, 8, comm=world))
    data = np.frombuffer(win.tomemory(), "f8")
    data[:] = 0
    win.Fence()
    win.Put(np.full(4, rank + 1.0), right, 4 * rank)
    win.Fence()
    assert (data[4 * left :][:4] == left + 1).all()
    strided = MPI.DOUBLE.Create_vector(3, 1, 2).Commit()
    win.Accumulate([np.arange(3.0) + 1, 3, MPI.DOUBLE], right, [60, 1, strided])
    win.Fence()
    assert [*data[60:65]] == [1, 0, 2, 0, 3]
    into = np.arange(5.0)
    win.Get([into, 1, strided], right, [60, 3, MPI.DOUBLE])
    win.Fence(MPI.MODE_NOSUCCEED)
    assert [*into] == [1, 1, 0, 3, 2]
    old = np.zeros(1)
    for turn in range(5):
        with_lock = MPI.LOCK_EXCLUSIVE if turn % 2 else MPI.LOCK_SHARED
        win.Lock(0, with_lock)
        win.Fetch_and_op(np.ones(1), old, 0, 90)
        win.Unlock(0)
    world.Barrier()
    win.Lock(0)
    win.Get(old, 0, 90)
    win.Unlock(0)
    assert old[0] == 5 * size
    strided.Free()
    win.Free()
"""


@pytest.mark.nightly("each engine and number of nodes", but=2)
@pytest.mark.parametrize("place", PLACES)
def test_a_program_of_python(place: str, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    engine, words = PLACES[place]
    assert mpirun(*words, *mpi_program(tmp_path, PYTHON, MPI4PY), engine=engine) == 0


FORTRAN = """
program windows
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, ranks, error, win, unit
  integer(kind=mpi_address_kind) :: length, place, found
  integer, pointer :: memory(:)
  type(c_ptr) :: base
  logical :: flag
  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  call mpi_comm_size(mpi_comm_world, ranks, error)
  length = 8
  call mpi_win_allocate_shared(length, 4, mpi_info_null, mpi_comm_world, base, win, error)
  call mpi_win_get_attr(win, mpi_win_size, found, flag, error)
  if (.not. flag .or. found /= 8) print *, "size", found
  call mpi_win_shared_query(win, 0, length, unit, base, error)
  call c_f_pointer(base, memory, [2 * ranks])
  call mpi_win_fence(0, win, error)
  place = 1
  call mpi_put(rank + 1, 1, mpi_integer, mod(rank + 1, ranks), place, 1, mpi_integer, win, error)
  call mpi_win_fence(0, win, error)
  print "(i0)", memory(2 * rank + 2)
  call mpi_win_free(win, error)
  call mpi_finalize(error)
end program
"""


@needs_shared_library
@pytest.mark.skipif(not shutil.which("mpifort.mpich"), reason="needs Debian's MPICH")
def test_a_program_of_fortran(tmp_path: Path, capfd: Captured) -> None:
    source, program = tmp_path / "windows.f90", tmp_path / "windows"
    source.write_text(FORTRAN)
    subprocess.run(["mpifort.mpich", "-o", program, source], check=True)
    assert mpirun("-n", "3", "--nodes", "1", str(program)) == 0
    assert sorted(capfd.readouterr().out.split()) == ["1", "2", "3"]
