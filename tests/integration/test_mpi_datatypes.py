"""Derived datatypes in messages and collectives of mpi4py's programs, beside numpy."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

PROGRAMS = {
    "messages of a column": """
column = MPI.DOUBLE.Create_vector(5, 1, 4).Commit()
mine = np.arange(20.0).reshape(5, 4) + 100 * rank
theirs = np.zeros((5, 4))
for send in (world.Send, world.Ssend):
    request = world.Irecv([theirs[0, 1:], 1, column], left, 1)
    send([mine, 1, column], right, 1)
    request.Wait()
    assert (theirs[:, 1] == np.arange(0, 20, 4) + 100 * left).all()
    assert (theirs[:, [0, 2, 3]] == 0).all()
MPI.Attach_buffer(bytearray(1000))
world.Bsend([mine, 1, column], right, 2)
request = world.Isend([mine, 1, column], right, 3)
column.Free()  # messages under way keep it
numbers = np.empty(5)
for tag in (2, 3):
    world.Recv(numbers, left, tag)
    assert (numbers == np.arange(0, 20, 4) + 100 * left).all()
request.Wait()
MPI.Detach_buffer()
""",
    "a receive keeps its datatype": """
every_other = MPI.INT.Create_vector(3, 1, 2).Commit()
theirs = np.zeros(5, "i")
request = world.Irecv([theirs, 1, every_other], left, 4)
every_other.Free()
world.Send(np.array([7, 8, 9], "i"), right, 4)
status = MPI.Status()
request.Wait(status)
assert theirs.tolist() == [7, 0, 8, 0, 9] and status.Get_count(MPI.INT) == 3
""",
    "persistent, matched and replaced": """
pairs = MPI.INT.Create_vector(2, 2, 3).Commit()
mine, theirs = np.empty(5, "i"), np.zeros(5, "i")
send, receive = world.Send_init([mine, 1, pairs], right, 5), world.Recv_init(
    [theirs, 1, pairs], left, 5)
pairs_again = pairs.Dup()
pairs.Free()
for turn in range(3):
    mine[:] = 10 * rank + turn
    MPI.Prequest.Startall([receive, send])
    MPI.Request.Waitall([send, receive])
    number = 10 * left + turn
    assert theirs.tolist() == [number, number, 0, number, number]
send.Free(), receive.Free()
request = world.Isend(np.arange(4, dtype="i"), right, 6)
world.Mprobe(left, 6).Recv([theirs, 1, pairs_again])
request.Wait()
assert theirs.tolist() == [0, 1, 0, 2, 3]
mine[:] = rank
world.Sendrecv_replace([mine, 1, pairs_again], right, 7, left, 7)
assert mine.tolist() == [left, left, rank, left, left]
pairs_again.Free()
""",
    "what has not come stays": """
every_other = MPI.INT.Create_vector(4, 1, 2).Commit()
theirs = np.full(8, -1, "i")
request = world.Isend(np.array([1, 2], "i"), right, 8)
status = MPI.Status()
world.Recv([theirs, 1, every_other], left, 8, status)
request.Wait()
assert theirs.tolist() == [1, -1, 2] + 5 * [-1]
assert (status.Get_count(every_other), status.Get_elements(every_other)) == (MPI.UNDEFINED, 2)
try:
    world.Send([theirs, 1, MPI.INT.Create_contiguous(2)], right)
    raise AssertionError("it was not committed")
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_TYPE
""",
    "a matrix is transposed": """
block = MPI.INT.Create_vector(2, 3, 3 * size).Create_resized(0, 12).Commit()
mine = np.arange(2 * 3 * size, dtype="i").reshape(2, 3 * size) + 1000 * rank
blocks = np.empty((size, 2, 3), "i")
world.Alltoall([mine, 1, block], [blocks, 6, MPI.INT])
for source in range(size):
    here = np.arange(6 * size).reshape(2, 3 * size)[:, 3 * rank:3 * rank + 3]
    assert (blocks[source] == here + 1000 * source).all()
