"""mpi4py as PyPI has it, on shrimpmx's MPI library: each program checks what it gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

PROGRAMS = {
    "pickled messages": """
for message in (None, list(range(5)), "x" * 100_000):
    assert world.sendrecv((rank, message), dest=right, source=left) == (left, message)
if size > 1:
    request = world.isend(rank, dest=right, tag=rank)
    status = MPI.Status()
    assert world.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status) == left
    assert (status.source, status.tag) == (left, left)
    request.wait()
""",
    "every length": """
for length in (0, 1, 32, 33, 128, 4096, 32_768, 32_769, 1_000_003):
    mine = np.full(length, rank, np.uint8)
    theirs = np.full(length + 7, 255, np.uint8)
    status = MPI.Status()
    world.Sendrecv(mine, right, 5, theirs, left, 5, status)
    assert status.Get_count(MPI.BYTE) == length
    assert (theirs[:length] == left).all() and (theirs[length:] == 255).all()
""",
    "order of one sender": """
requests = [world.isend(number, dest=right, tag=3) for number in range(200)]
assert [world.recv(source=left, tag=3) for _ in range(200)] == list(range(200))
MPI.Request.waitall(requests)
""",
    "requests": """
mine, theirs = np.arange(50.0) + rank, np.empty((4, 50))
receives = [world.Irecv(theirs[tag], left, tag) for tag in range(4)]
sends = [world.Isend(mine * tag, right, tag) for tag in (3, 1, 0, 2)]
seen = set()
while len(seen) < 4:
    seen.update(MPI.Request.Waitsome(receives) or ())
assert seen == set(range(4)) and MPI.Request.Waitany(receives) == MPI.UNDEFINED
MPI.Request.Waitall(sends)
assert all((theirs[tag] == tag * (np.arange(50.0) + left)).all() for tag in range(4))
assert MPI.Request.Testall(sends + receives)
never = world.Irecv(theirs[0], left, 99)
never.Cancel()
status = MPI.Status()
never.Wait(status)
assert status.Is_cancelled()
""",
    "persistent requests": """
mine, theirs = np.empty(10), np.empty(10)
send, receive = world.Send_init(mine, right, 4), world.Recv_init(theirs, left, 4)
for turn in range(30):
    mine[:] = rank + turn
    MPI.Prequest.Startall([receive, send])
    MPI.Request.Waitall([send, receive])
    assert (theirs == left + turn).all()
assert send.Test() and MPI.Request.Waitany([send, receive]) == MPI.UNDEFINED
send.Free(), receive.Free()
""",
    "buffered sends": """
MPI.Attach_buffer(bytearray(3 * (800 + MPI.BSEND_OVERHEAD)))
mine = np.arange(100.0)
for turn in range(3):
    world.Bsend(mine + turn, right, turn)
for turn in range(3):
    theirs = np.empty(100)
    world.Recv(theirs, left, turn)
    assert (theirs == mine + turn).all()
assert len(MPI.Detach_buffer()) == 3 * (800 + MPI.BSEND_OVERHEAD)
""",
    "room of buffered sends": """
MPI.Attach_buffer(bytearray(4 * (800 + MPI.BSEND_OVERHEAD)))
kept = np.zeros(5, "i")
never = world.Irecv([kept, 1, MPI.INT.Create_vector(3, 1, 2).Commit()], left, 77)
theirs = np.empty(100)
for turn in range(20):  # there is always one under way
    world.Bsend(np.full(100, turn, float), right, 4)
    if turn:
        world.Recv(theirs, left, 4)
        assert (theirs == turn - 1).all()
world.Recv(theirs, left, 4)
never.Free()  # no buffered send: the buffer does not wait for it
MPI.Detach_buffer()
world.Send(np.zeros(3, "i"), right, 77)
""",
    "probes": """
request = world.Isend(np.arange(rank + 1, dtype="i4"), right, 8)
status = MPI.Status()
world.Probe(MPI.ANY_SOURCE, 8, status)
assert (status.source, status.Get_count(MPI.INT32_T)) == (left, left + 1)
message = world.Mprobe(left, 8)
assert not world.Iprobe(left, 8)
theirs = np.empty(left + 1, "i4")
message.Recv(theirs)
assert (theirs == np.arange(left + 1)).all()
request.Wait()
""",
    "a synchronous send waits for its receive": """
