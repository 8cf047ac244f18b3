"""MPI's messages above 2 GiB, which travel in pieces: between the ranks of a node, and of two."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiled import compiled, mpirun

from shrimpmx.mpi import library

Captured = pytest.CaptureFixture[str]
pytestmark = pytest.mark.skipif(
    not library.interpreter(), reason="this Python has no shared library"
)

# Two ranks, each with memory for a message, whose pages are there once they are written.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define CHECK(x) do { if (!(x)) { printf("rank %d: %s\n", rank, #x); wrong = 1; } } while (0)
#define MIDDLE (1LL << 30)
#define LENGTH (2 * MIDDLE + 3)
static int wrong, rank;
static MPI_Count bytes_of(MPI_Status *status) {
    MPI_Count bytes;
    MPI_Get_count_c(status, MPI_BYTE, &bytes);
    return bytes;
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = calloc(LENGTH, 1);
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
    int count, class;
    (void)class; (void)count; (void)message; (void)request; (void)status; (void)bytes_of;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    STATEMENTS
    MPI_Barrier(MPI_COMM_WORLD);
    if (!wrong)
        puts("fine");
    return MPI_Finalize();
}
"""
# Nothing of the long messages is copied here.
WITHOUT_ROOM = """
    if (rank == 0) {
        MPI_Send_c(data, LENGTH, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Isend_c(data, LENGTH, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Ssend_c(data, LENGTH, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        MPI_Send(data, 5, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
        MPI_Sendrecv_c(data, LENGTH, MPI_BYTE, 0, 5, data, 40, MPI_BYTE, 0, 5, MPI_COMM_WORLD,
                       &status);
    } else {
        MPI_Probe(0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(bytes_of(&status) == LENGTH && count == MPI_UNDEFINED && status.MPI_TAG == 1);
        MPI_Error_class(MPI_Recv(data, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status), &class);
        CHECK(class == MPI_ERR_TRUNCATE && bytes_of(&status) == 0);
        MPI_Mprobe(0, 2, MPI_COMM_WORLD, &message, &status);
        CHECK(bytes_of(&status) == LENGTH);
        MPI_Error_class(MPI_Mrecv(data, 20, MPI_BYTE, &message, &status), &class);
        CHECK(class == MPI_ERR_TRUNCATE && bytes_of(&status) == 20);
        MPI_Irecv(data, 3, MPI_BYTE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request);
        MPI_Error_class(MPI_Wait(&request, &status), &class);
        CHECK(class == MPI_ERR_TRUNCATE && status.MPI_SOURCE == 0 && status.MPI_TAG == 3);
        MPI_Irecv_c(data, LENGTH, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        CHECK(bytes_of(&status) == 5);
        MPI_Irecv_c(data, LENGTH, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &count);
        CHECK(count);
    }
    """
WITH_ROOM = """
    if (rank == 0) {
        data[0] = 1; data[MIDDLE] = 2; data[LENGTH - 1] = 3;
        MPI_Isend_c(data, LENGTH, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Send_c(data, LENGTH, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
    } else {
        /* Taken in another order than sent. */
        MPI_Mprobe(0, 1, MPI_COMM_WORLD, &message, &status);
        MPI_Recv_c(data, LENGTH, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
        CHECK(data[0] == 1 && data[MIDDLE] == 2 && data[LENGTH - 1] == 3);
        data[0] = data[MIDDLE] = data[LENGTH - 1] = 0;
        MPI_Imrecv_c(data, LENGTH, MPI_BYTE, &message, &request);
        MPI_Wait(&request, &status);
        CHECK(data[0] == 1 && data[MIDDLE] == 2 && data[LENGTH - 1] == 3);
        CHECK(bytes_of(&status) == LENGTH && status.MPI_TAG == 1);
    }
    """
OTHER_CALLS = """
    MPI_Datatype pairs;
    MPI_Win window;
    MPI_Type_contiguous_c(LENGTH / 2, MPI_SHORT, &pairs);
    MPI_Type_commit(&pairs);
    data[0] = rank ? 0 : 1; data[MIDDLE] = rank ? 0 : 2; data[LENGTH - 2] = rank ? 0 : 3;
    MPI_Bcast(data, 1, pairs, 0, MPI_COMM_WORLD);
    CHECK(data[0] == 1 && data[MIDDLE] == 2 && data[LENGTH - 2] == 3);
    MPI_Win_create_c(data, LENGTH, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    if (rank == 0) {
        data[MIDDLE + 1] = 7; data[LENGTH - 1] = 8;
        MPI_Put_c(data, LENGTH, MPI_BYTE, 1, 0, LENGTH, MPI_BYTE, window);
    }
    MPI_Win_fence(0, window);
    CHECK(data[MIDDLE + 1] == 7 && data[LENGTH - 1] == 8);
    if (rank == 0) {
        data[MIDDLE + 1] = data[LENGTH - 1] = 0;
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        MPI_Rget_c(data, LENGTH, MPI_BYTE, 1, 0, LENGTH, MPI_BYTE, window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_unlock(1, window);
        CHECK(data[MIDDLE + 1] == 7 && data[LENGTH - 1] == 8);
    }
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Allreduce_c(MPI_IN_PLACE, data, LENGTH / 2, MPI_BYTE, MPI_BOR, MPI_COMM_SELF);
    """