back = np.zeros_like(mine)
world.Ialltoall([blocks, 6, MPI.INT], [back, 1, block]).Wait()
assert (back == mine).all()
world.Alltoall(MPI.IN_PLACE, [back, 1, block])
assert (back[:, 3 * left:3 * left + 3] == np.arange(6 * size).reshape(2, 3 * size)[
    :, 3 * rank:3 * rank + 3] + 1000 * left).all()
""",
    "each rank has a type of its own": """
types = [MPI.INT.Create_vector(other + 1, 1, 2).Commit() for other in range(size)]
mine, theirs = np.arange(40, dtype="i") + 100 * rank, np.zeros((size, 20), "i")
places, counts = [4 * other for other in range(size)], size * [1]
lines = [MPI.INT.Create_contiguous(rank + 1).Commit() for _ in range(size)]
world.Alltoallw([mine, counts, places, types],
                [theirs, counts, [80 * other for other in range(size)], lines])
for source in range(size):
    expected = 100 * source + rank + 2 * np.arange(rank + 1)
    assert (theirs[source][:rank + 1] == expected).all() and (theirs[source][rank + 1:] == 0).all()
""",
    "columns are gathered and scattered": """
column = MPI.INT.Create_vector(4, 1, size).Create_resized(0, 4).Commit()
for root in range(size):
    matrix = np.zeros((4, size), "i")
    world.Gather(np.arange(4, dtype="i") + 10 * rank, [matrix, 1, column], root)
    if rank == root:
        assert (matrix == np.arange(4)[:, None] + 10 * np.arange(size)).all()
    matrix[:, rank] = rank
    if rank == root:
        world.Gather(MPI.IN_PLACE, [matrix, 1, column], root)
        assert (matrix == np.arange(size)).all()
    else:
        world.Gather([matrix[0, rank:], 1, column], None, root)
    numbers = np.empty(4, "i")
    world.Scatter([matrix, 1, column], numbers, root)
    assert (numbers == rank).all()
matrix = np.zeros((4, size), "i")
matrix[:, rank] = rank + 1
world.Iallgather(MPI.IN_PLACE, [matrix, 1, column]).Wait()
assert (matrix == np.arange(size) + 1).all()
counts, places = [1] * size, list(range(size - 1, -1, -1))
world.Allgatherv(np.full(4, rank, "i"), [matrix, counts, places, column])
assert (matrix == np.arange(size)[::-1]).all()
world.Bcast([matrix[0, 0:], 1, column] if rank else [matrix, 1, column], 0)
""",
    "an operation on elements with gaps": """
class_of_three = MPI.INT.Create_indexed([1, 2], [0, 2]).Create_resized(0, 20).Commit()
def add(data, into, datatype):
    assert datatype == class_of_three
    ours, theirs = np.frombuffer(into, "i"), np.frombuffer(data, "i")
    for start in range(0, len(ours), 5):
        ours[start], ours[start + 2:start + 4] = (
            ours[start] + theirs[start], ours[start + 2:start + 4] + theirs[start + 2:start + 4])
operation = MPI.Op.Create(add, commute=True)
mine, sum = np.full(15, rank, "i"), np.full(15, -7, "i")
total = size * (size - 1) // 2
expected = [total, -7, total, total, -7] * 3
world.Allreduce([mine, 3, class_of_three], [sum, 3, class_of_three], operation)
assert sum.tolist() == expected
mine[1::5] = -7
mine[4::5] = -7
world.Iallreduce(MPI.IN_PLACE, [mine, 3, class_of_three], operation).Wait()
assert mine.tolist() == expected
part = np.full(5, -7, "i")
counts = [1] * size
many = np.full(5 * size, rank, "i")
world.Reduce_scatter([many, size, class_of_three], [part, 1, class_of_three], counts, operation)
assert part.tolist() == expected[:5]
""",
    "a reduction keeps its datatype": """
two = MPI.INT.Create_contiguous(2).Commit()
seen = []
def add_twos(data, into, datatype):
    seen.append(datatype.Get_extent())
    np.frombuffer(into, "i")[:] += np.frombuffer(data, "i")
