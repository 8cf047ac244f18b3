"""Ranks that programs of C, Python and Fortran start, and groups that meet at a port."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.compiled import compiled, mpirun
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cluster.engine.leftovers import find_leftovers
from shrimpmx.mpi import library
from shrimpmx.native.segment import list_segments

Captured = pytest.CaptureFixture[str]
needs_shared_library = pytest.mark.skipif(
    not library.interpreter(), reason="this Python has no shared library"
)


@pytest.fixture(autouse=True)
def nothing_is_left() -> object:
    yield
    assert not [name for name, owner, _ in list_segments() if owner.pid == os.getpid()]
    assert not find_leftovers()


# Is its own child: it spawns two of itself from a group of two, twice, by each call.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;
#define CHECK(it) do { if (!(it)) { wrong++; fprintf(stderr, "%d: %s\n", rank, #it); } } while (0)

static void talk(MPI_Comm inter, int high) {
    int remote, sum = 0, one = 1, all, place, value = -1, wanted;
    MPI_Comm both, child;
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == remote);
    MPI_Intercomm_merge(inter, high, &both);
    MPI_Comm_size(both, &all);
    MPI_Comm_rank(both, &place);
    CHECK(all == size + remote && place == rank + (high ? remote : 0));
    MPI_Sendrecv(&place, 1, MPI_INT, (place + 1) % all, 3, &value, 1, MPI_INT,
                 (place + all - 1) % all, 3, both, MPI_STATUS_IGNORE);
    CHECK(value == (place + all - 1) % all);
    MPI_Comm_dup(both, &child);
    /* More than a packet, between the groups. */
    char *data = malloc(200000);
    memset(data, rank, 200000);
    if (place == 0) MPI_Send(data, 200000, MPI_CHAR, all - 1, 4, child);
    if (place == all - 1) MPI_Recv(data, 200000, MPI_CHAR, 0, 4, child, MPI_STATUS_IGNORE);
    CHECK(data[199999] == (place == all - 1 ? 0 : rank));
    free(data);
    wanted = wrong;
    MPI_Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_INT, MPI_SUM, child);
    CHECK(wanted == 0);
    MPI_Comm_free(&child);
    MPI_Comm_disconnect(&both);
}

int main(int argc, char **argv) {
    int *universe, *application, there, codes[3] = {7, 7, 7}, counts[2] = {1, 2};
    char *words[] = {"child", "two words", NULL}, *commands[2] = {argv[0], argv[0]};
    char **all_words[2] = {words, words};
    MPI_Comm parent, inter;
    MPI_Info infos[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &there);
    CHECK(there && *universe == 5);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &application, &there);
    CHECK(there);
    if (parent != MPI_COMM_NULL) {
        CHECK(argc == 3 && !strcmp(argv[1], "child") && !strcmp(argv[2], "two words"));
        CHECK(*application == (size == 3 && rank > 0));
        talk(parent, 1);
        MPI_Comm_disconnect(&parent);
        MPI_Comm_get_parent(&parent);
        CHECK(parent == MPI_COMM_NULL);
        MPI_Finalize();
        return wrong != 0;
    }
    for (int turn = 0; turn < 2; turn++) {
        MPI_Comm_spawn(argv[0], words, 2, MPI_INFO_NULL, 1, MPI_COMM_WORLD, &inter, codes);
        CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
        talk(inter, 0);
        MPI_Comm_disconnect(&inter);
        CHECK(inter == MPI_COMM_NULL);
    }
    MPI_Info_create(&infos[0]);
    MPI_Info_set(infos[0], "wdir", "/");
    infos[1] = MPI_INFO_NULL;
    MPI_Comm_spawn_multiple(2, commands, all_words, counts, infos, 0, MPI_COMM_WORLD, &inter,
                            codes);
    CHECK(codes[0] == MPI_SUCCESS && codes[2] == MPI_SUCCESS);
    talk(inter, 0);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&infos[0]);
    if (rank == 0) printf("wrong: %d\n", wrong);
    MPI_Finalize();
    return wrong != 0;
}
"""


@needs_shared_library
@pytest.mark.nightly("each number of nodes", but=1)
@pytest.mark.parametrize("nodes", ["1", "2"])
def test_a_program_of_c_spawns_itself(tmp_path: Path, capfd: Captured, nodes: str) -> None:
    program = compiled(tmp_path, PROGRAM)
    words = ("-n", "2", "--slots", "5", "--nodes", nodes, "--timeout", f"{patient(60):g}")
    assert mpirun(*words, program) == 0
    assert capfd.readouterr().out == "wrong: 0\n"