# Each rank waits for its own long message, which the other one has no room for.
EXCHANGE = """
    MPI_Request two[2];
    MPI_Status each[2];
    MPI_Isendrecv_c(data, LENGTH, MPI_BYTE, 1 - rank, 1, data, 40, MPI_BYTE, 1 - rank, 1,
                    MPI_COMM_WORLD, &request);
    MPI_Error_class(MPI_Wait(&request, &status), &class);
    CHECK(class == MPI_ERR_TRUNCATE && bytes_of(&status) == 40 && status.MPI_TAG == 1);
    MPI_Isend_c(data, LENGTH, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, &two[0]);
    MPI_Irecv(data, 3, MPI_BYTE, 1 - rank, MPI_ANY_TAG, MPI_COMM_WORLD, &two[1]);
    CHECK(MPI_Waitall(2, two, each) == MPI_ERR_IN_STATUS && each[0].MPI_ERROR == MPI_SUCCESS);
    MPI_Error_class(each[1].MPI_ERROR, &class);
    CHECK(class == MPI_ERR_TRUNCATE && bytes_of(&each[1]) == 3 && each[1].MPI_TAG == 2);
    """
# One element of `sparse` has more data than a message of a window: 1025 blocks, and five bytes.
GAPS = """
    MPI_Datatype blocks, sparse;
    MPI_Win window;
    const MPI_Count block = 1 << 20, stride = block + 16, all = 1025 * block + 5;
    int lengths[3] = {0, 1, 5};
    MPI_Aint places[3] = {0, 0, 1025 * stride};
    MPI_Type_vector(1025, block, stride, MPI_BYTE, &blocks);
    MPI_Type_create_struct(3, lengths, places,
                           (MPI_Datatype[]){MPI_INT, blocks, MPI_BYTE}, &sparse);
    MPI_Type_commit(&sparse);
    MPI_Win_create_c(data, LENGTH, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (rank == 0) {
        data[0] = 1; data[MIDDLE] = 2; data[all - 1] = 3;
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        MPI_Rput_c(data, all, MPI_BYTE, 1, 0, 1, sparse, window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_unlock(1, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        CHECK(data[0] == 1 && data[1024 * stride] == 2 && data[1025 * stride + 4] == 3);
    data[MIDDLE] = data[all - 1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; rank == 0 && turn < 2; turn++) {
        data[0] = data[1024 * stride] = data[1025 * stride + 4] = 0;
        data[block] = 9;
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        if (turn == 0) {
            MPI_Rget_c(data, 1, sparse, 1, 0, 1, sparse, window, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else
            MPI_Get_c(data, 1, sparse, 1, 0, 1, sparse, window);
        MPI_Win_unlock(1, window);
        CHECK(data[0] == 1 && data[1024 * stride] == 2 && data[1025 * stride + 4] == 3);
        CHECK(data[block] == 9);
    }
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        MPI_Accumulate_c(data, 1, sparse, 1, 0, 1, sparse, MPI_BXOR, window);
        MPI_Win_unlock(1, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        CHECK(data[0] == 0 && data[1024 * stride] == 0 && data[1025 * stride + 4] == 0);
    MPI_Win_free(&window);
    """


def run(directory: Path, statements: str, capfd: Captured, *options: str) -> None:
    path = compiled(directory, PROGRAM.replace("STATEMENTS", statements))
    assert mpirun("-n", "2", *options, path) == 0
    assert capfd.readouterr().out == "fine\n" * 2


@pytest.mark.parametrize("nodes", ["1", "2"])
def test_a_receive_without_room_for_a_long_message(
    nodes: str, tmp_path: Path, capfd: Captured
) -> None:
    run(tmp_path, WITHOUT_ROOM, capfd, "--nodes", nodes)


@pytest.mark.parametrize("nodes", ["1", "2"])
def test_long_messages_that_neither_rank_has_room_for(
    nodes: str, tmp_path: Path, capfd: Captured
) -> None:
    run(tmp_path, EXCHANGE, capfd, "--nodes", nodes)


@pytest.mark.nightly("4 GiB of memory each")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("nodes", ["1", "2"])
@pytest.mark.parametrize(
    "statements", [WITH_ROOM, OTHER_CALLS, GAPS], ids=["messages", "other calls", "gaps"]
)
def test_a_long_message(nodes: str, statements: str, tmp_path: Path, capfd: Captured) -> None:
    run(tmp_path, statements, capfd, "--nodes", nodes)
