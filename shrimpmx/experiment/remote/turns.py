"""One real run at a time on a machine, whatever makes it, and a CPU that it leaves alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Set
from contextlib import contextmanager

# It is there on every machine, is no other machine's, and a lock on it leaves nothing behind.
LOCKED = "/dev/shm"
# With fewer CPUs a run needs them all (ours).
SPARING_CPUS = 3


@contextmanager
def machine_turn() -> Iterator[None]:
    """Wait for all other runs on this machine that wait for their turn, too; it is given back when
    the process dies.
    """
    descriptor = os.open(LOCKED, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def cpus_of_runs(allowed: Set[int]) -> set[int]:
    """The CPUs that runs use of those that a worker may: it keeps the first one for itself, since
    handlers with real-time priority would keep it from answering its scheduler.
    """
    if len(allowed) < SPARING_CPUS:
        return set(allowed)
    return set(allowed) - {min(allowed)}
