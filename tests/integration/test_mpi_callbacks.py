"""Functions of a program's that MPI calls, which may call MPI again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

PROGRAMS = {
    "an error handler is called with the communicator and the error": """
seen = []

def note(comm, code):
    # It may call MPI, also what waits.
    assert comm.sendrecv(comm.rank, dest=(comm.rank + 1) % size) == (comm.rank - 1) % size
    seen.append((comm.handle, MPI.Get_error_class(code)))

def class_of(call, *arguments):
    try:
        call(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()

comm = world.Dup()
handler = MPI.Comm.Create_errhandler(note)
comm.Set_errhandler(handler)
assert comm.Get_errhandler() == handler
assert class_of(comm.Send, np.zeros(1), size) == MPI.ERR_RANK
comm.Call_errhandler(MPI.ERR_TOPOLOGY)
assert seen == [(comm.handle, MPI.ERR_RANK), (comm.handle, MPI.ERR_TOPOLOGY)]
""",
    "handlers that nobody has make room for others": """
import ctypes, os
mpi = ctypes.PyDLL(os.environ["MPI4PY_LIBMPI"])  # mpi4py makes 32 of them at most
handler = ctypes.c_int()
for _ in range(5000):
    assert mpi.MPI_Comm_create_errhandler(mpi.MPI_Finalize, ctypes.byref(handler)) == 0
    comm = MPI.COMM_SELF.Dup()
    assert mpi.MPI_Comm_set_errhandler(comm.handle, handler) == 0
    assert mpi.MPI_Errhandler_free(ctypes.byref(handler)) == 0
    comm.Free()
""",
    "attributes are copied, and the newest is deleted first": """
seen = []

def copy(comm, key, value):
    seen.append(("copy", value))
    return value + 10 if value < 3 else NotImplemented

def delete(comm, key, value):
    comm.Barrier()
    seen.append(("delete", value))

comm = world.Dup()
keys = [MPI.Comm.Create_keyval(copy, delete) for _ in range(3)]
for number, key in enumerate(keys, 1):
    comm.Set_attr(key, number)
other = comm.Dup()
assert [other.Get_attr(key) for key in keys] == [11, 12, None]
comm.Set_attr(keys[0], 5)
for key in keys:
    MPI.Comm.Free_keyval(key)  # the attributes stay
comm.Free()
assert sorted(seen[:3]) == [("copy", 1), ("copy", 2), ("copy", 3)]
assert seen[3:] == [("delete", value) for value in (1, 5, 3, 2)]
other.Free()
assert seen[-2:] == [("delete", 12), ("delete", 11)]
""",
    "attributes of datatypes": """
seen = []
key = MPI.Datatype.Create_keyval(lambda kind, key, value: value + 1,
                                 lambda kind, key, value: seen.append(value))
pair = MPI.INT.Create_contiguous(2)
pair.Set_attr(key, 7)
other = pair.Dup()
assert (other.Get_attr(key), MPI.INT.Get_attr(key)) == (8, None)
pair.Free()
assert seen == [7]
other.Delete_attr(key)
assert seen == [7, 8] and other.Get_attr(key) is None
other.Free()
MPI.Datatype.Free_keyval(key)
""",
    "a key is that of one kind of objects": """
keys = [kind.Create_keyval() for kind in (MPI.Win, MPI.Datatype)]
for key in (*keys, MPI.TAG_UB):
    try:
        world.Set_attr(key, 1)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_KEYVAL
    else:
        raise AssertionError("not a key of communicators")
MPI.Win.Free_keyval(keys[0]), MPI.Datatype.Free_keyval(keys[1])
""",
    "a generalized request": """
seen = []

def query(status):
    # It may call MPI, also what waits.
    assert world.sendrecv(rank, right, 6, None, left, 6) == left
    status.Set_source(5)
    seen.append("query")

def free():
    assert world.sendrecv(rank, right, 7, None, left, 7) == left
    seen.append("free")

def start():
    return MPI.Grequest.Start(query, free, lambda complete: seen.append(("cancel", complete)))

request, status = start(), MPI.Status()
assert not request.Test()
request.Cancel()
request.Complete()
request.Cancel()
assert seen == [("cancel", False), ("cancel", True)]
assert request.Get_status(status) and status.source == 5 and seen.pop() == "query"
assert request.Test(status) and status.source == 5 and seen[2:] == ["query", "free"]

seen.clear()
requests = [world.Irecv(np.empty(1), left, 8), start(), world.Isend(np.empty(1), right, 8)]
assert not MPI.Request.Testall(requests)
MPI.Grequest.fromhandle(requests[1].handle).Complete()
statuses = [MPI.Status() for _ in requests]
MPI.Request.Waitall(requests, statuses)
assert [status.source for status in statuses[:2]] == [left, 5] and seen == ["query", "free"]

# One that nobody waits for: it is freed when both have been done.
seen.clear()
for first in ("Free", "Complete"):
    request = start()
    other = MPI.Grequest.fromhandle(request.handle)
    getattr(request, first)()
    assert seen == []
    getattr(other, {"Free": "Complete", "Complete": "Free"}[first])()
    assert seen.pop() == "free" and seen == []
""",
    "a thread completes what another one waits for": """
import threading
requests = [MPI.Grequest.Start() for _ in range(200)]
begun = [threading.Event() for _ in requests]

def complete():
    for event, request in zip(begun, requests):
        event.wait()
        MPI.Grequest.fromhandle(request.handle).Complete()

thread = threading.Thread(target=complete)
thread.start()
for event, request in zip(begun, requests):
    event.set()
    MPI.Request.fromhandle(request.handle).Wait()
thread.join()
""",
    "what is no open file has a handler": """
seen = []
handler = MPI.File.Create_errhandler(lambda file, code: seen.append((bool(file), code)))
assert MPI.FILE_NULL.Get_errhandler() == MPI.ERRORS_RETURN
MPI.FILE_NULL.Set_errhandler(handler)
MPI.FILE_NULL.Call_errhandler(MPI.ERR_IO)
assert seen == [(False, MPI.ERR_IO)]
try:
    world.Set_errhandler(handler)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_ARG
else:
    raise AssertionError("it is for files")
MPI.FILE_NULL.Set_errhandler(MPI.ERRORS_RETURN)
MPI.Win.Create_errhandler(print).Free()
""",
    "error codes of one's own": """
before = world.Get_attr(MPI.LASTUSEDCODE)
kind = MPI.Add_error_class()
code = MPI.Add_error_code(kind)
assert before < kind < code == world.Get_attr(MPI.LASTUSEDCODE)
assert MPI.Get_error_string(code) == ""
MPI.Add_error_string(code, "the pump is dry")
assert (MPI.Get_error_class(kind), MPI.Get_error_class(code)) == (kind, kind)
assert (MPI.Get_error_string(kind), MPI.Get_error_string(code)) == ("", "the pump is dry")
assert MPI.Get_error_class(MPI.Add_error_code(MPI.ERR_RANK)) == MPI.ERR_RANK
for wrong in (lambda: MPI.Add_error_code(code), lambda: MPI.Add_error_string(MPI.ERR_RANK, "")):
    try:
        wrong()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_ARG
    else:
        raise AssertionError("not of the program's")
""",
}


@pytest.mark.parametrize(("size", "wait"), [(1, "spin-block"), (3, "spin-block"), (2, "block")])
def test_all_programs(size: int, wait: str, tmp_path: Path) -> None:
    program = mpi_program(tmp_path, "".join(PROGRAMS.values()), MPI4PY)
    words = ["--timeout", f"{patient(60):g}", "--set", f"wait={wait}"]
    assert main(["mpirun", "-n", str(size), *words, *program]) == 0


def test_a_communicator_keeps_its_error_handler_and_gives_it_to_those_made_from_it(
    tmp_path: Path,
) -> None:
    text = """
        seen = []
        comm = world.Dup()
        handler = MPI.Comm.Create_errhandler(lambda comm, code: seen.append(comm.handle))
        comm.Set_errhandler(handler)
        handler.Free()
        children = [comm, comm.Dup(), comm.Split(0), comm.Create(comm.group)]
        for child in children:
            child.Call_errhandler(MPI.ERR_OTHER)
        assert seen == [child.handle for child in children]
        world.Call_errhandler(MPI.ERR_OTHER)
        print("never")
        """
    # Otherwise mpi4py lets each new communicator return its errors.
    head = 'import mpi4py\nmpi4py.rc.errors = "default"\n' + MPI4PY
    done = subprocess.run(
        [sys.executable, "-m", "shrimpmx", "mpirun", "-n", "2", *mpi_program(tmp_path, text, head)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert ": MPI_Comm_call_errhandler: MPI_ERR_OTHER: the partner does not answer" in done.stderr
