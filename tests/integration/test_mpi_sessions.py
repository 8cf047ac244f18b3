"""Sessions of MPI 4: programs in C and Python without MPI_Init, beside it, and after its end."""

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

HEAD = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int told;
static inline void note(MPI_Session *session, int *code, ...) { MPI_Error_class(*code, &told); }
static inline void note_comm(MPI_Comm *comm, int *code, ...) { MPI_Error_class(*code, &told); }
/* The communicator of a set of processes, and its group's session. */
static inline MPI_Comm of(MPI_Session session, const char *set, const char *name) {
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, set, &group);
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    return comm;
}
static inline int sum(MPI_Comm comm) {
    int one = 1, all;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
    return all;
}
"""

# A program that never calls MPI_Init: what stands before, within and between two sessions.
ALONE = (
    HEAD
    + r"""
int main(void) {
    MPI_Session session, other;
    MPI_Errhandler handler;
    MPI_Info info;
    MPI_Group group, empty;
    MPI_Comm comm = MPI_COMM_NULL, none;
    char name[MPI_MAX_PSET_NAME_LEN], value[8];
    int flag, initialized, count, length = 0, rank, size, room = sizeof value;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    MPI_Session_create_errhandler(note, &handler);
    int ok = MPI_Session_init(info, handler, &session) == MPI_SUCCESS;
    MPI_Info_free(&info);
    MPI_Initialized(&initialized);
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL);
    ok &= !initialized && count == 2 && length == sizeof "mpi://WORLD";
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name);
    ok &= strcmp(name, "mpi://WORLD") == 0;
    length = 5;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1, &length, name);
    ok &= strcmp(name, "mpi:") == 0 && length == sizeof "mpi://SELF";
    MPI_Session_get_pset_info(session, "mpi://WORLD", &info);
    MPI_Info_get_string(info, "mpi_size", &room, value, &flag);
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &info);
    MPI_Info_get_nkeys(info, &count);
    MPI_Info_free(&info);
    ok &= flag && count == 1;
    for (int round = 0; round < 2; round++) {
        comm = of(session, "mpi://WORLD", "round");
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        ok &= sum(comm) == size && atoi(value) == size;
        MPI_Comm_free(&comm);
    }
    comm = of(session, "mpi://SELF", "self");
    ok &= sum(comm) == 1;
    MPI_Comm_free(&comm);

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other);
    MPI_Group_from_session_pset(session, "mpi://NONE", &group);
    ok &= told == MPI_ERR_ARG && group == MPI_GROUP_NULL;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    told = 0;
    MPI_Group_incl(group, 1, &size, &empty);
    ok &= told == MPI_ERR_RANK;
    MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none);
    ok &= none == MPI_COMM_NULL;
    MPI_Errhandler of_comm;
    MPI_Comm_create_errhandler(note_comm, &of_comm);
    MPI_Group_excl(group, 1, &rank, &empty);
    told = 0;
    MPI_Comm_create_from_group(empty, "x", MPI_INFO_NULL, of_comm, &none);
    ok &= none == MPI_COMM_NULL && (size == 1 || told == MPI_ERR_GROUP);
    told = 0;
    MPI_Session_call_errhandler(session, MPI_ERR_TAG);
    ok &= told == MPI_ERR_TAG;
    MPI_Session_finalize(&session);
    MPI_Session_finalize(&other);
    MPI_Errhandler_free(&handler);
    ok &= session == MPI_SESSION_NULL;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    comm = of(session, "mpi://WORLD", "again");
    ok &= sum(comm) == size;
    MPI_Comm_disconnect(&comm);
    MPI_Session_finalize(&session);
    printf("%d of %d: %d\n", rank, size, ok);
}
"""
)

# A session that outlives the others' world, and one after its end.
BESIDE = (
    HEAD
    + r"""