request = world.Issend(np.zeros(1), right, 1)
for _ in range(20):
    assert not request.Test()
world.Barrier()
world.Recv(np.empty(1), left, 1)
request.Wait()
""",
    "nobody": """
theirs, status = np.full(3, 7.0), MPI.Status()
request = world.Irecv(theirs, MPI.PROC_NULL, 1)
assert request.Get_status(status) and status.source == MPI.PROC_NULL
request.Wait()
world.Send(theirs, MPI.PROC_NULL, 1)
world.Recv(theirs, MPI.PROC_NULL, 1, status)
assert (status.source, status.Get_count(MPI.DOUBLE)) == (MPI.PROC_NULL, 0)
assert (theirs == 7).all() and world.Iprobe(MPI.PROC_NULL)
""",
    "data that moves": """
for count in (0, 1, 7, 5000):
    for root in range(size):
        data = np.arange(count) * (root + 1) if rank == root else np.empty(count, int)
        world.Bcast(data, root)
        assert (data == np.arange(count) * (root + 1)).all()
        all_of_them = np.empty((size, count)) if rank == root else None
        world.Gather(np.full(count, rank, float), all_of_them, root)
        assert rank != root or (all_of_them == np.arange(size)[:, None]).all()
        part = np.empty(count)
        world.Scatter(all_of_them, part, root)
        assert (part == rank).all()
    found = np.empty((size, count))
    world.Allgather(np.full(count, rank, float), found)
    assert (found == np.arange(size)[:, None]).all()
    found[:] = 0
    found[rank] = rank
    world.Allgather(MPI.IN_PLACE, found)
    assert (found == np.arange(size)[:, None]).all()
    sent = np.arange(size)[:, None] * 100.0 + rank + np.zeros(count)
    world.Alltoall(sent, found)
    assert (found == rank * 100 + np.arange(size)[:, None]).all()
    world.Alltoall(MPI.IN_PLACE, sent)
    assert (sent == found).all()
counts = [number * 3 % 5 for number in range(size)]
places = np.cumsum([0, *counts[:-1]])
mine = np.full(counts[rank], rank, "i8")
found = np.empty(sum(counts), "i8")
world.Allgatherv(mine, (found, counts, places, MPI.INT64_T))
assert (found == np.repeat(np.arange(size), counts)).all()
back = np.empty(counts[rank], "i8")
world.Scatterv((found, counts, places, MPI.INT64_T), back, size - 1)
assert (back == rank).all()
to_each = np.repeat(np.arange(size) * 10 + rank, counts[rank])
from_each = np.empty(sum(counts), "i8")
world.Alltoallv((to_each, [counts[rank]] * size), (from_each, counts))
assert (from_each == np.repeat(np.arange(size) + 10 * rank, counts)).all()
""",
    "reductions": """
for kind in ("i1", "u2", "i4", "i8", "f4", "f8", "c8", "c16"):
    for count in (0, 1, 5, 3001):
        mine = (np.arange(count) % 3 + rank).astype(kind)
        every = np.stack([(np.arange(count) % 3 + other).astype(kind) for other in range(size)])
        found = np.empty(count, kind)
        world.Allreduce(mine, found)
        assert (found == every.sum(0, dtype=kind)).all()
        for root in range(size):
            world.Reduce(mine, found if rank == root else None, MPI.PROD, root)
            assert rank != root or (found == every.prod(0, dtype=kind)).all()
        if kind[0] != "c":
            world.Allreduce(mine, found, MPI.MAX)
            assert (found == every.max(0)).all() if count else True
        if kind[0] in "iu":
            world.Allreduce(mine, found, MPI.BXOR)
            assert (found == np.bitwise_xor.reduce(every)).all()
        found = mine.copy()
        world.Scan(MPI.IN_PLACE, found)
        assert (found == every[: rank + 1].sum(0, dtype=kind)).all()
        world.Exscan(mine, found)
        assert rank == 0 or (found == every[:rank].sum(0, dtype=kind)).all()
