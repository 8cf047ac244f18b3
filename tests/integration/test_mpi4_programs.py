"""MPI 4's calls in programs of C: persistent collectives, large counts, small calls, tools, and
what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiled import compiled, mpirun

from shrimpmx.mpi import library

Captured = pytest.CaptureFixture[str]
pytestmark = pytest.mark.skipif(
    not library.interpreter(), reason="this Python has no shared library"
)

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
DECLARATIONS
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    STATEMENTS
    return MPI_Finalize();
}
"""


def program(directory: Path, statements: str, declarations: str = "") -> str:
    """The path of one whose main has these statements, between MPI_Init and MPI_Finalize."""
    text = PROGRAM.replace("DECLARATIONS", declarations).replace("STATEMENTS", statements)
    return compiled(directory, text)


# Every persistent collective beside its blocking form. Each rank starts them in an order of its
# own, with other collectives among them, five times each.
PERSISTENT = r"""
    enum { KINDS = 22, ROOM = 64, ROUNDS = 5 };
    static int in[ROOM], p[KINDS][ROOM], b[KINDS][ROOM];
    int counts[8], places[8], bytes[8], ring_size = size, periodic = 1, sum, one = 1, wrong = 0;
    int two[2] = {2, 2}, places2[2] = {0, 3};
    MPI_Aint far[2] = {0, 12};
    MPI_Datatype types[8];
    MPI_Request all[KINDS], other;
    MPI_Comm world = MPI_COMM_WORLD, ring;
    MPI_Info none = MPI_INFO_NULL;
    for (int i = 0; i < size; i++) {
        counts[i] = i + 1; places[i] = 2 * i * i; bytes[i] = 4 * places[i]; types[i] = MPI_INT;
    }
    const int own = rank + 1;
    MPI_Cart_create(world, 1, &ring_size, &periodic, 0, &ring);
#define INT MPI_INT
#define BOTH(n, name, ...) \
    if (describes) MPI_##name##_init(__VA_ARGS__, none, &all[n]); else MPI_##name(__VA_ARGS__);
#define EACH(way, x) do { const int describes = way; \
    BOTH(0, Barrier, world) \
    BOTH(1, Bcast, x[1], 5, INT, 1, world) \
    BOTH(2, Gather, in, 3, INT, x[2], 3, INT, 0, world) \
    BOTH(3, Gatherv, in, own, INT, x[3], counts, places, INT, 1, world) \
    BOTH(4, Scatter, in, 2, INT, x[4], 2, INT, 1, world) \
    BOTH(5, Scatterv, in, counts, places, INT, x[5], own, INT, 0, world) \
    BOTH(6, Allgather, in, 3, INT, x[6], 3, INT, world) \
    BOTH(7, Allgatherv, in, own, INT, x[7], counts, places, INT, world) \
    BOTH(8, Alltoall, in, 2, INT, x[8], 2, INT, world) \
    BOTH(9, Alltoallv, in, same, places, INT, x[9], same, places, INT, world) \
    BOTH(10, Alltoallw, in, same, bytes, types, x[10], same, bytes, types, world) \
    BOTH(11, Reduce, in, x[11], 4, INT, MPI_SUM, 1, world) \
    BOTH(12, Allreduce, MPI_IN_PLACE, x[12], 4, INT, MPI_SUM, world) \
    BOTH(13, Scan, in, x[13], 4, INT, MPI_MAX, world) \
    BOTH(14, Exscan, in, x[14], 4, INT, MPI_SUM, world) \
    BOTH(15, Reduce_scatter, in, x[15], counts, INT, MPI_SUM, world) \
    BOTH(16, Reduce_scatter_block, in, x[16], 2, INT, MPI_SUM, world) \
    BOTH(17, Neighbor_allgather, in, 3, INT, x[17], 3, INT, ring) \
    BOTH(18, Neighbor_allgatherv, in, 2, INT, x[18], two, places2, INT, ring) \
    BOTH(19, Neighbor_alltoall, in, 2, INT, x[19], 2, INT, ring) \
    BOTH(20, Neighbor_alltoallv, in, two, places2, INT, x[20], two, places2, INT, ring) \
    BOTH(21, Neighbor_alltoallw, in, two, far, types, x[21], two, far, types, ring) \
} while (0)
    int same[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    EACH(1, p);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ROOM; i++)
            in[i] = 1000 * rank + 100 * round + i;
        memset(p, 0xff, sizeof p); memset(b, 0xff, sizeof b);
        memcpy(p[1], in, sizeof in); memcpy(b[1], in, sizeof in);
        memcpy(p[12], in, sizeof in); memcpy(b[12], in, sizeof in);
        for (int i = 0; i < KINDS; i++) {
            MPI_Start(&all[(7 * i + 5 * rank + round) % KINDS]);
            if (i == 9) MPI_Iallreduce(&one, &sum, 1, INT, MPI_SUM, world, &other);
            if (i == 13) MPI_Barrier(world);
        }
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        MPI_Waitall(KINDS, all, MPI_STATUSES_IGNORE);
        EACH(0, b);
        for (int i = 0; i < KINDS; i++)
            if (memcmp(p[i], b[i], sizeof p[i])) wrong |= 1 << i;
        wrong |= (sum != size) << 30;
    }
    MPI_Startall(KINDS, all);
    MPI_Waitall(KINDS, all, MPI_STATUSES_IGNORE);
    for (int i = 0; i < KINDS; i++)
        MPI_Request_free(&all[i]);
    printf("%d %x %d\n", rank, wrong, all[3] == MPI_REQUEST_NULL);
"""


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("forked", ["-n", "4", "--nodes", "2"]),
        ("simulated", ["-n", "5", "--nodes", "3", "--set", "loss=0.01"]),
    ],
    ids=["forked", "simulated"],
)
def test_persistent_collectives_start_in_any_order(
    engine: str, words: list[str], tmp_path: Path, capfd: Captured
) -> None:
    assert mpirun(*words, program(tmp_path, PERSISTENT), engine=engine) == 0
    ranks = int(words[1])
    found = sorted(capfd.readouterr().out.splitlines())
    assert found == [f"{rank} 0 1" for rank in range(ranks)]


