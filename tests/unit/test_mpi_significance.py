"""Arguments that MPI says are not significant, which a call must not look at: every call that moves
data, with nonsense in each of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.mpi_worlds import COMM_WORLD, IN_PLACE, SUM, Calls, data_of, ints, run_worlds

from shrimpmx.mpi.functions import BY_NAME, FUNCTIONS

COMM_SELF, DATATYPE_NULL, INT = 0x44000001, 0x0C000000, 0x4C000405
ERRORS_RETURN = 0x54000001
PROC_NULL, ROOT, IGNORED = -1, -3, 1
ERR_BUFFER, ERR_ARG, CLASS_MASK = 1, 12, 0xFF
INFO_NULL = 0x1C000000
NO_TYPE_AT_ALL = 0x12345678
SIZE, COUNT, ROOM, TAG = 3, 2, 64, 5
# Nonsense by the kind of an argument: numbers, datatypes, addresses.
NONSENSE: list[dict[str, Any]] = [
    {"int": -7, "MPI_Datatype": DATATYPE_NULL, "MPI_Info": -7, "pointer": 0},
    {"int": 1 << 30, "MPI_Datatype": NO_TYPE_AT_ALL, "MPI_Info": -7, "pointer": 8},
]

Arguments = dict[str, Any]

DATA = {"buf", "buffer", "count", "datatype"}
SENT, RECEIVED = {"sendbuf", "sendcount", "sendtype"}, {"recvbuf", "recvcount", "recvtype"}
SENT_V = {"sendbuf", "sendcounts", "sdispls", "sendtype"}
SENT_W = {"sendbuf", "sendcounts", "sdispls", "sendtypes"}

TO = ("Send", "Bsend", "Rsend", "Ssend", "Isend", "Ibsend", "Irsend", "Issend")
TO_INIT = ("Send_init", "Bsend_init", "Rsend_init", "Ssend_init")
FROM, FROM_INIT = ("Recv", "Irecv"), ("Recv_init",)
BOTH = ("Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace")

# What the root of an intra-communicator, the others, and the root in place do not look at.
ROOTED: dict[str, tuple[set[str], set[str], set[str] | None]] = {
    "Ibcast": (set(), set(), None),
    "Igather": (set(), RECEIVED, SENT),
    "Igatherv": (set(), {"recvbuf", "recvcounts", "displs", "recvtype"}, SENT),
    "Iscatter": (set(), SENT, RECEIVED),
    "Iscatterv": (set(), {"sendbuf", "sendcounts", "displs", "sendtype"}, RECEIVED),
    "Ireduce": (set(), {"recvbuf"}, {"sendbuf"}),
}
# What a rank in place does not look at; None: it cannot be.
IN_ITS_PLACE: dict[str, set[str] | None] = {
    "Iallgather": SENT,
    "Iallgatherv": SENT,
    "Ialltoall": SENT,
    "Ialltoallv": SENT_V,
    "Ialltoallw": SENT_W,
    "Iallreduce": {"sendbuf"},
    "Iscan": {"sendbuf"},
    "Iexscan": {"sendbuf"},
    "Ireduce_scatter": {"sendbuf"},
    "Ireduce_scatter_block": {"sendbuf"},
    "Ineighbor_allgather": None,
    "Ineighbor_allgatherv": None,
    "Ineighbor_alltoall": None,
    "Ineighbor_alltoallv": None,
    "Ineighbor_alltoallw": None,
}
# A persistent collective looks at the same.
COLLECTIVE_INIT = {each.describes: each.name for each in FUNCTIONS if each.describes}
ROOTED |= {COLLECTIVE_INIT[name]: row for name, row in ROOTED.items()}
IN_ITS_PLACE |= {COLLECTIVE_INIT[name]: row for name, row in IN_ITS_PLACE.items()}
PERSISTENT = {*TO_INIT, *FROM_INIT, *COLLECTIVE_INIT.values()}
NEIGHBOR = [name for name in IN_ITS_PLACE if "eighbor" in name]
# They name data and send none.
LOCAL = ("Pack", "Unpack", "Pack_size")
NOT_IMPLEMENTED = {"Psend_init", "Precv_init"}


def kind_of(name: str, declaration: str) -> str:
    is_pointer = "*" in declaration or "[" in declaration
    return "pointer" if is_pointer else declaration.split()[0]


def nonsense(function: str, names: set[str], kind: dict[str, Any]) -> Arguments:
    """For those arguments of the function; data in place keep their mark."""
    each = BY_NAME[function]
    declared = dict(zip(each.arguments, each.declarations, strict=True))
    return {name: kind[kind_of(name, declared[name])] for name in names & set(declared)}


class Caller:
    """Calls functions of MPI with arguments that are valid, but for those that are given."""

    def __init__(self, mpi: Calls) -> None:
        self.mpi, self.rank, self.size = mpi, mpi.rank, mpi.size
        self.given = np.arange(ROOM, dtype=np.int32) + 100 * mpi.rank
        self.into = np.empty(ROOM, np.int32)
        self.keeps: list[Any] = []

    def valid(self, function: str) -> Arguments:
        by_bytes = 4 if "alltoallw" in function.lower() else 1
        places = [each * COUNT * by_bytes for each in range(SIZE)]
        wide = (ctypes.c_ssize_t * SIZE)(*places)
        displacements = wide if "eighbor_alltoallw" in function else ints(*places)
        counts, types = ints(*SIZE * [COUNT]), ints(*SIZE * [INT])
        self.keeps = [displacements, counts, types]
        return {
            **dict.fromkeys(("buf", "sendbuf", "inbuf"), data_of(self.given)),
            **dict.fromkeys(("buffer", "recvbuf", "inoutbuf", "outbuf"), data_of(self.into)),
            **dict.fromkeys(("count", "sendcount", "recvcount", "incount", "outcount"), COUNT),
            **dict.fromkeys(("sendcounts", "recvcounts"), counts),
            **dict.fromkeys(("displs", "sdispls", "rdispls"), displacements),
            **dict.fromkeys(("datatype", "sendtype", "recvtype"), INT),
            **dict.fromkeys(("sendtypes", "recvtypes"), types),
            **dict.fromkeys(("tag", "sendtag", "recvtag"), TAG),
            "dest": (self.rank + 1) % self.size, "source": (self.rank - 1) % self.size,
            "root": 0, "op": SUM, "comm": COMM_WORLD, "status": IGNORED, "request": None,
            "info": INFO_NULL,
        }  # fmt: skip

    def call(self, function: str, arguments: Arguments) -> list[int]:
        """What is in the memory that the call may write."""
        self.into[:] = np.arange(ROOM) - 1000 * (1 + self.rank)
        given = self.valid(function) | arguments
        if function in FROM + FROM_INIT and "buf" not in arguments:
            given["buf"] = data_of(self.into)
        if function in ("Ibcast", "Bcast_init") and self.rank == 0:
            self.into[:] = self.given
        request = ctypes.c_int()
        if function in PERSISTENT or function not in (*ROOTED, *IN_ITS_PLACE):
            # The others wait without a request.
            given["request"] = request
        getattr(self.mpi, function)(*(given[name] for name in BY_NAME[function].arguments))
        if function in PERSISTENT:
            self.mpi.Start(request)
        self.mpi.Wait(request if request.value else ctypes.c_int(0x2C000000), IGNORED)
        return [int(number) for number in self.into]

    def call_beside_a_partner(self, function: str, arguments: Arguments) -> list[int]:
        """The other end of a message is at the neighbours."""
        request = ctypes.c_int(0x2C000000)
        if function in TO + TO_INIT:
            values = self.valid("Irecv") | {"count": ROOM, "request": request}
            values["buf"] = data_of(np.empty(ROOM, np.int32))
            self.mpi.Irecv(*(values[name] for name in BY_NAME["Irecv"].arguments))
        if function in FROM + FROM_INIT:
            values = self.valid("Isend") | {"request": request}
            values |= {"count": 0} if arguments.get("count") == 0 else {}
            self.mpi.Isend(*(values[name] for name in BY_NAME["Isend"].arguments))
        result = self.call(function, arguments)
        self.mpi.Wait(request, IGNORED)
        return result


def check(caller: Caller, function: str, arguments: Arguments, ignored: set[str]) -> None:
    """With nonsense in those that are ignored the result is as without."""
    expected = caller.call(function, arguments)
    for kind in NONSENSE:
        given = nonsense(function, ignored, kind) | arguments
        assert caller.call(function, given) == expected, (function, given)


def test_every_call_that_names_data_is_here() -> None:
    """A new one has to be given its rows."""
    named = {
        function.name
        for function in FUNCTIONS
        if {"Datatype", "Comm"} <= {word.removeprefix("MPI_") for each in function.declarations
                                    for word in each.replace("*", " ").split()}
    }  # fmt: skip
    here = {*TO, *TO_INIT, *FROM, *FROM_INIT, *BOTH, *ROOTED, *IN_ITS_PLACE, *LOCAL}
    waiting = {function.name for function in FUNCTIONS if function.waits_for in here}
    assert named - NOT_IMPLEMENTED == here | waiting


def with_a_world(work: Callable[[Caller], None]) -> None:
    # All worlds of a process have one buffer.
    buffer = (ctypes.c_byte * 65536)()

    def life(mpi: Calls) -> bool:
        for comm in (COMM_WORLD, COMM_SELF):
            mpi.Comm_set_errhandler(comm, ERRORS_RETURN)
        if mpi.rank == 0:
            mpi.Buffer_attach(buffer, len(buffer))
        mpi.Ibarrier(COMM_WORLD, None)
        work(Caller(mpi))
        mpi.Ibarrier(COMM_WORLD, None)
        if mpi.rank == 0:
            mpi.Buffer_detach((ctypes.c_void_p * 1)(), ctypes.c_longlong())
        return True

    assert run_worlds(SIZE, life) == [True] * SIZE


def test_messages_to_and_from_nobody_have_no_data() -> None:
    def work(caller: Caller) -> None:
        for function in TO + TO_INIT:
            check(caller, function, {"dest": PROC_NULL}, DATA)
        for function in FROM + FROM_INIT:
            check(caller, function, {"source": PROC_NULL}, DATA)
        for function in BOTH:
            nobody = {"dest": PROC_NULL, "source": PROC_NULL}
            check(caller, function, nobody, DATA | SENT | RECEIVED)
        for kind in NONSENSE:
            if caller.rank == 0:
                caller.call(
                    "Sendrecv", {"source": PROC_NULL, **nonsense("Sendrecv", RECEIVED, kind)}
                )
            if caller.rank == 1:
                caller.call("Sendrecv", {"dest": PROC_NULL, **nonsense("Sendrecv", SENT, kind)})
            ignored, no_process = nonsense("Mrecv", DATA, kind), 0x6C000000
            for function in ("Mrecv", "Imrecv"):
                caller.call(function, {**ignored, "message": ctypes.c_int(no_process)})

    with_a_world(work)


def test_data_and_lists_that_count_are_not_null() -> None:
    """Of a rank alone, where all of them count; but a rank 0 gets nothing of an exclusive scan."""

    def code(mpi: Calls, function: str, given: Arguments) -> int:
        return mpi.code_of(function, *(given[name] for name in BY_NAME[function].arguments))

    def work(mpi: Calls) -> list[str]:
        caller, grid, found = Caller(mpi), ctypes.c_int(), []
        mpi.Comm_set_errhandler(COMM_WORLD, ERRORS_RETURN)
        mpi.Cart_create(COMM_WORLD, 1, ints(1), ints(1), 0, grid)
        for function in (*TO, *TO_INIT, *FROM, *FROM_INIT, *BOTH, *ROOTED, *IN_ITS_PLACE, *LOCAL):
            valid = caller.valid(function) | {
                "buf": data_of(caller.into), "size": ctypes.c_longlong(),
                "position": ctypes.c_longlong(),
                "outsize": 64, "insize": 64, "request": ctypes.c_int(),
            }  # fmt: skip
            if function in NEIGHBOR:
                valid["comm"] = grid.value
            each = BY_NAME[function]
            # Which of its data may be in place, at a root or everywhere.
            placed = (ROOTED[function][2] or set()) if function in ROOTED else set()
            placed |= IN_ITS_PLACE.get(function) or set()
            for name, declared in zip(each.arguments, each.declarations, strict=True):
                is_data = declared.removeprefix("const ").startswith("void *")
                is_list = declared.startswith("const ") and not is_data
                if (is_data or is_list) and ("xscan" not in function or name != "recvbuf"):
                    expected = ERR_BUFFER if is_data else ERR_ARG
                    missing = [None, IN_PLACE] if is_data and name not in placed else [None]
                    for none in missing:
                        ended = code(mpi, function, valid | {name: none})
                        assert ended & CLASS_MASK == expected, (function, name, none, ended)
                    found.append(name)
        return found

    assert len(run_worlds(1, work)[0]) > 80


def test_a_datatype_may_have_the_address_of_its_data() -> None:
    """Behind MPI_BOTTOM, which is NULL, in each kind of call that looks for missing data."""

    def work(mpi: Calls) -> None:
        given, into = np.arange(COUNT, dtype=np.int32), np.zeros(COUNT, np.int32)
        made = [ctypes.c_int(), ctypes.c_int()]
        for data, datatype in zip((given, into), made, strict=True):
            place = (ctypes.c_long * 1)(data.ctypes.data)
            mpi.Type_create_hindexed(1, ints(COUNT), place, INT, datatype)
            mpi.Type_commit(datatype)
        sent, received = (datatype.value for datatype in made)
        packed, position = np.zeros(COUNT, np.int32), ctypes.c_longlong(0)
        mpi.Sendrecv(None, 1, sent, 0, TAG, None, 1, received, 0, TAG, COMM_WORLD, IGNORED)
        assert list(into) == [0, 1]
        mpi.Pack(None, 1, sent, data_of(packed), 8, position, COMM_WORLD)
        assert list(packed) == [0, 1]
        into[:] = 7
        mpi.Iallgather(None, 1, sent, None, 1, received, COMM_WORLD, None)
        assert list(into) == [0, 1]

    run_worlds(1, work)


def nothing(function: str) -> Arguments:
    """No elements: of no datatype, nowhere."""
    names = BY_NAME[function].arguments
    zeros, none = ints(*SIZE * [0]), ints(*SIZE * [DATATYPE_NULL])
    values: Arguments = {
        **dict.fromkeys(("buf", "buffer", "sendbuf", "recvbuf", "inbuf", "inoutbuf", "outbuf"), 0),
        **dict.fromkeys(("count", "sendcount", "recvcount", "incount", "outcount"), 0),
        **dict.fromkeys(("datatype", "sendtype", "recvtype"), DATATYPE_NULL),
        **dict.fromkeys(("sendcounts", "recvcounts"), zeros),
        **dict.fromkeys(("sendtypes", "recvtypes"), none),
    }
    return {name: value for name, value in values.items() if name in names}


def cart(caller: Caller, parent: int, size: int) -> int:
    made = ctypes.c_int()
    caller.mpi.Cart_create(parent, 1, ints(size), ints(0), 0, made)
    return made.value


def test_no_elements_need_no_datatype_and_no_buffer() -> None:
    def work(caller: Caller) -> None:
        grid = cart(caller, COMM_WORLD, SIZE)
        for function in TO + TO_INIT + FROM + FROM_INIT + BOTH:
            caller.call_beside_a_partner(function, nothing(function))
        for function in (*ROOTED, *IN_ITS_PLACE):
            comm = {"comm": grid} if function in NEIGHBOR else {}
            caller.call(function, nothing(function) | comm)
        size, position = ctypes.c_longlong(-1), ctypes.c_longlong(0)
        caller.mpi.Pack_size(0, DATATYPE_NULL, COMM_WORLD, size)
        caller.mpi.Pack(None, 0, DATATYPE_NULL, None, 0, position, COMM_WORLD)
        caller.mpi.Unpack(None, 0, position, None, 0, DATATYPE_NULL, COMM_WORLD)
        caller.mpi.Reduce_local(None, None, 0, DATATYPE_NULL, SUM)
        assert (size.value, position.value) == (0, 0)

    with_a_world(work)


@pytest.mark.parametrize("function", ["Ialltoallw", "Ineighbor_alltoallw"])
def test_of_some_parts_there_may_be_nothing(function: str) -> None:
    """Each rank exchanges elements with the one after it alone."""

    def work(caller: Caller) -> None:
        comm = cart(caller, COMM_WORLD, SIZE) if "neighbor" in function else COMM_WORLD
        given = caller.valid(function)
        if "neighbor" in function:  # from the left, to the right
            received, sent = ([COUNT, 0], [0, COUNT])
        else:
            received = [COUNT * (each == (caller.rank - 1) % SIZE) for each in range(SIZE)]
            sent = [COUNT * (each == (caller.rank + 1) % SIZE) for each in range(SIZE)]
        into = caller.call(function, {
            "comm": comm,
            "sendcounts": ints(*sent), "recvcounts": ints(*received),
            "sendtypes": ints(*(INT if each else DATATYPE_NULL for each in sent)),
            "recvtypes": ints(*(INT if each else DATATYPE_NULL for each in received)),
        })  # fmt: skip
        left = (caller.rank - 1) % SIZE
        sent_from = COUNT * (1 if "neighbor" in function else caller.rank)
        place = 0 if "neighbor" in function else COUNT * left
        if "neighbor" not in function or caller.rank > 0:
            assert into[place : place + COUNT] == [
                100 * left + sent_from,
                100 * left + sent_from + 1,
            ]
        assert given["comm"] == COMM_WORLD

    with_a_world(work)


def test_a_collective_looks_only_at_the_arguments_of_its_role() -> None:
    def work(caller: Caller) -> None:
        for function, (at_root, elsewhere, in_place) in ROOTED.items():
            check(caller, function, {}, at_root if caller.rank == 0 else elsewhere)
            if in_place is not None:
                buffer = "recvbuf" if "recvcount" in in_place else "sendbuf"
                marked = {buffer: IN_PLACE} if caller.rank == 0 else {}
                check(caller, function, marked, in_place if caller.rank == 0 else elsewhere)
        for function, in_place in IN_ITS_PLACE.items():
            if in_place is not None:
                check(caller, function, {"sendbuf": IN_PLACE}, in_place)
        check(caller, "Iexscan", {}, {"recvbuf"} if caller.rank == 0 else set())

    with_a_world(work)


def all_arguments(function: str) -> set[str]:
    return set(BY_NAME[function].arguments) - {"comm", "root", "request", "op"}


def inter(caller: Caller) -> int:
    """Ranks 0 and 1 on the one side, 2 on the other."""
    local, made = ctypes.c_int(), ctypes.c_int()
    caller.mpi.Comm_split(COMM_WORLD, caller.rank // 2, 0, local)
    leader = 0 if caller.rank == 2 else 2
    caller.mpi.Intercomm_create(local.value, 0, COMM_WORLD, leader, TAG, made)
    return made.value


def test_groups_that_send_or_receive_look_at_nothing_else() -> None:
    def work(caller: Caller) -> None:
        comm = inter(caller)
        root = [ROOT, PROC_NULL, 0][caller.rank]
        for function, (_, elsewhere, in_place) in ROOTED.items():
            beside = in_place or set()
            if root == PROC_NULL:
                ignored = all_arguments(function)
            elif root == ROOT:
                ignored = {"sendbuf"} if "educe" in function else beside
            else:
                ignored = elsewhere
            check(caller, function, {"comm": comm, "root": root}, ignored)

    with_a_world(work)


def edges(caller: Caller, function: str) -> Iterator[tuple[str, int]]:
    """The lists of an end of a grid, at which part there is no neighbour."""
    for name in ("sendcounts", "recvcounts", "sendtypes", "recvtypes", "sdispls", "rdispls"):
        if name in BY_NAME[function].arguments and caller.rank != 1:
            yield name, 0 if caller.rank == 0 else 1


def test_where_a_grid_ends_nothing_is_looked_at() -> None:
    def work(caller: Caller) -> None:
        grid, alone = cart(caller, COMM_WORLD, SIZE), cart(caller, COMM_SELF, 1)
        for function in NEIGHBOR:
            expected = caller.call(function, {"comm": grid})
            for kind in NONSENSE:
                given = caller.valid(function) | {"comm": grid}
                for name, place in edges(caller, function):
                    given[name][place] = kind["MPI_Datatype" if "types" in name else "int"]
                assert caller.call(function, given) == expected
            single = all_arguments(function) & (SENT | RECEIVED)
            check(caller, function, {"comm": alone}, single)

    with_a_world(work)
