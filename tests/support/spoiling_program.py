"""A rank's program, of MPI or of shrimpmx.join(), that spoils its own run, by draws from a seed. It
does so as rank 1, before both ranks exchange data.

Usage: python spoiling_program.py mpi|join KIND SEED; the kinds are those of spoiled_runs.KINDS.
"""

from __future__ import annotations

import contextlib
import io
import json
import mmap
import os
import random
import struct
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import posix_ipc

import shrimpmx

WAY, KIND, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3])
ROUNDS, MESSAGES, NUMBERS = 20, 20, 100_000
# Where headers and records lie, into which most of the damage goes.
HEAD_BYTES = 1 << 16
SHARED = Path("/dev/shm")
# As in cluster/rank/baton.pxd; a knock and a few others.
WISH, WANTS = struct.Struct("@IIIIqQQ"), (0, 1, 3, 7, 8, 9)
FLOOD = 20_000
USAGE = ("user_ns", "system_ns", "task_clock_ns", "voluntary_switches")
USAGE += ("involuntary_switches", "minor_faults", "major_faults")

draw = random.Random(SEED)


def mapped(word: str) -> list[Path]:
    """The run's segments with that word in their names that this process maps."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    found = {Path(line.split()[-1]) for line in lines if "/dev/shm/shrimpmx" in line}
    return sorted(path for path in found if word in path.name.rpartition("-")[2])


def spoil_segment(path: Path) -> None:
    """Overwrite some words of a segment."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        for _ in range(draw.choice([1, 10, 200])):
            count = draw.choice([1, 4, 8, 64])
            end = min(HEAD_BYTES, len(memory)) if draw.random() < 0.7 else len(memory)
            at = draw.randrange(end - count)
            memory[at : at + count] = draw.choice([draw.randbytes(count), b"\xff" * count])


def junk() -> bytes:
    """A message that no process sends."""
    value = draw.choice([7, "x" * 3000, {"user_ns": "x"}, "\x1b[31m", ["rank0"]])
    key = draw.choice(["from", "what", "traceback", "usage", "elapsed_ns"])
    whole = {"from": "rank0", "what": "ready", key: value if key != "traceback" else 7}
    return draw.choice([draw.randbytes(99), b"[" * 8000, json.dumps(whole).encode(), b"{}"])


def forged() -> bytes:
    """A message as another process, or this one, might send it."""
    control = shrimpmx_accounts()
    fields = {
        "usage": dict.fromkeys(USAGE, draw.choice([0, 1, (1 << 63) - 1])),
        "account": dict.fromkeys(control, draw.choice([0, 1, (1 << 63) - 1])),
        "elapsed_ns": draw.choice([0, 1, (1 << 63) - 1]),
        "hardware": {draw.choice(["cache_misses", "\x1b[31m", ""]): 1},
        "hardware_absent": {"cache_misses": "\x1b]0;x\x07"},
        "error": "a\nshrimpmx: b\x1b[2J",
        "traceback": "x" * 3000,
    }
    chosen = {name: value for name, value in fields.items() if draw.random() < 0.6}
    sender = draw.choice(["rank0", "rank1", "node0.nic", "node1.nic", "node0.irq0", "nobody"])
    what = draw.choice(["ready", "done", "ended", "ended", "failed"])
    return json.dumps({"from": sender, "what": what, **chosen}).encode()


def shrimpmx_accounts() -> list[str]:
    """The names of an account's figures."""
    from shrimpmx.shared.control import ACCOUNT

    return sorted(ACCOUNT)


def queue() -> posix_ipc.MessageQueue:
    """The run's control channel."""
    [control] = mapped("control")
    return posix_ipc.MessageQueue(f"/{control.name}-queue")


def flood(channel: posix_ipc.MessageQueue) -> None:
    """Send for ever."""
    data = json.dumps({"from": "rank1", "what": "ready"}).encode()
    while True:
        channel.send(data)


def scratch() -> Path:
    """The run's scratch directory, where this process has its file for stacks."""
    files = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            files.append(path.readlink())
    [found] = {file.parent for file in files if "-scratch" in file.parent.name}
    return found


def npz() -> bytes:
    """A file of samples, of sorts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "samples.bytes.npy", draw.choice([b"", draw.randbytes(99), bytes(1 << 24)])
        )
    return draw.choice([file.getvalue(), file.getvalue()[:-9], b"", draw.randbytes(4000)])


def spoil_file(path: Path) -> None:
    """Put something else in the place of a file of the run."""
    path.unlink(missing_ok=True)
    how = draw.choice(["npz", "json", "pipe", "directory", "link", "locked"])
    if how == "npz":
        path.write_bytes(npz())
    elif how == "json":
        path.write_bytes(draw.choice([b"[" * 99_999, b'{"rank0": {"x": -1}}', b"{}", b"\xff"]))
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "link":
        path.symlink_to(draw.choice(["/dev/zero", "/nowhere", str(path)]))
    else:
        (path / "deep" / "er").mkdir(parents=True)
        (path / "deep").chmod(0o700 if how == "directory" else 0)


def wish() -> None:
    """Wish for more than is taken; in vain where no simulation grants wishes."""
    with (scratch() / "rank1.wishes").open("wb") as pipe:
        for _ in range(FLOOD):
            pipe.write(WISH.pack(draw.choice(WANTS), 0, 0, 0, 0, 1, 0))


def spoil() -> int:
    """Do it; how much was spoiled."""
    if KIND in ("queue", "forged"):
        channel, make = queue(), junk if KIND == "queue" else forged
        for _ in range(MESSAGES):
            channel.send(make(), timeout=20)
        return MESSAGES
    if KIND == "flood":
        threading.Thread(target=flood, args=(queue(),), daemon=True).start()
        return 1
    if KIND == "files":
        names = ("rank0.npz", "rank1.npz", "counters-before.json", "rank0.stack", "rank1.stack")
        chosen = draw.sample(names, draw.randint(1, len(names)))
        for name in chosen:
            spoil_file(scratch() / name)
        return len(chosen)
    if KIND == "wishes":
        wish()
        return FLOOD
    found = mapped(KIND)
    for path in found:
        spoil_segment(path)
    return len(found)


def spoiled() -> None:
    """Spoil the run; the exit code 99 says that nothing was."""
    if not spoil():
        sys.exit(99)


def by_mpi() -> None:
    """Exchange data by MPI."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    data = np.zeros(NUMBERS)
    if world.rank == 1:
        spoiled()
    for number in range(ROUNDS):
        world.sendrecv(number, 1 - world.rank, 0, None, 1 - world.rank, 0)
        world.Sendrecv(data, 1 - world.rank, 1, data.copy(), 1 - world.rank, 1)


def by_join() -> None:
    """Exchange data by the library itself."""
    with shrimpmx.join() as rank:
        data = np.zeros(NUMBERS)
        if rank.number == 1:
            spoiled()
        for number in range(ROUNDS):
            receive = rank.endpoint.irecv(data.copy(), match=number)
            rank.endpoint.send(data, rank.partners[1 - rank.number], match=number)
            rank.endpoint.wait(receive)
        rank.samples["bytes"] = data.nbytes


(by_mpi if WAY == "mpi" else by_join)()