mine = np.arange(size * 3.0) + rank
part = np.empty(3)
world.Reduce_scatter_block(mine, part)
assert (part == size * np.arange(size * 3.0)[rank * 3 : rank * 3 + 3] + sum(range(size))).all()
part = np.empty(rank + 1)
total = size * (size + 1) // 2
world.Reduce_scatter(np.full(total, rank + 1.0), part, range(1, size + 1))
assert (part == total).all()
assert world.allreduce((rank * 7 % 5, rank), MPI.MAXLOC) == max(
    ((number * 7 % 5, number) for number in range(size)), key=lambda pair: (pair[0], -pair[1])
)
""",
    "an operation of one's own that does not commute": """
def in_order(one, other, datatype):
    # Matrices of 2 by 2: the first factor is the lower rank's.
    factors = [np.frombuffer(data, float).reshape(-1, 2, 2) for data in (one, other)]
    factors[1][:] = factors[0] @ factors[1]

matrices = np.random.default_rng(1).standard_normal((size, 2, 2))
product = np.linalg.multi_dot([np.eye(2), *matrices, np.eye(2)])
operation = MPI.Op.Create(in_order, commute=False)
kind = MPI.DOUBLE
found = np.empty((2, 2))
# The operation sees whole buffers: 4 numbers at a time.
world.Allreduce([matrices[rank], 4, kind], [found, 4, kind], operation)
assert np.allclose(found, product)
world.Scan([matrices[rank], 4, kind], [found, 4, kind], operation)
assert np.allclose(found, np.linalg.multi_dot([np.eye(2), *matrices[: rank + 1], np.eye(2)]))
operation.Free()
""",
    "collectives that overlap": """
found = np.empty((20, size))
requests = [world.Iallgather(np.full(1, rank + 100.0 * turn), found[turn]) for turn in range(20)]
requests.append(world.Ibarrier())
total = np.empty(1)
requests.append(world.Iallreduce(np.ones(1), total))
MPI.Request.Waitall(requests[::-1])
assert (found == np.arange(size) + 100.0 * np.arange(20)[:, None]).all() and total[0] == size
""",
    "a collective with a request beside blocking ones": """
flag = np.full(1, rank)
if rank == 0:
    request = world.Iallreduce(MPI.IN_PLACE, flag, MPI.MAX)
    world.Barrier()
else:
    world.Barrier()
    request = world.Iallreduce(MPI.IN_PLACE, flag, MPI.MAX)
request.Wait()
assert flag[0] == size - 1
""",
    "collectives go on while a rank waits for a message": """
barrier = world.Ibarrier()
if rank == 0:
    for other in range(1, size):
        world.recv(source=other, tag=12)
    barrier.Wait()
else:
    barrier.Wait()
    world.send(rank, dest=0, tag=12)
""",
    "a matched message outlives its communicator": """
copy = world.Dup()
request = copy.Isend(np.arange(5.0), right, 2)
message = copy.Mprobe(left, 2)
request.Wait()
copy.Free()
others = [world.Dup() for _ in range(3)]
theirs = np.empty(5)
message.Irecv(theirs).Wait()
assert (theirs == np.arange(5.0)).all()
for other in others:
    assert other.allreduce(1) == size
    other.Free()
""",
    "the clock": """
import time
first = time.perf_counter()
begin, second = MPI.Wtime(), time.perf_counter()
time.sleep(0.01)
third, end = time.perf_counter(), MPI.Wtime()
# What lies between readings of another clock; both are calibrated.
assert 0.99 * (third - second) <= end - begin <= 1.01 * (time.perf_counter() - first)
assert 0 < MPI.Wtick() < 1e-6
""",
    "communicators": """
halves = world.Split(rank % 2, -rank)
assert halves.allgather(rank) == list(range(rank % 2, size, 2))[::-1]
copy = world.Dup()
assert MPI.Comm.Compare(copy, world) == MPI.CONGRUENT
if size > 1:
    # Messages of one communicator are none of the other's.
    request = copy.isend("copy", dest=right, tag=1)
    second = world.isend("world", dest=right, tag=1)
    assert (world.recv(source=left, tag=1), copy.recv(source=left, tag=1)) == ("world", "copy")
    MPI.Request.waitall([request, second])