def test_a_persistent_collective_is_refused_where_its_form_is(
    tmp_path: Path, capfd: Captured
) -> None:
    """Errors come when it is described, and one that is under way cannot be freed."""
    statements = r"""
        MPI_Request request, barrier;
        int class;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int code = MPI_Bcast_init(&size, 1, MPI_INT, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Error_class(code, &class);
        printf("%d %d", class == MPI_ERR_ROOT, request == MPI_REQUEST_NULL);
        MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier);
        MPI_Start(&barrier);
        MPI_Error_class(MPI_Start(&barrier), &class);
        printf(" %d", class == MPI_ERR_REQUEST);
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
        MPI_Request_free(&barrier);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf(" %d\n", request == MPI_REQUEST_NULL);
    """
    assert mpirun("-n", "1", program(tmp_path, statements)) == 0
    assert capfd.readouterr().out == "1 1 1 1\n"


SMALL_CALLS = {
    "exchange": r"""
        int to = (rank + 1) % size, from = (rank + size - 1) % size, got = -1, place = rank;
        MPI_Request three[3];
        MPI_Status of[3];
        MPI_Isendrecv(&rank, 1, MPI_INT, to, 3, &got, 1, MPI_INT, from, 3, MPI_COMM_WORLD, three);
        MPI_Isendrecv_replace(&place, 1, MPI_INT, to, 4, from, MPI_ANY_TAG, MPI_COMM_WORLD,
                              &three[1]);
        MPI_Isendrecv_replace(&size, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_PROC_NULL, 5,
                              MPI_COMM_WORLD, &three[2]);
        MPI_Waitall(3, three, of);
        result = got == from && place == from && of[1].MPI_TAG == 4 &&
                 of[2].MPI_SOURCE == MPI_PROC_NULL && three[0] == MPI_REQUEST_NULL;
        """,
    "a large exchange": r"""
        enum { LENGTH = 300000 };
        char *data = malloc(LENGTH), *into = malloc(LENGTH);
        int to = (rank + 1) % size, from = (rank + size - 1) % size;
        MPI_Request two[2];
        memset(data, rank, LENGTH);
        MPI_Isendrecv(data, LENGTH, MPI_BYTE, to, 3, into, LENGTH, MPI_BYTE, from, 3,
                      MPI_COMM_WORLD, two);
        MPI_Wait(two, MPI_STATUS_IGNORE);
        MPI_Isendrecv_replace(data, LENGTH, MPI_BYTE, to, 3, from, 3, MPI_COMM_WORLD, &two[1]);
        MPI_Wait(&two[1], MPI_STATUS_IGNORE);
        result = into[0] == from && into[LENGTH - 1] == from && data[LENGTH - 1] == from;
        """,
    "states of several requests": r"""
        MPI_Request of[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int got[2], which[3], count, any, flag, empty;
        MPI_Status found[3];
        MPI_Request_get_status_all(3, of, &empty, MPI_STATUSES_IGNORE);
        MPI_Irecv(&got[0], 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &of[0]);
        MPI_Irecv(&got[1], 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &of[2]);
        MPI_Request_get_status_any(3, of, &any, &flag, found);
        result = empty && !flag && any == MPI_UNDEFINED;
        MPI_Send(&rank, 1, MPI_INT, rank, 2, MPI_COMM_WORLD);
        do {
            MPI_Request_get_status_some(3, of, &count, which, found);
        } while (count == 0);
        result &= count == 1 && which[0] == 2 && found[0].MPI_TAG == 2;
        MPI_Request_get_status_any(3, of, &any, &flag, found);
        result &= flag && any == 2;
        MPI_Request_get_status_all(3, of, &flag, found);
        result &= !flag && of[2] != MPI_REQUEST_NULL;
        MPI_Send(&rank, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
        do {
            MPI_Request_get_status_all(3, of, &flag, found);
        } while (!flag);
        MPI_Waitall(3, of, found);
        result &= found[0].MPI_TAG == 1 && got[0] == rank;
        """,
    "buffers": r"""
        static char room[1000], own[400];
        char data[300] = "", into[300];
        int sizes[2];
        void *places[2];
        MPI_Request flush, got;
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        MPI_Buffer_attach(room, sizeof room);
        MPI_Comm_attach_buffer(comm, own, sizeof own);
        MPI_Irecv(into, sizeof into, MPI_BYTE, rank, 0, comm, &got);
        MPI_Bsend(data, sizeof data, MPI_BYTE, rank, 0, comm);
        MPI_Comm_iflush_buffer(comm, &flush);
        MPI_Wait(&flush, MPI_STATUS_IGNORE);
        MPI_Wait(&got, MPI_STATUS_IGNORE);
        MPI_Comm_flush_buffer(comm);
        result = MPI_Bsend(room, 500, MPI_BYTE, rank, 0, comm) != MPI_SUCCESS;
        MPI_Buffer_flush();
        MPI_Buffer_iflush(&flush);
        MPI_Wait(&flush, MPI_STATUS_IGNORE);
        MPI_Comm_detach_buffer(comm, &places[0], &sizes[0]);
        MPI_Buffer_detach(&places[1], &sizes[1]);
        result &= places[0] == own && sizes[0] == 400 && places[1] == room && sizes[1] == 1000;
        """,
    "hints": r"""
        MPI_Info info, env;
        char text[8] = "........";
        int length = 4, flag, absent, room = 0;
        MPI_Info_create(&info);
        MPI_Info_set(info, "key", "value");
        MPI_Info_get_string(info, "key", &length, text, &flag);
        result = flag && length == 6 && strcmp(text, "val") == 0;
        MPI_Info_get_string(info, "key", &room, NULL, &flag);
        MPI_Info_get_string(info, "none", &length, text, &absent);
        result &= room == 6 && !absent && length == 6;
        MPI_Info_create_env(argc, argv, &env);
        MPI_Info_free(&env);
        MPI_Get_hw_resource_info(&env);
        MPI_Info_get_nkeys(env, &room);
        result &= room == 0;
        """,
    "errors of its own": r"""
        int class, code;
        char text[MPI_MAX_ERROR_STRING];
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Add_error_class(&class);
        MPI_Add_error_code(class, &code);
        MPI_Add_error_string(code, "mine");
        result = MPI_Remove_error_class(class) != MPI_SUCCESS;
        result &= MPI_Remove_error_code(code) != MPI_SUCCESS;
        MPI_Remove_error_string(code);
        MPI_Error_string(code, text, &size);
        result &= size == 0 && MPI_Remove_error_code(code) == MPI_SUCCESS;
        result &= MPI_Remove_error_class(class) == MPI_SUCCESS;
        result &= MPI_Remove_error_class(class) != MPI_SUCCESS;
        """,
    "status and pairs": r"""
        MPI_Status status;
        MPI_F08_status other;
        MPI_Datatype pair, none;
        int tag;
        MPI_Status_set_tag(&status, 7);
        MPI_Status_set_source(&status, 2);
        MPI_Status_set_error(&status, MPI_SUCCESS);
        MPI_Status_c2f08(&status, &other);
        MPI_Status_get_tag(&other, &tag);
        MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair);
        MPI_Type_get_value_index(MPI_INT, MPI_DOUBLE, &none);
        result = tag == 7 && status.MPI_SOURCE == 2 && pair == MPI_DOUBLE_INT &&
                 none == MPI_DATATYPE_NULL;
        """,
    "a communicator with hints": r"""
        MPI_Comm comm;
        MPI_Request request;
        MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_compare(comm, MPI_COMM_WORLD, &size);
        result = size == MPI_CONGRUENT;
        """,
    "tools": r"""
        enum { ROOM = 128 };
        char name[ROOM], text[ROOM * 2];
        int provided, count = -1, before = MPI_T_cvar_get_num(&count), num, found, members[200];
        int name_room = ROOM, text_room = sizeof text, class, fixed, cvars, pvars, others;
        unsigned long long sent = 0, later = 0, packets = 0;
        MPI_Datatype type;
        MPI_T_pvar_session session;
        MPI_T_pvar_handle handle;
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
        MPI_T_pvar_get_num(&num);
        MPI_T_pvar_session_create(&session);
        result = before == MPI_T_ERR_NOT_INITIALIZED && num > 200 &&
                 MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS &&
                 MPI_T_cvar_get_index("x", &count) == MPI_T_ERR_INVALID_NAME &&
                 MPI_T_category_get_cvars(99, 0, NULL) == MPI_T_ERR_INVALID_INDEX;
        result &= MPI_T_pvar_get_index("rank_send_tiny", MPI_T_PVAR_CLASS_COUNTER, &found) == 0;
        MPI_T_pvar_get_info(found, name, &name_room, NULL, &class, &type, NULL, text, &text_room,
                            NULL, &fixed, NULL, NULL);
        result &= strcmp(name, "rank_send_tiny") == 0 && type == MPI_UNSIGNED_LONG_LONG && fixed &&
                  class == MPI_T_PVAR_CLASS_COUNTER && text_room > 10;
        MPI_T_pvar_handle_alloc(session, found, NULL, &handle, &count);
        result &= count == 1 && MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP;
        result &= MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE;
        MPI_T_pvar_read(session, handle, &sent);
        if (rank == 0)
            MPI_Send(&rank, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
        if (rank == size - 1)
            MPI_Recv(&found, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_T_pvar_read(session, handle, &later);
        result &= rank > 0 || later > sent;
        MPI_T_pvar_handle_free(session, &handle);
        result &= handle == MPI_T_PVAR_HANDLE_NULL;
        MPI_T_category_get_index("nic", &found);
        MPI_T_category_get_info(found, name, &name_room, NULL, NULL, &cvars, &pvars, &others);
        MPI_T_category_get_pvars(found, 200, members);
        result &= cvars == 0 && others == 0 && pvars > 20;
        MPI_T_pvar_get_index("nic_tx_packets", MPI_T_PVAR_CLASS_COUNTER, &found);
        result &= found >= members[0] && found <= members[pvars - 1];
        MPI_T_pvar_handle_alloc(session, found, NULL, &handle, &count);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_T_pvar_read(session, handle, &packets);
        result &= packets > 0;
        MPI_T_pvar_handle_free(session, &handle);
        MPI_T_pvar_session_free(&session);
        MPI_T_finalize();
        """,
    "an operation of large counts": r"""
        MPI_Op op;
        int values[3] = {rank, 1, 2}, sum[3];
        MPI_Op_create_c(add, 1, &op);
        MPI_Allreduce_c(values, sum, 3, MPI_INT, op, MPI_COMM_WORLD);
        MPI_Op_free(&op);
        result = sum[0] == size * (size - 1) / 2 && sum[2] == 2 * size;
        """,
    "lists of large counts": r"""
        MPI_Count counts[8], count = rank + 1;
        MPI_Aint places[8];
        int got[64];
        for (int i = 0; i < size; i++) { counts[i] = i + 1; places[i] = 2 * i * i; }
        int in[8] = {rank, rank, rank, rank, rank, rank, rank, rank};
        MPI_Gatherv_c(in, count, MPI_INT, got, rank ? (void *)1 : counts, rank ? (void *)1 : places,
                      MPI_INT, 0, MPI_COMM_WORLD);
        result = rank > 0 || (got[2] == 1 && got[3] == 1 && got[8] == 2);
        MPI_Allgatherv_c(in, count, MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
        result &= got[0] == 0 && got[places[size - 1]] == size - 1;
        MPI_Alltoallv_c(MPI_IN_PLACE, (void *)1, (void *)1, MPI_INT, got, counts, places, MPI_INT,
                        MPI_COMM_SELF);
        """,
    "large counts of datatypes": r"""
        const MPI_Count many = 5000000000;
        MPI_Datatype type, pair, two[2] = {MPI_INT, MPI_DOUBLE};
        MPI_Count lb, extent, of[2] = {1, 2}, at[2] = {0, 8}, integers, addresses, large, types;
        int combiner;
        MPI_Type_contiguous_c(many, MPI_INT, &type);
        MPI_Type_get_extent_c(type, &lb, &extent);
        MPI_Type_size_c(type, &types);
        result = extent == 4 * many && types == 4 * many;
        MPI_Type_create_struct_c(2, of, at, two, &pair);
        MPI_Type_get_envelope_c(pair, &integers, &addresses, &large, &types, &combiner);
        result &= integers == 0 && addresses == 0 && large == 5 && types == 2 &&
                  combiner == MPI_COMBINER_STRUCT;
        MPI_Count kept[5];
        MPI_Type_get_contents_c(pair, 0, 0, 5, 2, NULL, NULL, kept, two);
        result &= kept[0] == 2 && kept[2] == 2 && kept[4] == 8 && two[1] == MPI_DOUBLE;
        int size_of_it, wanted[3] = {1, 2, 3};
        MPI_Type_size(type, &size_of_it);
        result &= size_of_it == MPI_UNDEFINED;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        result &= MPI_Type_get_envelope(pair, wanted, wanted, wanted, wanted) != MPI_SUCCESS;
        MPI_Type_vector_c(1, 3000000000, 1, MPI_BYTE, &type);
        MPI_Type_size_c(type, &types);
        result &= types == 3000000000;
        MPI_Status status;
        MPI_Status_set_elements_c(&status, MPI_BYTE, many);
        MPI_Get_count(&status, MPI_BYTE, wanted);
        MPI_Get_count_c(&status, MPI_BYTE, &large);
        MPI_Get_elements(&status, MPI_BYTE, &wanted[1]);
        result &= wanted[0] == MPI_UNDEFINED && large == many && wanted[1] == MPI_UNDEFINED;
        char packed[16];
        MPI_Count position = 0;
        MPI_Pack_c(&rank, 1, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD);
        result &= position == 4;
        MPI_Pack_c(&rank, 1, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD);
        result &= position == 8;
        """,
}
ADD = r"""
void add(void *from, void *into, MPI_Count *count, MPI_Datatype *type) {
    for (MPI_Count i = 0; i < *count; i++)
        ((int *)into)[i] += ((int *)from)[i];
}
"""