KEYS_CHILD = """
import os

import mpi4py

mpi4py.rc.errors = "default"
from mpi4py import MPI

def handler(comm):
    names = "ERRORS_ARE_FATAL", "ERRORS_ABORT", "ERRORS_RETURN"
    return next(name for name in names if comm.Get_errhandler() == getattr(MPI, name))

parent = MPI.Comm.Get_parent()
handlers = {handler(comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF, parent)}
parent.gather((os.getcwd(), MPI.Get_processor_name(), handlers))
parent.Disconnect()
"""
KEYS = """
import sys

def spawned(*words, ranks=1, **keys):
    words = words or (sys.executable, sys.argv[1] + "/child.py")
    info = MPI.Info.Create(keys)
    inter = world.Spawn(words[0], args=words[1:], maxprocs=ranks, info=info)
    told = inter.gather(None, root=MPI.ROOT)
    inter.Disconnect()
    return told

directory = sys.argv[1]
assert spawned()[0][2] == {"ERRORS_ARE_FATAL"}
assert spawned(wdir=directory + "/there")[0][0] == directory + "/there"
for node in "node0", "node1":
    assert spawned(host=node)[0][1] == node
assert len(spawned("found", path=directory + "/none:" + directory)) == 1
assert [len(spawned(ranks=3, soft=soft)) for soft in ("1:2", "3,1", "0:9:2")] == [2, 3, 2]
for name in "errors_return", "errors_abort", "errors_are_fatal":
    assert spawned(mpi_initial_errhandler="mpi_" + name)[0][2] == {name.upper()}
for keys in {"host": "elsewhere"}, {"soft": "4"}:
    try:
        spawned(ranks=4, **keys)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_SPAWN
    else:
        raise AssertionError(keys)
print("done")
"""


def test_info_keys_of_a_spawn(tmp_path: Path, capfd: Captured) -> None:
    pytest.importorskip("mpi4py")
    (tmp_path / "there").mkdir()
    (tmp_path / "child.py").write_text(KEYS_CHILD)
    (tmp_path / "found").write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path}/child.py\n")
    (tmp_path / "found").chmod(0o700)
    program = mpi_program(tmp_path, KEYS, MPI4PY)
    words = ("-n", "1", "--slots", "4", "--nodes", "2", "--timeout", f"{patient(60):g}")
    assert mpirun(*words, *program, str(tmp_path)) == 0
    assert capfd.readouterr().out == "done\n"


POOL = """
    from mpi4py.futures import MPIPoolExecutor

    def square(number):
        return number * number, MPI.Get_processor_name()

    if __name__ == "__main__":
        with MPIPoolExecutor() as pool:
            found = list(pool.map(square, range(20)))
            assert pool.num_workers == 3
        print([number for number, _ in found] == [n * n for n in range(20)])
"""


def test_a_pool_of_mpi4py_spawns_its_workers(tmp_path: Path, capfd: Captured) -> None:
    pytest.importorskip("mpi4py")
    program = mpi_program(tmp_path, POOL, MPI4PY)
    assert mpirun("-n", "1", "--slots", "4", "--timeout", f"{patient(60):g}", *program) == 0
    assert capfd.readouterr().out == "True\n"


PORTS = """
    import sys

    half = world.Split(rank % 2, rank)
    if rank % 2 == 0:
        port = MPI.Open_port() if half.rank == 0 else None
        if half.rank == 0:
            MPI.Publish_name("a service", port)
        world.Barrier()
        for turn in range(2):
            inter = half.Accept(port)
            assert inter.remote_size == size // 2
            inter.send(turn, dest=half.rank)
            inter.Disconnect()
        if half.rank == 0:
            MPI.Unpublish_name("a service", port)
            MPI.Close_port(port)
    else:
        world.Barrier()
        port = MPI.Lookup_name("a service") if half.rank == 0 else None
        for turn in range(2):
            inter = half.Connect(port)
            assert inter.recv(source=half.rank) == turn
            inter.Disconnect()
    world.Barrier()
    if rank == 0:
        for call, error in (
            (lambda: MPI.Lookup_name("a service"), MPI.ERR_NAME),
            (lambda: MPI.Unpublish_name("a service", "x"), MPI.ERR_SERVICE),
            (lambda: MPI.COMM_SELF.Connect("no port"), MPI.ERR_PORT),
            (lambda: MPI.Close_port("no port"), MPI.ERR_PORT),
        ):
            try:
                call()
            except MPI.Exception as raised:
                assert raised.Get_error_class() == error, raised
            else:
                raise AssertionError(error)
    if rank < 2 and len(sys.argv) > 1:
        import socket
        ends = socket.socket(), socket.socket()
        if rank == 0:
            ends[0].bind(("127.0.0.1", 0))
            ends[0].listen()
            world.send(ends[0].getsockname(), dest=1)
            end, _ = ends[0].accept()
        else:
            end = ends[0]
            end.connect(world.recv(source=0))
        inter = MPI.Comm.Join(end.fileno())
        assert inter.remote_size == 1 and inter.sendrecv(rank, 0, source=0) == 1 - rank
        inter.Disconnect()
        for each in (*ends, end):
            each.close()
    if rank == 0:
        print("met")
"""


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_groups_meet_at_a_port(tmp_path: Path, capfd: Captured, engine: str) -> None:
    pytest.importorskip("mpi4py")
    program = mpi_program(tmp_path, PORTS, MPI4PY)
    words = ("-n", "4", "--timeout", f"{patient(60):g}")
    # A wait for a socket lets virtual time stand still.
    joins = ("join",) if engine == "forked" else ()
    assert mpirun(*words, *program, *joins, engine=engine) == 0
    assert capfd.readouterr().out == "met\n"