group = world.group.Excl([0])
others = world.Create(group)
assert (others == MPI.COMM_NULL) == (rank == 0)
if rank > 0:
    assert others.allreduce(1) == size - 1
    others.Free()
node = world.Split_type(MPI.COMM_TYPE_SHARED)
assert len(set(node.allgather(MPI.Get_processor_name()))) == 1
hints = MPI.Info.Create({"mpi_hw_resource_type": "mpi_shared_memory"})
for kind in (MPI.COMM_TYPE_HW_GUIDED, MPI.COMM_TYPE_RESOURCE_GUIDED):
    same = world.Split_type(kind, info=hints)
    assert MPI.Comm.Compare(same, node) in (MPI.IDENT, MPI.CONGRUENT)
    same.Free()
    assert world.Split_type(kind, info=MPI.INFO_NULL) == MPI.COMM_NULL
hints.Free()
hints = MPI.Info.Create()
part = world.Split_type(MPI.COMM_TYPE_HW_UNGUIDED, info=hints)
if node.size < size:
    assert MPI.Comm.Compare(part, node) in (MPI.IDENT, MPI.CONGRUENT)
    assert hints.Get("mpi_hw_resource_type") == "mpi_shared_memory"
    assert part.Split_type(MPI.COMM_TYPE_HW_UNGUIDED) == MPI.COMM_NULL
    part.Free()
else:
    assert part == MPI.COMM_NULL and hints.Get("mpi_hw_resource_type") is None
hints.Free()
assert world.Split(MPI.UNDEFINED) == MPI.COMM_NULL
assert MPI.COMM_SELF.allgather(rank) == [rank]
for _ in range(300):
    world.Dup().Free()
for comm in (node, copy, halves):
    comm.Free()
""",
    "communicators of two groups, one after the other": """
if size > 2:
    one, other = world.group.Incl([0, 2]), world.group.Incl([1, 2])
    made = [world.Create_group(each, 5) for each in (one, other) if each.rank != MPI.UNDEFINED]
    for comm in made:
        heard = comm.bcast(rank, 0)
        assert heard == comm.group.Translate_ranks([0], world.group)[0]
        comm.Free()
alone = world.Split(rank)
try:
    alone.Create(world.group)
    assert size == 1
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_GROUP
alone.Free()
""",
    "blocking and non-blocking collectives do not match": """
# The standard wants one order of all ranks (5.12); what mpi4py offers for Iagree does without it.
theirs = np.empty(1, int)
if rank == 0:
    request = world.Iallreduce(np.array([rank]), theirs)
    world.Barrier()
else:
    world.Barrier()
    request = world.Iallreduce(np.array([rank]), theirs)
request.Wait()
assert theirs[0] == sum(range(size))
""",
    "info and memory": """
info = MPI.Info.Create({"one": "1", "two": "x" * 1000})
copy = info.Dup()
info.Delete("one")
assert (list(copy.items()), info.Get("one"), len(info)) == (
    [("one", "1"), ("two", "x" * 1000)], None, 1
)
copy.Free(), info.Free()
world.Get_info().Free()
block = MPI.Alloc_mem(100_000)
data = np.frombuffer(block, np.uint8)
data[:] = rank
theirs = np.empty_like(data)
world.Sendrecv(data, right, 1, theirs, left, 1)
assert (theirs == left).all()
MPI.Free_mem(block)
""",
    "errors": """
def class_of(call, *arguments):
    try:
        call(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()
    return 0

data = np.zeros(4)
assert class_of(world.Send, data, size) == MPI.ERR_RANK
assert class_of(world.Send, data, 0, -5) == MPI.ERR_TAG
assert class_of(world.Send, data, right, MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) + 1) == MPI.ERR_TAG
assert class_of(MPI.COMM_SELF.Gather, data, np.zeros((1, 2))) == MPI.ERR_TRUNCATE
assert class_of(world.Bcast, data, size) == MPI.ERR_ROOT
assert class_of(world.Allreduce, data, data.copy(), MPI.BAND) == MPI.ERR_OP
world.Send(data, right)
assert class_of(world.Recv, np.zeros(3), left) == MPI.ERR_TRUNCATE
request = world.Irecv(data.copy(), left)
world.Send(data, right)
assert class_of(MPI.Request.Waitall, [request, request]) == MPI.ERR_REQUEST
world.Barrier()
""",
    "an error of several requests belongs to its communicator": """