operation = MPI.Op.Create(add_twos, commute=True)
deleted = []
key = MPI.Datatype.Create_keyval(delete_fn=lambda *_: deleted.append(1))
two.Set_attr(key, 1)
mine = np.full(2, rank, "i")
request = world.Iallreduce(MPI.IN_PLACE, [mine, 1, two], operation)
two.Free()
assert deleted == [1]
request.Wait()
assert mine.tolist() == 2 * [size * (size - 1) // 2] and set(seen) <= {(0, 8)}
""",
    "sizes that no message has": """
huge = MPI.BYTE.Create_contiguous(2**31 - 1).Create_contiguous(2**31 - 1).Commit()
for call in (lambda: huge.Pack_size(4, world), lambda: world.Send([mine, 3, huge], right),
             lambda: huge.Create_contiguous(2**31 - 1)):
    try:
        call()
        raise AssertionError("it was taken")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_COUNT
status = MPI.Status()
status.Set_elements(MPI.INT.Create_contiguous(2), 3)
assert status.Get_elements(MPI.INT) == 3
""",
    "what a datatype is made of": """
for made in (
    MPI.INT.Create_vector(2, 3, 4), MPI.INT.Create_hvector(2, 3, 40),
    MPI.INT.Create_indexed([1, 2], [0, 4]), MPI.INT.Create_hindexed([1, 2], [0, 40]),
    MPI.INT.Create_indexed_block(2, [0, 4]), MPI.INT.Create_hindexed_block(2, [0, 40]),
    MPI.INT.Create_subarray([4, 5], [2, 3], [1, 1]), MPI.INT.Create_resized(-4, 40),
    MPI.INT.Create_darray(4, 1, [8, 9], [MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC],
                          [MPI.DISTRIBUTE_DFLT_DARG, 2], [2, 2]),
    MPI.Datatype.Create_struct([1, 2], [0, 8], [MPI.INT, MPI.DOUBLE]),
    MPI.INT.Create_vector(2, 3, 4).Dup(),
):
    old, combiner, arguments = made.decode()
    assert combiner != "NAMED"
    again = getattr(old if old else MPI.Datatype, f"Create_{combiner.lower()}" if combiner != "DUP"
                    else "Dup")(**arguments)
    assert again.envelope == made.envelope and again.Get_extent() == made.Get_extent()
assert MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.CHAR]).extent == 16
""",
    "data for other machines": """
for kind, number, there in (
    ("i2", -2, "fffe"), ("i4", 258, "00000102"), ("f4", 1.0, "3f800000"),
    ("f8", -2.0, "c000000000000000"), ("c8", 1 + 2j, "3f80000040000000"),
    ("g", 1.5, "3fff8000" + 24 * "0"), ("g", -0.1, None),
):
    datatype = MPI.Datatype.fromcode(kind)
    mine, theirs = np.array([number, number], kind), np.zeros(2, kind)
    room = bytearray(datatype.Pack_external_size("external32", 2))
    end = datatype.Pack_external("external32", mine, room, 0)
    assert end == len(room) and (there is None or room.hex() == 2 * there), (kind, room.hex())
    assert datatype.Unpack_external("external32", room, 0, theirs) == end
    assert (mine == theirs).all()
long = np.array([-3], "l")
room = bytearray(MPI.LONG.Pack_external_size("external32", 1))
MPI.LONG.Pack_external("external32", long, room, 0)
assert room.hex() == "fffffffd"
long[0] = 0
MPI.LONG.Unpack_external("external32", room, 0, long)
assert long[0] == -3
""",
}


@pytest.mark.nightly("each program on each engine", but=2)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_derived_datatypes(size: int, tmp_path: Path) -> None:
    command = mpi_program(tmp_path, "".join(PROGRAMS.values()), MPI4PY)
    assert main(["mpirun", "-n", str(size), *command]) == 0


def test_derived_datatypes_with_losses(tmp_path: Path) -> None:
    settings = "loss=0.05 resend_delay_ns=5000000 pull_resend_delay_ns=5000000"
    words = [word for setting in settings.split() for word in ("--set", setting)]
    command = mpi_program(tmp_path, "".join(PROGRAMS.values()), MPI4PY)
    assert main(["mpirun", "-n", "3", *words, *command]) == 0
