"""What acts beside a simulation of programs: their threads, which need no turn until they call."""

from __future__ import annotations

import contextlib
import platform
import select
from collections.abc import Callable, Iterable
from pathlib import Path

from shrimpmx.simulation.baton import Baton
from shrimpmx.simulation.world import Task, World

# Between two looks at threads, while nothing is left to simulate.
LOOK_MS = 50
# The numbers of read and futex, by machine, and where a line of /proc has a futex's timeout.
CALLS = {"x86_64": ("0", "202"), "aarch64": ("63", "98")}
TIMEOUT = 4


class Outside:
    """Looks after the threads of ranks that wait in the simulation.

    A thread that wants the turn knocks, which ends its rank's wait. `pid_of` gives the process of a
    rank by its index; `attend` looks after all else while nothing is left to simulate.
    """

    def __init__(self, world: World, pid_of: Callable[[int], int], attend: Callable[[], None]):
        self._world, self._pid_of, self._attend = world, pid_of, attend
        self._ranks: dict[int, tuple[Baton, Task]] = {}
        self._threaded: list[tuple[Baton, Task]] = []

    def add(self, index: int, baton: Baton, task: Task) -> None:
        """A rank, by its index among the processes."""
        self._ranks[index] = baton, task

    def note_threads(self, index: int) -> None:
        """Several threads of a rank have asked for something."""
        self._threaded.append(self._ranks[index])

    def acts(self) -> bool:
        """Whether a thread has ended the wait of its rank."""
        return self._hear(self._threaded)

    def goes_on(self) -> bool:
        """Wait, where there is nothing to simulate, until a thread knocks; False if none will."""
        waited = select.poll()
        for baton, _ in self._ranks.values():
            waited.register(baton.fileno(), select.POLLIN)
        while True:
            waited.poll(LOOK_MS)
            if self._hear(self._ranks.values()):
                return True
            self._attend()
            pids = [self._pid_of(index) for index in self._ranks]
            if not any(thread_may_go_on(pid) for pid in pids):
                # It may have knocked just now.
                return self._hear(self._ranks.values())

    def _hear(self, ranks: Iterable[tuple[Baton, Task]]) -> bool:
        knocked = [task for baton, task in ranks if baton.knocked()]
        for task in knocked:
            self._world.end_wait(task)
        return bool(knocked)


def thread_may_go_on(pid: int) -> bool:
    """Whether a process has a thread that neither waits for its turn nor for other threads."""
    tasks = Path(f"/proc/{pid}/task")
    with contextlib.suppress(OSError):
        threads = list(tasks.iterdir())
        return len(threads) > 1 and any(_may_go_on(pid, thread) for thread in threads)
    return False


def _may_go_on(pid: int, thread: Path) -> bool:
    try:
        call = (thread / "syscall").read_text().split()
    except PermissionError:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] in "RD"
    except OSError:  # it has ended
        return False
    read, futex = CALLS.get(platform.machine(), ("", ""))
    if call[0] == futex:
        return int(call[TIMEOUT], 16) != 0
    if call[0] == read:
        with contextlib.suppress(OSError):
            return not str(Path(f"/proc/{pid}/fd/{int(call[1], 16)}").readlink()).endswith(".turns")
    return True
