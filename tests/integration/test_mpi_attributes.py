"""Attributes that change while a call goes through them, and numbers that are given out again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main
from shrimpmx.mpi.library import library_path

RACE = Path(__file__).parents[1] / "support" / "attribute_race.c"

HEAD = (
    MPI4PY
    + """
import ctypes, os, sys
mpi = ctypes.PyDLL(os.environ["MPI4PY_LIBMPI"])
"""
)

PROGRAMS = {
    "a copy function changes the attributes that are copied": """
def copy(comm, key, value):
    comm.Delete_attr(key)
    if value == 1:
        MPI.Comm.Free_keyval(key)
    elif value == 2:
        # Another communicator would take records and numbers that are given back.
        other.Set_attr(MPI.Comm.Create_keyval(), "another")
        comm.Set_attr(keys[-1], "set meanwhile")
    return value

seen = []
comm, other = world.Dup(), world.Dup()
keys = [MPI.Comm.Create_keyval(copy, lambda comm, key, value: seen.append(value))
        for _ in range(4)]
for number, key in enumerate(keys[:3], 1):
    comm.Set_attr(key, number)
twin = comm.Dup()
assert sorted(seen[:3]) == [1, 2, 3]
assert [comm.Get_attr(key) for key in keys[1:]] == [None, None, "set meanwhile"]
assert [twin.Get_attr(key) for key in keys[1:]] == [2, 3, None]
seen.clear()
twin.Free()
assert seen == [3, 2, 1]
comm.Free()
assert seen[3:] == ["set meanwhile"]
other.Free()
""",
    "a delete function deletes another attribute": """
def delete(comm, key, value):
    seen.append(value)
    if value == 3:
        comm.Delete_attr(keys[0])

seen = []
comm = world.Dup()
keys = [MPI.Comm.Create_keyval(delete_fn=delete) for _ in range(3)]
for number, key in enumerate(keys, 1):
    comm.Set_attr(key, number)
comm.Free()
assert seen == [3, 1, 2]
""",
    "copies are deleted when a later one fails": """
def fail(*arguments):
    sys.stderr = open(os.devnull, "w")  # where mpi4py prints it
    raise ValueError

for kind, thing in ((MPI.Comm, world.Dup()), (MPI.Datatype, MPI.INT.Dup())):
    seen = []
    copies = [lambda thing, key, value: value + 1, fail, lambda thing, key, value: value + 1]
    keys = [kind.Create_keyval(copy, lambda thing, key, value: seen.append(value))
            for copy in copies]
    for number, key in enumerate(keys):
        thing.Set_attr(key, 10 * number)
    try:
        thing.Dup()
    except MPI.Exception:
        # Copies are made in any order.
        assert seen in ([1], [21])
    else:
        raise AssertionError("it failed")
    thing.Free()
    assert seen[1:] == [20, 10, 0]
""",
    "freed keys that no attribute has make room for others": """
comm = world.Dup()
key, first = ctypes.c_int(), ctypes.c_int()
assert mpi.MPI_Comm_create_keyval(None, None, ctypes.byref(first), None) == 0
kept = first.value
assert mpi.MPI_Comm_set_attr(comm.handle, kept, ctypes.c_void_p(77)) == 0
assert mpi.MPI_Comm_free_keyval(ctypes.byref(first)) == 0
for _ in range(70_000):
    assert mpi.MPI_Comm_create_keyval(None, None, ctypes.byref(key), None) == 0
    assert key.value != kept
    assert mpi.MPI_Comm_free_keyval(ctypes.byref(key)) == 0
value, flag = ctypes.c_void_p(), ctypes.c_int()
assert mpi.MPI_Comm_get_attr(comm.handle, kept, ctypes.byref(value), ctypes.byref(flag)) == 0
assert (value.value, flag.value) == (77, 1)
assert mpi.MPI_Comm_delete_attr(comm.handle, kept) == 0
made = []
while kept not in made:
    assert mpi.MPI_Comm_create_keyval(None, None, ctypes.byref(key), None) == 0
    made.append(key.value)
comm.Free()
""",
    "freed operations that no collective uses make room for others": """
Function = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_long), ctypes.POINTER(ctypes.c_long),
                            ctypes.POINTER(ctypes.c_int), ctypes.c_void_p)

@Function
def add(data, into, count, kind):
    into[0] += data[0]

@Function
def wrong(data, into, count, kind):
    into[0] = -1

operation = ctypes.c_int()
for _ in range(70_000):
    assert mpi.MPI_Op_create(add, 1, ctypes.byref(operation)) == 0
    assert mpi.MPI_Op_free(ctypes.byref(operation)) == 0
if rank == 0:
    # The others' reductions are under way, and their operation is freed.
    for _ in range(size - 1):
        world.recv()
mine, total = np.array([rank + 1]), np.zeros(1, int)
assert mpi.MPI_Op_create(add, 1, ctypes.byref(operation)) == 0
request = world.Iallreduce(mine, total, MPI.Op.fromhandle(operation.value & 0xFFFFFFFF))
freed = operation.value
assert mpi.MPI_Op_free(ctypes.byref(operation)) == 0
assert mpi.MPI_Op_create(wrong, 1, ctypes.byref(operation)) == 0
if rank > 0:
    assert operation.value != freed
    world.send(None, 0)
request.Wait()
assert total[0] == size * (size + 1) // 2
""",
}


@pytest.mark.nightly("each program on each engine", but=3)
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, size: int, tmp_path: Path) -> None:
    program = mpi_program(tmp_path, PROGRAMS[name], HEAD)
    assert main(["mpirun", "-n", str(size), "--timeout", f"{patient(60):g}", *program]) == 0


def test_a_look_up_beside_changes_of_other_attributes(tmp_path: Path) -> None:
    binary, path = tmp_path / "race.so", library_path()
    subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", RACE, "-o", binary, path, f"-Wl,-rpath,{path.parent}"],
        check=True,
        timeout=patient(30),
    )
    text = f"""
        race = ctypes.CDLL({str(binary)!r}).race
        race.restype = ctypes.c_long
        comms = [world.Dup(), world.Dup()]
        assert race(*(comm.handle for comm in comms), ctypes.c_long(50_000)) == 0
        """
    program = mpi_program(tmp_path, text, HEAD)
    assert main(["mpirun", "-n", "1", "--timeout", f"{patient(60):g}", *program]) == 0
