"""Partitioned messages of MPI 4 in programs of C and Python, on both engines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.compiled import compiled, mpirun

from shrimpmx.mpi import library

Captured = pytest.CaptureFixture[str]
pytestmark = pytest.mark.skipif(
    not library.interpreter(), reason="this Python has no shared library"
)
WORDS = {
    "forked": ["-n", "2", "--nodes", "2"],
    "simulated": ["-n", "2", "--nodes", "2", "--set", "loss=0.01"],
}

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    int rank, result = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    { STATEMENTS }
    printf("%d\n", result);
    return MPI_Finalize();
}
"""

# The sender's partitions and the receiver's, with bytes of each: divided alike, more finely, more
# coarsely, and so that none of their ends meet.
DIVISIONS = [(4, 6, 4, 6), (6, 4, 3, 8), (2, 60000, 12, 10000), (5, 300, 3, 500), (3, 0, 2, 0)]

EXCHANGE = r"""
    enum { SENT = %d, SENT_BYTES = %d, GOT = %d, GOT_BYTES = %d, ROUNDS = 3 };
    static unsigned char data[SENT * SENT_BYTES + 1];
    MPI_Request request;
    MPI_Status status;
    int flag, count, token = 0;
    result = 1;
    if (rank == 0)
        MPI_Psend_init(data, SENT, SENT_BYTES, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    else
        MPI_Precv_init(data, GOT, GOT_BYTES, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0)
            for (int i = 0; i < SENT * SENT_BYTES; i++)
                data[i] = (unsigned char)(i * 7 + round);
        MPI_Start(&request);
        if (rank == 0) {
            /* The last one first; the receiver sees it before the others leave. */
            MPI_Pready(SENT - 1, request);
            MPI_Recv(&token, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            const int some[1] = {0};
            MPI_Pready_list(SENT > 1, some, request);
            if (SENT > 2)
                MPI_Pready_range(1, SENT - 2, request);
        } else {
            const int last_alone = GOT_BYTES > 0 && GOT_BYTES <= SENT_BYTES;
            MPI_Parrived(request, 0, &flag);
            result &= GOT_BYTES == 0 || !flag;
            do
                MPI_Parrived(request, GOT - 1, &flag);
            while (last_alone && !flag);
            result &= !last_alone || data[SENT * SENT_BYTES - 1] ==
                      (unsigned char)((SENT * SENT_BYTES - 1) * 7 + round);
            MPI_Send(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
        }
        MPI_Wait(&request, &status);
        if (rank == 1) {
            MPI_Get_count(&status, MPI_BYTE, &count);
            result &= count == SENT * SENT_BYTES && status.MPI_SOURCE == 0 && status.MPI_TAG == 7;
            for (int i = 0; i < count; i++)
                result &= data[i] == (unsigned char)(i * 7 + round);
            MPI_Parrived(request, 0, &flag);
            result &= flag;
        }
    }
    MPI_Request_free(&request);
"""


def program(directory: Path, statements: str) -> str:
    return compiled(directory, PROGRAM.replace("STATEMENTS", statements))


@pytest.mark.nightly("each division on each engine", but=3)
@pytest.mark.parametrize("engine", WORDS)
@pytest.mark.parametrize("division", DIVISIONS, ids=lambda each: "-".join(map(str, each)))
def test_partitions_of_both_sides(
    division: tuple[int, ...], engine: str, tmp_path: Path, capfd: Captured
) -> None:
    text = EXCHANGE % division
    assert mpirun(*WORDS[engine], program(tmp_path, text), engine=engine) == 0
    assert capfd.readouterr().out == "1\n" * 2