@pytest.mark.nightly("each call on each engine", but=2)
@pytest.mark.parametrize("call", SMALL_CALLS)
def test_a_call_of_mpi_4(call: str, tmp_path: Path, capfd: Captured) -> None:
    statements = f'int result = 0; {{ {SMALL_CALLS[call]} }} printf("%d\\n", result);'
    uses = ADD if "add," in statements else ""
    assert mpirun("-n", "3", "--nodes", "2", program(tmp_path, statements, uses)) == 0
    assert capfd.readouterr().out == "1\n" * 3


# What is refused: a call, its class, and how a run ends that handles no errors.
REFUSED = {
    "MPI_Send_c(&size, -1, MPI_BYTE, 0, 0, MPI_COMM_WORLD)": (
        "MPI_ERR_COUNT",
        "MPI_Send: MPI_ERR_COUNT: the count is negative or too large",
    ),
    "MPI_Type_vector_c(large, large, 1, MPI_INT, &type)": (
        "MPI_ERR_COUNT",
        "MPI_Type_vector: MPI_ERR_COUNT",
    ),
    "MPI_Scatterv_c(&size, &huge, &place, MPI_INT, &size, 1, MPI_INT, 0, MPI_COMM_WORLD)": (
        "MPI_ERR_COUNT",
        "MPI_Scatterv: MPI_ERR_COUNT",
    ),
}
NEEDED = """MPI_Datatype type; MPI_Count large = 1LL << 40, huge = 1LL << 62; MPI_Aint place = 0;
    int class; (void)&type; (void)&large; (void)&huge; (void)&place; (void)&class;"""


@pytest.mark.nightly("each call on each engine", but=2)
@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused_goes_to_the_handler_of_errors(
    call: str, tmp_path: Path, capfd: Captured
) -> None:
    error_class, sentence = REFUSED[call]
    fatal = f'{NEEDED} {call}; puts("goes on");'
    assert mpirun("-n", "1", program(tmp_path, fatal)) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert f"rank 0: {sentence}" in told.err
    returned = f"""{NEEDED}
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Error_class({call}, &class);
        printf("%d\\n", class == {error_class});"""
    assert mpirun("-n", "1", program(tmp_path, returned)) == 0
    assert capfd.readouterr().out == "1\n"
