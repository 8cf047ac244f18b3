"""Messages from and into memory that is not there, or not any more: an error that names it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

pytest.importorskip("mpi4py")

# Where one page of a buffer is not what it should be the handlers find out in the middle.
MEMORY = """
import ctypes
import mmap
import os

PAGE, LENGTH = mmap.PAGESIZE, 1 << 20
NOTHING, READ, WRITE = 0, mmap.PROT_READ, mmap.PROT_WRITE
system = ctypes.CDLL(None)
system.mmap.restype = ctypes.c_void_p
system.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
system.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def memory(rights, start=0, length=LENGTH):
    # Rights to pages from `start` on; the others may be read and written.
    address = system.mmap(None, LENGTH, READ | WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    system.mprotect(address + start, min(length, LENGTH - start), rights)
    return address, [MPI.memory.fromaddress(address, LENGTH), MPI.BYTE]


def code_of(function, *arguments, **options):
    try:
        function(*arguments, **options)
        return "no error"
    except MPI.Exception as error:
        text = error.Get_error_string()
        if error.Get_error_class() == MPI.ERR_BUFFER:
            assert str(LENGTH) in text and hex(bad_address) in text, text
            return "unreadable" if "cannot be read" in text else "unwritable"
        return {MPI.ERR_OTHER: "withdrawn"}.get(error.Get_error_class(), text)


good = [bytearray(LENGTH), MPI.BYTE]
bad_address = 0
"""
WHATEVER_HAPPENS = """
# Between nodes a copy stands in for the data of a send.
COPIED = len(set(world.allgather(MPI.Get_processor_name()))) > 1


def check(what, expected, found):
    global good
    assert found == expected, (what, rank, found)
    # Neither the partner nor the conversation is lost.
    world.Barrier()
    good = [bytearray(bytes([rank + 1]) * LENGTH), MPI.BYTE]
    world.Bcast(good, 1)
    assert good[0] == b"\\2" * LENGTH


def ends(request):
    return code_of(request.Wait)


for start, length in ((0, LENGTH), (LENGTH - PAGE, PAGE), (LENGTH // 2, PAGE)):
    if rank == 0:
        bad_address, bad = memory(NOTHING, start, length)
        check("send", "unreadable", code_of(world.Send, bad, 1))
        bad_address, bad = memory(READ | WRITE)
        request = world.Isend(bad, 1)
        system.munmap(bad_address + start, length)
        world.Barrier()
        check("unmapped", "no error" if COPIED else "unreadable", ends(request))
        check("receive", "no error", code_of(world.Send, good, 1))
        world.Barrier()
        check("unmapped receive", "no error", code_of(world.Send, good, 1))
    else:
        check("send", "withdrawn", code_of(world.Recv, good, 0))
        world.Barrier()
        check("unmapped", "no error" if COPIED else "withdrawn", code_of(world.Recv, good, 0))
        bad_address, bad = memory(READ, start, length)
        check("receive", "unwritable", code_of(world.Recv, bad, 0))
        bad_address, bad = memory(READ | WRITE)
        request = world.Irecv(bad, 0)
        system.munmap(bad_address + start, length)
        world.Barrier()
        check("unmapped receive", "unwritable", ends(request))

# Both ways at once, a send that nobody waits for, a persistent one, several, a collective.
bad_address, bad = memory(NOTHING)
check("Sendrecv", "unreadable", code_of(
    world.Sendrecv, bad, 1 - rank, recvbuf=[bytearray(LENGTH), MPI.BYTE], source=1 - rank))
if rank == 0:
    world.Isend(bad, 1).Free()
    check("freed", "no error", "no error")
    persistent = world.Send_init(bad, 1)
    persistent.Start()
    check("persistent", "unreadable", ends(persistent))
    requests = [world.Isend(data, 1) for data in (good, bad, good)]
    check("Waitall", "unreadable", code_of(MPI.Request.Waitall, requests))
    check("Bcast", "unreadable", code_of(world.Bcast, bad, 0))
else:
    check("freed", "withdrawn", code_of(world.Recv, good, 0))
    check("persistent", "withdrawn", code_of(world.Recv, good, 0))
    requests = [world.Irecv([bytearray(LENGTH), MPI.BYTE], 0) for _ in range(3)]
    check("Waitall", "withdrawn", code_of(MPI.Request.Waitall, requests))
    check("Bcast", "withdrawn", code_of(world.Bcast, good, 0))
os.write(1, b"all checked\\n")
"""
ENGINES = ("forked", "simulated")
WAYS = {
    "the network": (),
    "shared memory": ("--nodes", "1"),
    "copy offload": ("--set", "copy_offload=true"),
    "native MX": ("--set", "nic=mx"),
    "a rank that polls": ("--set", "coalescing=irq-suspend"),
}


def mpirun(engine: str, *words: str) -> subprocess.CompletedProcess[str]:
    # Within this time also a puller has asked again, and learned that the sender is gone.
    delay = ("--set", "pull_resend_delay_ns=20000000")
    limit = f"{patient(60):g}"
    command = [sys.executable, "-m", "shrimpmx", "mpirun", "--engine", engine, "--timeout", limit]
    return subprocess.run(
        [*command, "-n", "2", *delay, *words], capture_output=True, text=True, check=False
    )


@pytest.mark.nightly("each call on each engine", but=2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_calls_return_an_error_on_both_sides_and_messages_go_on(
    engine: str, way: str, tmp_path: Path
) -> None:
    program = mpi_program(tmp_path, MEMORY + WHATEVER_HAPPENS, MPI4PY)
    done = mpirun(engine, *WAYS[way], *program)
    assert (done.returncode, done.stdout) == (0, "all checked\n" * 2), done.stderr


@pytest.mark.nightly("each call on each engine", but=2)
@pytest.mark.parametrize("way", ["the network", "shared memory"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("what", ["Send", "Recv"])
def test_a_program_that_leaves_its_errors_to_mpi_ends_by_one_sentence(
    what: str, engine: str, way: str, tmp_path: Path
) -> None:
    head = 'import mpi4py\nmpi4py.rc.errors = "default"\n' + MPI4PY
    text = (
        MEMORY
        + f"""
bad_address, bad = memory(NOTHING if "{what}" == "Send" else READ)
os.write(1, f"{{bad_address:#x}}\\n".encode())
if rank == 0:
    world.Send(bad if "{what}" == "Send" else good, 1)
else:
    world.Recv(good if "{what}" == "Send" else bad, 0)
world.Barrier()
"""
    )
    done = mpirun(engine, *WAYS[way], *mpi_program(tmp_path, text, head))
    sentence = rf"rank (\d): MPI_{what}: MPI_ERR_BUFFER: the 1048576 bytes at (\w+) "
    ((place, address),) = re.findall(sentence, done.stderr)
    assert int(place) == ("Send", "Recv").index(what)
    assert address in done.stdout.split()
    assert done.returncode == 1


@pytest.mark.nightly("each call on each engine", but=2)
@pytest.mark.parametrize("what", ["Send", "Recv"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_rank_that_copies_itself_dies_of_it_and_shows_the_line(
    engine: str, what: str, tmp_path: Path
) -> None:
    text = (
        MEMORY
        + f"""
bad_address, bad = memory(NOTHING if "{what}" == "Send" else READ)
short, into = [[buffer[0][:100], MPI.BYTE] for buffer in (bad, good)]
if rank == 0:
    world.Send(short if "{what}" == "Send" else into, 1)
else:
    world.Recv(into if "{what}" == "Send" else short, 0)
world.Barrier()
"""
    )
    program = mpi_program(tmp_path, text, MPI4PY)
    done = mpirun(engine, *program)
    lines = Path(program[-1]).read_text().splitlines()
    (line,) = [number for number, line in enumerate(lines, 1) if f"world.{what}(" in line]
    assert f'program.py", line {line} in <module>' in done.stderr
    assert f"rank{int(what == 'Recv')} " in done.stderr
    assert done.returncode == 128 + signal.SIGSEGV