int main(int argc, char **argv) {
    MPI_Session before, after;
    MPI_Comm comm;
    int ok, begun, ended, rank, size;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &before);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ok = sum(MPI_COMM_WORLD) == size;
    comm = of(before, "mpi://WORLD", "beside");
    if (OUTLIVES) {
        MPI_Finalize();
        ok &= sum(comm) == size;
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&before);
    } else {
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&before);
        ok &= sum(MPI_COMM_WORLD) == size;
        MPI_Finalize();
    }
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    ok &= begun && ended;
    for (int round = 0; round < 2 && rank < 2; round++) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &after);
        comm = of(after, "mpi://SELF", "after");
        ok &= sum(comm) == 1;
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&after);
    }
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &after);
    comm = of(after, "mpi://WORLD", "after all");
    ok &= sum(comm) == size;
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&after);
    printf("%d of %d: %d\n", rank, size, ok);
}
"""
)

# Two groups that meet, and the buffer of a session.
GROUPS = (
    HEAD
    + r"""
int main(void) {
    MPI_Session session;
    MPI_Group all, mine, others;
    MPI_Comm inter, comm;
    int rank, size, remote, ok, half[1][3], got = -1;
    static char room[1000];
    void *place;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_rank(all, &rank);
    MPI_Group_size(all, &size);
    half[0][0] = rank % 2; half[0][1] = size - 1; half[0][2] = 2;
    MPI_Group_range_incl(all, 1, half, &mine);
    MPI_Group_difference(all, mine, &others);
    MPI_Intercomm_create_from_groups(mine, 0, others, 0, "halves", MPI_INFO_NULL,
                                     MPI_ERRORS_ARE_FATAL, &inter);
    MPI_Comm_remote_size(inter, &remote);
    ok = remote == (rank % 2 ? (size + 1) / 2 : size / 2) && sum(inter) == remote;
    MPI_Comm_create_from_group(mine, rank % 2 ? "odd" : "even", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    ok &= sum(comm) == size - remote;
    MPI_Session_attach_buffer(session, room, sizeof room);
    MPI_Comm_rank(comm, &rank);
    MPI_Bsend(&rank, 1, MPI_INT, rank, 3, comm);
    MPI_Recv(&got, 1, MPI_INT, rank, 3, comm, MPI_STATUS_IGNORE);
    MPI_Session_flush_buffer(session);
    MPI_Session_detach_buffer(session, &place, &size);
    ok &= got == rank && place == room && size == sizeof room;
    printf("%d\n", ok);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}
"""
)
WORDS = {
    "forked": ["-n", "3", "--nodes", "2"],
    "simulated": ["-n", "4", "--nodes", "2", "--set", "loss=0.01"],
}


def lines_of(ranks: int) -> list[str]:
    return [f"{rank} of {ranks}: 1" for rank in range(ranks)]


@pytest.mark.nightly("each program on each engine", but=3)
@pytest.mark.parametrize("engine", WORDS)
@pytest.mark.parametrize(
    "text",
    [
        ALONE,
        BESIDE.replace("OUTLIVES", "0"),
        BESIDE.replace("OUTLIVES", "1"),
    ],
    ids=["alone", "before the end of the world", "after it"],
)
def test_sessions(text: str, engine: str, tmp_path: Path, capfd: Captured) -> None:
    words = WORDS[engine]
    assert mpirun(*words, compiled(tmp_path, text), engine=engine) == 0
    told = capfd.readouterr()
    assert sorted(told.out.splitlines()) == lines_of(int(words[1])), told.err


@pytest.mark.parametrize("engine", WORDS)
def test_communicators_of_groups_alone(engine: str, tmp_path: Path, capfd: Captured) -> None:
    words = WORDS[engine]
    assert mpirun(*words, compiled(tmp_path, GROUPS), engine=engine) == 0
    assert capfd.readouterr().out == "1\n" * int(words[1])


# Ranks without MPI_Init start others, which have sessions beside MPI_Init, and after its end.
SPAWNING = (
    HEAD
    + r"""
int main(int argc, char **argv) {
    const int spawned = argc > 1;
    char *words[] = {"spawned", NULL};
    MPI_Session session;
    MPI_Group mine, others, all;
    MPI_Comm own, met, inter, comm;
    if (spawned)
        MPI_Init(NULL, NULL);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    own = of(session, "mpi://WORLD", "own");
    int ok = sum(own) == (spawned ? 3 : 2);
    if (spawned)
        MPI_Comm_get_parent(&met);
    else
        MPI_Comm_spawn(argv[0], words, 3, MPI_INFO_NULL, 0, own, &met, MPI_ERRCODES_IGNORE);
    MPI_Comm_group(met, &mine);
    MPI_Comm_remote_group(met, &others);
    MPI_Intercomm_create_from_groups(mine, 1, others, 1, "between", MPI_INFO_NULL,
                                     MPI_ERRORS_ARE_FATAL, &inter);
    ok &= sum(inter) == (spawned ? 2 : 3);
    MPI_Group_union(spawned ? others : mine, spawned ? mine : others, &all);
    MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    ok &= sum(comm) == 5;
    MPI_Comm_free(&own);
    MPI_Comm_disconnect(&comm);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_disconnect(&met);
    MPI_Session_finalize(&session);
    if (spawned) {
        MPI_Finalize();
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        own = of(session, "mpi://WORLD", "again");
        ok &= sum(own) == 3;
        MPI_Comm_free(&own);
        MPI_Session_finalize(&session);
    }
    printf("%d\n", ok);
}
"""
)


def test_sessions_of_spawned_ranks(tmp_path: Path, capfd: Captured) -> None:
    program = compiled(tmp_path, SPAWNING)
    assert mpirun("-n", "2", "--slots", "5", "--nodes", "2", program) == 0
    assert capfd.readouterr().out == "1\n" * 5


# What is wrong: statements around a session, and the sentence that ends the run.
WRONG = {
    "a call after the last session": (
        "MPI_Session_finalize(&session); MPI_Comm_free(&comm);",
        "MPI_Comm_free was called after the last MPI_Session_finalize",
    ),
    "no end": ("return 0;", "ended without MPI_Finalize, or with an open session"),
    "no session": (
        "MPI_Session none = MPI_SESSION_NULL; MPI_Session_finalize(&none);",
        "MPI_Session_finalize: MPI_ERR_SESSION: there is no such session",
    ),
    "no address": (
        "MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL);",
        "MPI_Session_init: NULL stands where an address is needed",
    ),
    "no set": (
        'MPI_Group group; MPI_Group_from_session_pset(session, "mpi://X", &group);',
        "MPI_Group_from_session_pset: MPI_ERR_ARG",
    ),
}


@pytest.mark.nightly("a run for each", but=2)
@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told(what: str, tmp_path: Path, capfd: Captured) -> None:
    statements, sentence = WRONG[what]
    text = f"""{HEAD} int main(void) {{
        MPI_Session session;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Comm comm = of(session, "mpi://WORLD", "all");
        (void)comm;
        {statements}
        puts("goes on");
        }}"""
    assert mpirun("-n", "1", compiled(tmp_path, text)) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert sentence in told.err


PYTHON = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI

session = MPI.Session.Init()
group = session.Create_group("mpi://WORLD")
comm = MPI.Intracomm.Create_from_group(group, "all")
assert not MPI.Is_initialized()
print(comm.allreduce(1), session.Get_num_psets(), session.Get_nth_pset(1), flush=True)
group.Free()
comm.Free()
session.Finalize()
"""


@pytest.mark.parametrize("engine", WORDS)
def test_a_program_of_python_without_init(engine: str, tmp_path: Path, capfd: Captured) -> None:
    program = tmp_path / "sessions.py"
    program.write_text(PYTHON)
    words = WORDS[engine]
    assert mpirun(*words, sys.executable, str(program), engine=engine) == 0
    ranks = int(words[1])
    assert capfd.readouterr().out == f"{ranks} 2 mpi://SELF\n" * ranks