FORTRAN = """
program spawner
  use mpi
  integer :: code, rank, ranks, parent, inter, codes(2), total, one
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_get_parent(parent, code)
  one = 1
  if (parent == MPI_COMM_NULL) then
    call MPI_Comm_spawn('PROGRAM', MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, &
      codes, code)
    call MPI_Comm_remote_size(inter, ranks, code)
    call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, inter, code)
    print '(a, 4i2)', 'spawned', ranks, total, codes
  else
    inter = parent
    call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, inter, code)
  end if
  call MPI_Comm_disconnect(inter, code)
  call MPI_Finalize(code)
end program
"""


@needs_shared_library
@pytest.mark.skipif(not shutil.which("mpifort.mpich"), reason="needs MPICH's compiler of Fortran")
def test_a_program_of_fortran_spawns_itself(tmp_path: Path, capfd: Captured) -> None:
    source, program = tmp_path / "program.f90", tmp_path / "program"
    source.write_text(FORTRAN.replace("PROGRAM", str(program)))
    words = ["mpifort.mpich", "-ffree-line-length-none", "-w", "-o", program, source]
    subprocess.run(words, check=True, timeout=patient(60), cwd=tmp_path)
    assert mpirun("-n", "1", "--slots", "3", "--timeout", "60", str(program)) == 0
    assert capfd.readouterr().out == "spawned 2 2 0 0\n"


# What cannot be spawned: the call's arguments, the sentence, and whether mpirun says it.
REFUSALS = {
    "no slots": (f"{sys.executable!r}, args=['-c', ''], maxprocs=3", "mpirun --slots S"),
    "no program": ("'./missing', maxprocs=2", "there is no program './missing'"),
    "an exit": (f"{sys.executable!r}, args=['-c', 'raise SystemExit(4)'], maxprocs=2", "code 4"),
    "no MPI": ("'true', maxprocs=1", "without MPI_Init"),
}


@pytest.mark.nightly("each failure", but=1)
@pytest.mark.parametrize("how", REFUSALS)
def test_a_failure_to_spawn_is_an_error_of_all_that_call_it(
    tmp_path: Path, capfd: Captured, how: str
) -> None:
    pytest.importorskip("mpi4py")
    arguments, said = REFUSALS[how]
    text = f"""
        try:
            world.Spawn({arguments})
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_SPAWN, error
            if rank == 0:
                print(error)
        # The slots are free again.
        world.Spawn(sys.executable, args=["-c", CHILD], maxprocs=2).Disconnect()
        """
    head = (
        MPI4PY
        + '\nimport sys\nCHILD = """from mpi4py import MPI\nMPI.Comm.Get_parent().Disconnect()"""\n'
    )
    program = mpi_program(tmp_path, textwrap.dedent(text), head)
    assert mpirun("-n", "2", "--slots", "4", "--timeout", f"{patient(60):g}", *program) == 0
    out, err = capfd.readouterr()
    assert "ERR_SPAWN" in out
    assert said in out + err


@pytest.mark.nightly("each death", but=1)
@pytest.mark.parametrize("victim", ["parent", "child"])
def test_a_killed_rank_ends_the_run(tmp_path: Path, capfd: Captured, victim: str) -> None:
    pytest.importorskip("mpi4py")
    text = f"""
        import os, signal, sys

        parent = MPI.Comm.Get_parent()
        kind = "child" if parent else "parent"
        inter = parent or world.Spawn(sys.executable, args=sys.argv, maxprocs=2)
        inter.Barrier()
        if kind == {victim!r} and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        inter.Barrier()
        """
    program = mpi_program(tmp_path, text, MPI4PY)
    words = ("-n", "2", "--slots", "4", "--timeout", f"{patient(60):g}")
    assert mpirun(*words, *program) == 128 + 9
    lines = [line for line in capfd.readouterr().err.splitlines() if "SIGKILL" in line]
    assert len(lines) == 1
    assert f"rank{1 if victim == 'parent' else 3} (pid" in lines[0]


def test_slots_need_real_processes(capfd: Captured) -> None:
    assert mpirun("-n", "1", "--slots", "2", "true", engine="simulated") == 2
    assert "--slots is for real processes" in capfd.readouterr().err
    assert mpirun("-n", "3", "--slots", "2", "true") == 2
    assert "--slots must be at least 3, the value of -n, not 2" in capfd.readouterr().err
