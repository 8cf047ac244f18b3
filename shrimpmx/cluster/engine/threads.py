"""Whether threads of a rank's process may still do something, as far as the kernel tells."""

from __future__ import annotations

import os
import platform
from pathlib import Path

# The numbers of read and futex, by machine, and where a line of /proc has a futex's timeout.
CALLS = {"x86_64": ("0", "202"), "aarch64": ("63", "98")}
TIMEOUT = 4
# One look at a thread after the other misses one that the next has just woken before it waits.
LOOKS = 2


def others_may_act(pid: int, waiting: int = 0) -> bool:
    """Whether a process has a thread, besides the `waiting` one and its only one, that may do
    something before other threads or the simulation let it. True if it cannot be seen.
    """
    return any(_look(Path(f"/proc/{pid}"), str(waiting)) for _ in range(LOOKS))


def _look(process: Path, waiting: str) -> bool:
    try:
        threads = os.listdir(process / "task")
    except OSError:
        return True
    others = [thread for thread in threads if thread != waiting]
    return len(threads) > 1 and any(_may_act(process, thread) for thread in others)


def _may_act(process: Path, thread: str) -> bool:
    """Not if it waits for its turn in a simulation, or for other threads without a limit."""
    try:
        call = (process / "task" / thread / "syscall").read_text().split()
    except OSError:
        return (process / "task" / thread).exists()
    read, futex = CALLS.get(platform.machine(), ("", ""))
    if call[0] == futex:
        return int(call[TIMEOUT], 16) != 0
    if call[0] == read:
        try:
            return not os.readlink(process / "fd" / str(int(call[1], 16))).endswith(".turns")
        except OSError:
            return True
    return True
