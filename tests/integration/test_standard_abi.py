"""Programs of MPI 5's standard ABI: messages, collective calls and datatypes.

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

POINTS = r"""
static void points(void) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int values[100], heard[100], flag, indices[100], count;
    MPI_Request requests[200];
    MPI_Status statuses[200], status = {.MPI_ERROR = 77};
    /* As many as no list on the stack has. */
    for (int i = 0; i < 100; i++) {
        values[i] = rank * 1000 + i;
        MPI_Irecv(&heard[i], 1, MPI_INT, last, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < 100; i++)
        MPI_Isend(&values[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[100 + i]);
    MPI_Waitall(200, requests, statuses);
    for (int i = 0; i < 100; i++) {
        CHECK(heard[i] == last * 1000 + i && requests[i] == MPI_REQUEST_NULL);
        CHECK(statuses[i].MPI_SOURCE == last && statuses[i].MPI_TAG == i);
        MPI_Get_count(&statuses[i], MPI_INT, &count);
        CHECK(count == 1);
    }
    MPI_Sendrecv(values, 3, MPI_INT, next, 5, heard, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                 MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == last && status.MPI_TAG == 5 && status.MPI_ERROR == 77);
    MPI_Get_elements(&status, MPI_INT, &count);
    CHECK(count == 3);
    MPI_Recv(heard, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Send(values, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
    CHECK(MPI_Testany(2, requests, indices, &flag, &status) == MPI_SUCCESS && flag);
    CHECK(indices[0] == MPI_UNDEFINED && status.MPI_SOURCE == MPI_ANY_SOURCE);
    MPI_Message message;
    MPI_Request request;
    MPI_Isend(values, 2, MPI_INT, next, 6, MPI_COMM_WORLD, &request);
    MPI_Mprobe(last, 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(heard, 2, MPI_INT, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && heard[1] == last * 1000 + 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    CHECK(message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(heard, 2, MPI_INT, &message, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Waitsome(2, requests, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED);
}
"""

COLLECTIVES = r"""
static void doubled(void *in, void *inout, int *length, MPI_Datatype *datatype) {
    CHECK(*datatype == MPI_INT);
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += 2 * ((int *)in)[i];
}

static void doubled_c(void *in, void *inout, MPI_Count *length, MPI_Datatype *datatype) {
    CHECK(*datatype == MPI_LONG);
    for (MPI_Count i = 0; i < *length; i++)
        ((long *)inout)[i] += 2 * ((long *)in)[i];
}

static void collectives(void) {
    int value = rank + 1, sum, all[64];
    MPI_Op op;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(value == size * (size + 1) / 2);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(all[i] == i);
    value = 1;
    MPI_Op_create(doubled, 1, &op);
    MPI_Reduce(&value, &sum, 1, MPI_INT, op, 0, MPI_COMM_WORLD);
    CHECK(rank != 0 || sum >= size);
    value = 3, sum = 1;
    MPI_Reduce_local(&value, &sum, 1, MPI_INT, op);
    CHECK(sum == 7);
    MPI_Op_free(&op);
    CHECK(op == MPI_OP_NULL);
    long data = 5, into = 1;
    MPI_Op_create_c(doubled_c, 0, &op);
    MPI_Reduce_local_c(&data, &into, 1, MPI_LONG, op);
    CHECK(into == 11);
    int commutes;
    MPI_Op_commutative(op, &commutes);
    CHECK(!commutes);
    MPI_Op_free(&op);
    /* A datatype for each rank, and the same as a request. */
    int counts[64], places[64], sent[64], received[64] = {0};
    MPI_Datatype types[64];
    MPI_Request request;
    for (int i = 0; i < size; i++) {
        counts[i] = 1, places[i] = (int)(i * sizeof(int)), types[i] = i % 2 ? MPI_INT : MPI_FLOAT;
        sent[i] = 100 * rank + i;
    }
    MPI_Datatype own[64];
    for (int i = 0; i < size; i++)
        own[i] = rank % 2 ? MPI_INT : MPI_FLOAT;
    MPI_Alltoallw(sent, counts, places, types, received, counts, places, own, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(received[i] == 100 * i + rank);
    memset(received, 0, sizeof received);
    MPI_Ialltoallw(sent, counts, places, types, received, counts, places, own, MPI_COMM_WORLD,
                   &request);
    memset(types, 0, sizeof types); /* erroneous to MPI, and no matter here */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++)
        CHECK(received[i] == 100 * i + rank);
    /* Neighbors of a ring. */
    const int dims[] = {size}, periods[] = {1};
    int from[2] = {rank, rank}, neighbors[2], source, dest, kind, relation;
    MPI_Aint offsets[] = {0, sizeof(int)};
    const int ones[] = {1, 1};
    MPI_Datatype two[] = {MPI_INT, MPI_INT};
    MPI_Comm ring, line;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    MPI_Topo_test(ring, &kind);
    CHECK(kind == MPI_CART);
    MPI_Comm_compare(ring, MPI_COMM_WORLD, &relation);
    CHECK(relation == MPI_CONGRUENT);
    MPI_Neighbor_alltoallw(from, ones, offsets, two, neighbors, ones, offsets, two, ring);
    CHECK(neighbors[0] == (rank + size - 1) % size && neighbors[1] == (rank + 1) % size);
    MPI_Neighbor_alltoallw_init(from, ones, offsets, two, neighbors, ones, offsets, two, ring,
                                MPI_INFO_NULL, &request);
    memset(neighbors, 0, sizeof neighbors);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && neighbors[1] == (rank + 1) % size);
    MPI_Comm_free(&ring);
    CHECK(ring == MPI_COMM_NULL);
    const int ends[] = {0};
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, ends, 0, &line);
    MPI_Cart_shift(line, 0, 1, &source, &dest);
    CHECK(rank != 0 || source == MPI_PROC_NULL);
    CHECK(rank != size - 1 || dest == MPI_PROC_NULL);
    MPI_Comm_free(&line);
    /* No weights, in both directions. */
    MPI_Comm graph;
    int next = (rank + 1) % size, last = (rank + size - 1) % size, in, out, weighted;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &last, MPI_UNWEIGHTED, 1, &next,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
    CHECK(in == 1 && out == 1 && !weighted);
    MPI_Dist_graph_neighbors(graph, 1, &source, MPI_UNWEIGHTED, 1, &dest, MPI_UNWEIGHTED);
    CHECK(source == last && dest == next);
    MPI_Neighbor_alltoallw(from, ones, offsets, two, neighbors, ones, offsets, two, graph);
    CHECK(neighbors[0] == last);
    MPI_Comm_free(&graph);
    MPI_Group group, mine;
    int ranks[] = {0, MPI_PROC_NULL}, others[2];
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_group(MPI_COMM_SELF, &mine);
    MPI_Group_translate_ranks(group, 2, ranks, mine, others);
    CHECK(others[0] == (rank == 0 ? 0 : MPI_UNDEFINED) && others[1] == MPI_PROC_NULL);
    MPI_Group_compare(group, mine, &relation);
    CHECK(relation == (size == 1 ? MPI_IDENT : MPI_UNEQUAL));
    MPI_Group_free(&group), MPI_Group_free(&mine);
    CHECK(mine == MPI_GROUP_NULL);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    CHECK(node != MPI_COMM_NULL);
    MPI_Comm_free(&node);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &node);
    CHECK((node == MPI_COMM_NULL) == (rank == 0));
    if (rank != 0)
        MPI_Comm_free(&node);
}
"""

DATATYPES = r"""
static void datatypes(void) {
    int lengths[] = {1, 2}, integers[20], combiner, ni, na, nd;
    MPI_Aint places[] = {0, 8}, addresses[4];
    MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE}, made, found[4];
    MPI_Type_create_struct(2, lengths, places, parts, &made);
    MPI_Type_commit(&made);
    MPI_Type_get_envelope(made, &ni, &na, &nd, &combiner);
    CHECK(combiner == MPI_COMBINER_STRUCT && ni == 3 && na == 2 && nd == 2);
    MPI_Type_get_contents(made, 20, 4, 4, integers, addresses, found);
    CHECK(found[0] == MPI_INT && found[1] == MPI_DOUBLE && integers[2] == 2);
    struct { int a; double b[2]; } pair = {rank, {rank, 1}}, other;
    MPI_Sendrecv(&pair, 1, made, rank, 1, &other, 1, made, rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK(other.a == rank && other.b[1] == 1);
    MPI_Type_free(&made);
    CHECK(made == MPI_DATATYPE_NULL);
    const int sizes[] = {4, 4}, parts_of[] = {2, 2}, starts[] = {1, 1};
    MPI_Type_create_subarray(2, sizes, parts_of, starts, MPI_ORDER_FORTRAN, MPI_BYTE, &made);
    MPI_Type_get_contents(made, 20, 4, 4, integers, addresses, found);
    CHECK(integers[7] == MPI_ORDER_FORTRAN && found[0] == MPI_BYTE);
    MPI_Type_free(&made);
    const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    const int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 1}, processes[] = {2, 2};
    MPI_Type_create_darray(4, 0, 2, sizes, kinds, arguments, processes, MPI_ORDER_C, MPI_INT,
                           &made);
    MPI_Type_get_envelope(made, &ni, &na, &nd, &combiner);
    CHECK(combiner == MPI_COMBINER_DARRAY && ni == 12);
    MPI_Type_get_contents(made, 20, 4, 4, integers, addresses, found);
    CHECK(integers[5] == MPI_DISTRIBUTE_BLOCK && integers[6] == MPI_DISTRIBUTE_CYCLIC);
    CHECK(integers[7] == MPI_DISTRIBUTE_DFLT_DARG && integers[8] == 1);
    CHECK(integers[11] == MPI_ORDER_C);
    MPI_Type_free(&made);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &made);
    int same;
    MPI_Type_size(made, &same);
    CHECK(same == 8);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 2, &made);
    CHECK(made == MPI_REAL2);
    MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 4, &made);
    CHECK(made == MPI_COMPLEX4);
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Type_get_name(MPI_DOUBLE, name, &ni);
    CHECK(strcmp(name, "MPI_DOUBLE") == 0);
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &made);
    CHECK(made == MPI_DOUBLE_INT);
    CHECK(MPI_Type_fromint(MPI_Type_toint(MPI_INT)) == MPI_INT);
    CHECK(MPI_Type_toint(MPI_INT) == (int)(intptr_t)MPI_INT);
}
"""


@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_messages_and_their_datatypes(tmp_path: Path, capfd: Captured, engine: str) -> None:
    program = standard_program(tmp_path, POINTS + DATATYPES, "points(); datatypes();")
    assert mpirun("-n", "2", program, engine=engine) == 0
    assert capfd.readouterr().out == "all well\n"


def test_collective_calls(tmp_path: Path, capfd: Captured) -> None:
    program = standard_program(tmp_path, COLLECTIVES, "collectives();")
    assert mpirun("-n", "3", program) == 0
    assert capfd.readouterr().out == "all well\n"
