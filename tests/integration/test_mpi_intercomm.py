"""Inter-communicators, and the ways in which communicators are made, in programs of mpi4py."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

# Even ranks on one side, odd ones on the other. `ours` and `theirs` are ranks of the world.
TWO_SIDES = """
import ctypes, os

def class_of(call, *arguments):
    try:
        call(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()

side = rank % 2
half = world.Split(side)
inter = half.Create_intercomm(0, world, 1 - side, 5)
ours, theirs = list(range(side, size, 2)), list(range(1 - side, size, 2))
mine, many = half.rank, inter.remote_size

def group_of(comm, name):
    group = getattr(comm, name)
    return list(group.Translate_ranks(list(range(group.size)), world.group))
"""
PROGRAMS = {
    "groups": """
assert inter.Is_inter() and not world.Is_inter()
assert (inter.rank, inter.size) == (mine, len(ours))
assert (group_of(inter, "group"), group_of(inter, "remote_group")) == (ours, theirs)
assert MPI.Comm.Compare(inter, half) == MPI.UNEQUAL
copy = inter.Dup()
assert MPI.Comm.Compare(inter, copy) == MPI.CONGRUENT
copy.Free()
""",
    "messages go to the other group": """
requests = [inter.isend((rank, peer), peer, tag=mine) for peer in range(many)]
status = MPI.Status()
for _ in range(many):
    said = inter.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
    assert said == (theirs[status.source], mine) and status.tag == status.source
MPI.Request.waitall(requests)
assert class_of(inter.send, None, many) == MPI.ERR_RANK
""",
    "a communicator of both": """
for high in (False, True):
    merged = inter.Merge(bool(side) != high)
    assert group_of(merged, "group") == (theirs + ours if bool(side) != high else ours + theirs)
    assert merged.allgather(rank) == group_of(merged, "group")
    merged.Free()
# If both say the same, all have the same order.
merged = inter.Merge(True)
assert merged.allgather(rank) == group_of(merged, "group")
merged.Free()
""",
    "parts of an inter-communicator": """
first = inter.Create(inter.group.Incl([0]))
assert (first == MPI.COMM_NULL) == (mine > 0)
if first:
    assert first.allgather(rank) == theirs[:1]
    first.Free()
# Ranks 0 and 1 of either side, in the order of keys; rank 4 has nobody on the other side.
part = inter.Split(mine // 2, -mine)
wanted = [[each for each in group if each // 4 == rank // 4][::-1] for group in (ours, theirs)]
assert (part == MPI.COMM_NULL) == (not wanted[1])
if part:
    assert [group_of(part, "group"), group_of(part, "remote_group")] == wanted
    part.Barrier()
    part.Free()
copy, request = inter.Idup()
request.Wait()
assert copy.allgather(rank) == theirs
copy.Free()
""",
    "collectives": """
for count in (0, 1, 5000):
    data = np.full(count, rank, "i8")
    for root_side in (0, 1):
        for root in range(len(ours) if side == root_side else many):
            root_rank = (ours if side == root_side else theirs)[root]
            if side == root_side:
                name = MPI.ROOT if mine == root else MPI.PROC_NULL
            else:
                name = root
            found = data.copy()
            inter.Bcast(found, name)
            assert (found == (root_rank if side != root_side else rank)).all()
            every = np.zeros((many, count), "i8")
            inter.Gather(data, every, name)
            inter.Gatherv(data, [every, [count] * many], name)
            assert name != MPI.ROOT or (every == np.array(theirs)[:, None]).all()
            inter.Scatter(every, found, name)
            assert (found == rank).all()
            total = np.zeros(count, "i8")
            inter.Reduce(data, total, MPI.SUM, name)
            assert (total == (sum(theirs) if name == MPI.ROOT else 0)).all()
    every = np.empty((many, count), "i8")
    inter.Allgather(data, every)
    assert (every == np.array(theirs)[:, None]).all()
    inter.Alltoall(np.arange(many * count).reshape(many, count) // max(count, 1) + 10 * rank, every)
    assert (every == 10 * np.array(theirs)[:, None] + mine).all()
    total = np.empty(count, "i8")
    inter.Allreduce(data, total)
    assert (total == sum(theirs)).all()
# Both sides have the same total: 6 parts for as many ranks as there are.
total, counts = 12, [12 // len(ours)] * len(ours)
part = np.empty(counts[mine])
inter.Reduce_scatter(np.arange(12.0) + rank, part, counts)
begin = mine * counts[0]
assert (part == many * np.arange(begin, begin + counts[0]) + sum(theirs)).all()
requests = [inter.Ibarrier()]
requests += [inter.Iallgather(np.full(1, rank), every) for every in np.empty((9, many), int)]
MPI.Request.Waitall(requests[::-1])
data = np.zeros(1)
# mpi4py does not let an Intercomm call these.
mpi = ctypes.PyDLL(os.environ["MPI4PY_LIBMPI"])
for call in (mpi.MPI_Scan, mpi.MPI_Exscan):
    assert call(None, None, 0, MPI.INT.handle, MPI.SUM.handle, inter.handle) == MPI.ERR_COMM
result = ctypes.c_int()
assert mpi.MPI_Comm_remote_size(half.handle, ctypes.byref(result)) == MPI.ERR_COMM
assert mpi.MPI_Cart_create(
    inter.handle, 0, None, None, 0, ctypes.byref(result)) == MPI.ERR_COMM
assert result.value == MPI.COMM_NULL.handle
assert class_of(inter.Bcast, data, many) == MPI.ERR_ROOT
assert class_of(inter.Allreduce, MPI.IN_PLACE, data) == MPI.ERR_BUFFER
""",
    "the other group's data in the order of its ranks": """
def in_order(one, other, datatype):
    factors = [np.frombuffer(data, float).reshape(2, 2) for data in (one, other)]
    factors[1][:] = factors[0] @ factors[1]

matrices = np.random.default_rng(1).standard_normal((size, 2, 2))
product = np.linalg.multi_dot([np.eye(2), *matrices[theirs], np.eye(2)])
operation, found = MPI.Op.Create(in_order, commute=False), np.empty((2, 2))
inter.Allreduce([matrices[rank], 4, MPI.DOUBLE], [found, 4, MPI.DOUBLE], operation)
assert np.allclose(found, product)
operation.Free()
""",
    "a barrier keeps a group until the other one has come": """
if side == 0:
    request = inter.Ibarrier()
    for _ in range(50):
        assert not request.Test()
    world.Barrier()
    request.Wait()
else:
    world.Barrier()
    inter.Ibarrier().Wait()
""",
    "only a group's ranks make its communicator": """
if side == 0:
    made = [world.Create_group(half.group, tag) for tag in (3, 0)]
    for comm in made:
        assert comm.allgather(rank) == ours
        comm.Free()
assert class_of(world.Create_group, half.group, -1) == MPI.ERR_TAG
# Collectives of the parent stay in step.
assert world.allreduce(1) == size
""",
    "copies that are made while other collectives go on": """
made = [world.Idup() for _ in range(5)]
assert world.allreduce(1) == size
MPI.Request.Waitall([request for _, request in made[::-1]])
for comm, _ in made:
    assert MPI.Comm.Compare(comm, world) == MPI.CONGRUENT
    assert comm.allgather(rank) == list(range(size))
    comm.Free()
""",
    "an error of a leader's reaches its group": """
assert class_of(half.Create_intercomm, 0, world, size) == MPI.ERR_RANK
assert class_of(half.Create_intercomm, half.size, world, 0) == MPI.ERR_RANK
""",
}
LOSSY = ["loss=0.05", "resend_delay_ns=5000000", "pull_resend_delay_ns=5000000"]


@pytest.mark.nightly("each program on each engine", but=2)
@pytest.mark.parametrize(
    ("size", "settings"), [(2, []), (3, []), (5, []), (4, ["nic=mx"]), (3, LOSSY)]
)
def test_all_programs(size: int, settings: list[str], tmp_path: Path) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    command = mpi_program(tmp_path, TWO_SIDES + "".join(PROGRAMS.values()), MPI4PY)
    assert main(["mpirun", "-n", str(size), "--timeout", f"{patient(60):g}", *words, *command]) == 0