fatal = world.Dup()
fatal.Set_errhandler(MPI.ERRORS_ARE_FATAL)
requests = [world.Irecv(bytearray(2), left, 9), fatal.Irecv(bytearray(8), left, 9)]
world.Send(bytearray(8), right, 9)
fatal.Send(bytearray(8), right, 9)
try:
    MPI.Request.Waitall(requests)
    raise AssertionError("it did not fit")
except MPI.Exception as error:
    assert error.Get_error_class() in (MPI.ERR_IN_STATUS, MPI.ERR_TRUNCATE)
fatal.Free()
""",
    "threads": """
import threading
assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
failed = []

def talk(tag):
    try:
        for number in range(100):
            assert world.sendrecv((tag, number), right, tag, None, left, tag) == (tag, number)
    except BaseException as error:
        failed.append(error)

threads = [threading.Thread(target=talk, args=(tag,)) for tag in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed, failed
""",
}


@pytest.mark.nightly("each number of ranks", but=2)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_programs(size: int, tmp_path: Path) -> None:
    assert (
        main(
            ["mpirun", "-n", str(size), *mpi_program(tmp_path, "".join(PROGRAMS.values()), MPI4PY)]
        )
        == 0
    )


# With losses each resend would take half a second, or one if it is a pull's.
LOSSY = "loss=0.05 resend_delay_ns=5000000 pull_resend_delay_ns=5000000"


@pytest.mark.nightly("each NIC", but=1)
@pytest.mark.parametrize("settings", ["nodes=1", "nic=mx", LOSSY, "wait=block", "wait=notify"])
def test_all_programs_also_over(settings: str, tmp_path: Path) -> None:
    words = ["--nodes", "1"]
    if settings != "nodes=1":
        words = [word for setting in settings.split() for word in ("--set", setting)]
    command = mpi_program(tmp_path, "".join(PROGRAMS.values()), MPI4PY)
    assert main(["mpirun", "-n", "3", *words, *command]) == 0


def test_without_mpirun_a_program_is_a_world_of_one(tmp_path: Path) -> None:
    from shrimpmx.mpi.library import library_path

    text = "assert size == 1 and world.sendrecv('me', dest=0, source=0) == 'me'\n"
    done = subprocess.run(
        mpi_program(tmp_path, text + PROGRAMS["reductions"], MPI4PY),
        env={"MPI4PY_LIBMPI": str(library_path())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_abort_ends_all_with_its_code(tmp_path: Path) -> None:
    text = "world.Abort(6) if rank == 1 else world.recv(source=left)\n"
    assert main(["mpirun", "-n", "3", *mpi_program(tmp_path, text, MPI4PY)]) == 6


def test_an_exception_ends_those_that_wait(tmp_path: Path) -> None:
    text = """
import sys
if rank == 1:
    raise KeyError("lost")
world.recv(source=left)
"""
    # mpi4py's own runner aborts all; without it the rank would wait for the others in Finalize.
    command = mpi_program(tmp_path, text, MPI4PY)
    words = [command[0], "-m", "mpi4py", command[1]]
    assert main(["mpirun", "-n", "2", *words]) == 1


def test_a_message_that_does_not_fit_into_the_heap_is_told_by_its_class(tmp_path: Path) -> None:
    text = """
message = bytearray(4_000_000)
request = world.Isend(message, right) if rank == 0 else world.Irecv(message, left)
try:
    if rank == 0:
        request.Wait()
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_NO_MEM and "heap_bytes" in str(error), error
    world.Abort(7)
"""
    small = ["--set", "memory=bounce", "--set", "heap_bytes=1048576"]
    assert main(["mpirun", "-n", "2", *small, *mpi_program(tmp_path, text, MPI4PY)]) == 7
