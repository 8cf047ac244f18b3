"""/dev/shm too small, full or read-only: a sentence, or a run that goes on, and never a signal.

Each command sees a /dev/shm of its own, in a mount namespace.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.conditions import patient

REPOSITORY = Path(__file__).parents[2]
MOUNT = 'mount -t tmpfs -o "$0" none /dev/shm && exec "$@"'


def namespace(options: str) -> list[str]:
    """What to put before a command that is to see a /dev/shm of its own."""
    rights = ["-m"] if os.getuid() == 0 else ["-Urm"]
    return ["unshare", *rights, "sh", "-c", MOUNT, options]


def can_mount() -> bool:
    try:
        return subprocess.run([*namespace("size=1m"), "true"], capture_output=True).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not can_mount(), reason="this user may not mount a tmpfs")


def run(options: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*namespace(options), sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=patient(50),
        check=False,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "1000"},
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("size=64k", "not enough room in /dev/shm: "),
        ("size=1m,ro", "no semaphore can be made in /dev/shm: Read-only file system"),
    ],
    ids=["too small", "read-only"],
)
def test_a_run_without_room_says_why(options: str, reason: str, tmp_path: Path) -> None:
    settings = ("--set", "platform=none", "--set", "repeats=1", "--set", "iterations=10")
    done = run(
        *(options, "-m", "shrimpmx", "run", "smoke/pingpong"),
        *(*settings, "--output", str(tmp_path / "r")),
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"shrimpmx: {reason}")


RANK = """
import os
import numpy as np
from shrimpmx.native.segment import RunIdentity, Segment
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.node import Node

layout = NodeLayout(heap_bytes=64 << 20)
identity = RunIdentity.of_this_process()
control = Control.create(
    Segment.anonymous(Control.size_bytes(1, 1), 1), ["rank0"], [("rank0", "rank", 0)], 1, "virtual"
)
segment = Segment.create(identity, "heap0", layout.heap_segment_bytes, 4, reserve=False)
node = Node.create(Segment.anonymous(Node.size_bytes(layout), 2), control, layout, segment)
rank = os.fork()
if rank == 0:
    with Heap.of_process(node, 0).use_for_numpy() as heap:
        arrays = [np.full(1 << 20, number, np.uint8) for number in range(8)]
        assert all((array == number).all() for number, array in enumerate(arrays))
        inside = [heap.holds(array) for array in arrays]
        print(sum(inside), heap.outside > 0, heap.starved > 0, heap.errors, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]))
segment.unlink()
"""


def test_a_rank_that_finds_it_full_goes_on_in_ordinary_memory() -> None:
    done = run("size=4m", "-c", RANK)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.split() == ["3", "True", "True", "0", "0"]


def test_a_heap_segment_needs_room_for_its_header_only() -> None:
    make = RANK.partition("rank = ")[0]
    fill = make.replace(
        "segment =", "os.posix_fallocate(os.open('/dev/shm/fill', 66), 0, 1 << 20)\nsegment ="
    )
    done = run("size=1m", "-c", fill)
    assert done.stderr.splitlines()[-1].startswith(
        "shrimpmx.errors.SegmentError: not enough room in /dev/shm: 0.0 MB needed, 0.0 MB free"
    )