OTHERS = {
    # Columns of a matrix, whose elements have gaps, into rows of another division.
    "derived datatypes": r"""
        int matrix[4][6] = {{0}}, got[24], sum = 0;
        MPI_Datatype column;
        MPI_Request request;
        MPI_Type_vector(4, 1, 6, MPI_INT, &column);
        MPI_Type_create_resized(column, 0, sizeof(int), &column);
        MPI_Type_commit(&column);
        for (int i = 0; i < 24; i++)
            matrix[i / 6][i % 6] = rank ? 0 : i;
        if (rank == 0)
            MPI_Psend_init(matrix, 3, 2, column, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        else
            MPI_Precv_init(matrix, 6, 1, column, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Type_free(&column);
        MPI_Start(&request);
        if (rank == 0)
            MPI_Pready_range(0, 2, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        result = 1;
        for (int i = 0; i < 24; i++)
            result &= matrix[i / 6][i % 6] == i;
        MPI_Request_free(&request);
        (void)got; (void)sum;
        """,
    # Pairs meet in the order of their descriptions, whatever is started first; others in between.
    "several of one tag": r"""
        int values[3] = {10 * rank, 10 * rank + 1, 10 * rank + 2}, got[3] = {0}, other = -1;
        MPI_Request sends[3], receives[3];
        for (int i = 0; i < 3; i++) {
            MPI_Psend_init(&values[i], 1, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &sends[i]);
            MPI_Precv_init(&got[i], 1, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &receives[i]);
        }
        for (int i = 2; i >= 0; i--) {
            MPI_Start(&receives[i]);
            MPI_Start(&sends[i]);
            MPI_Pready(0, sends[i]);
        }
        MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 5, &other, 1, MPI_INT, 1 - rank, MPI_ANY_TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
        MPI_Waitall(3, receives, MPI_STATUSES_IGNORE);
        result = other == 1 - rank;
        for (int i = 0; i < 3; i++) {
            result &= got[i] == 10 * (1 - rank) + i;
            MPI_Request_free(&sends[i]);
            MPI_Request_free(&receives[i]);
        }
        """,
    "no process, and requests that are never started": r"""
        int value = 5, flag = 0;
        MPI_Request request, null = MPI_REQUEST_NULL;
        MPI_Status status;
        MPI_Psend_init(&value, 2, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
        MPI_Start(&request);
        MPI_Pready(1, request);
        MPI_Wait(&request, &status);
        MPI_Request_free(&request);
        MPI_Precv_init(&value, 2, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
        MPI_Start(&request);
        MPI_Parrived(request, 1, &flag);
        MPI_Wait(&request, &status);
        result = flag && status.MPI_SOURCE == MPI_PROC_NULL;
        MPI_Request_free(&request);
        MPI_Parrived(null, 3, &flag);
        result &= flag;
        MPI_Psend_init(&value, 1, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Request_free(&request);
        MPI_Precv_init(&value, 1, 1, MPI_INT, 1 - rank, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Parrived(request, 0, &flag);
        result &= flag;
        MPI_Request_free(&request);
        """,
    # Calls that are wrong, through the handler of their communicator.
    "errors": r"""
        int values[4] = {0}, flag, class;
        MPI_Request send, receive;
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* of MPI_Request_free */
    #define FAILS(call, of) (MPI_Error_class(call, &class), class == of)
        MPI_Psend_init(values, 2, 1, MPI_INT, 1 - rank, 5, comm, MPI_INFO_NULL, &send);
        MPI_Precv_init(values + 2, 2, 1, MPI_INT, 1 - rank, 5, comm, MPI_INFO_NULL, &receive);
        result = FAILS(MPI_Pready(0, send), MPI_ERR_REQUEST);
        MPI_Start(&send);
        MPI_Start(&receive);
        result &= FAILS(MPI_Pready(2, send), MPI_ERR_ARG);
        result &= FAILS(MPI_Pready(-1, send), MPI_ERR_ARG);
        result &= FAILS(MPI_Pready(0, receive), MPI_ERR_REQUEST);
        result &= FAILS(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
        result &= FAILS(MPI_Parrived(receive, 2, &flag), MPI_ERR_ARG);
        result &= FAILS(MPI_Request_free(&send), MPI_ERR_REQUEST);
        MPI_Pready(0, send);
        result &= FAILS(MPI_Pready(0, send), MPI_ERR_ARG);
        MPI_Pready(1, send);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        MPI_Request_free(&send);
        MPI_Request_free(&receive);
        result &= FAILS(MPI_Psend_init(values, 0, 1, MPI_INT, 0, 5, comm, MPI_INFO_NULL, &send),
                        MPI_ERR_ARG) && send == MPI_REQUEST_NULL;
        result &= FAILS(MPI_Psend_init(values, 2, 1, MPI_INT, 7, 5, comm, MPI_INFO_NULL, &send),
                        MPI_ERR_RANK);
        result &= FAILS(MPI_Psend_init(values, 2, -1, MPI_INT, 0, 5, comm, MPI_INFO_NULL, &send),
                        MPI_ERR_COUNT);
        result &= FAILS(MPI_Precv_init(values, 2, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm,
                                       MPI_INFO_NULL, &send), MPI_ERR_RANK);
        result &= FAILS(MPI_Precv_init(values, 2, 1, MPI_INT, 0, MPI_ANY_TAG, comm, MPI_INFO_NULL,
                                       &send), MPI_ERR_TAG);
        MPI_Precv_init(values, 1, 1, MPI_INT, 1 - rank, 6, comm, MPI_INFO_NULL, &receive);
        MPI_Psend_init(values + 2, 2, 1, MPI_INT, 1 - rank, 6, comm, MPI_INFO_NULL, &send);
        MPI_Start(&receive);
        MPI_Start(&send);
        MPI_Pready_range(0, 1, send);
        result &= FAILS(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        """,
}


@pytest.mark.nightly("each program on each engine", but=3)
@pytest.mark.parametrize("engine", WORDS)
@pytest.mark.parametrize("what", OTHERS)
def test_partitioned_messages(what: str, engine: str, tmp_path: Path, capfd: Captured) -> None:
    assert mpirun(*WORDS[engine], program(tmp_path, OTHERS[what]), engine=engine) == 0
    told = capfd.readouterr()
    assert told.out == "1\n" * 2, told.err


PYTHON = """
from array import array
from mpi4py import MPI

world = MPI.COMM_WORLD
to, back = (world.rank + 1) % world.size, (world.rank - 1) % world.size
data, got = array("i", [world.rank] * 6), array("i", [-1] * 6)
send = world.Psend_init([data, 3], 2, to)
receive = world.Precv_init([got, 2], 3, back, 0)
receive.Start()
send.Start()
send.Pready_list([1, 0])
while not all(receive.Parrived(part) for part in range(3)):
    pass
MPI.Prequest.Waitall([send, receive])
assert got.tolist() == [back] * 6
send.Free()
receive.Free()
print("done", flush=True)
"""


@pytest.mark.parametrize("engine", WORDS)
def test_partitioned_messages_of_python(engine: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "partitioned.py"
    path.write_text(PYTHON)
    assert mpirun(*WORDS[engine], sys.executable, str(path), engine=engine) == 0
    assert capfd.readouterr().out == "done\n" * 2
