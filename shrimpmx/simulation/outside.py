"""What acts beside a simulation of programs: their threads, which need no turn until they call."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable

from shrimpmx.simulation.baton import Baton
from shrimpmx.simulation.world import Task, World

# Between two looks at threads, while nothing is left to simulate.
LOOK_MS = 50


class Outside:
    """Looks after the threads of ranks that wait in the simulation.

    A thread that wants the turn knocks, which ends its rank's wait. `may_act` looks after all else
    while nothing is left to simulate, of so many seconds each time, and says whether a thread may
    still knock.
    """

    def __init__(self, world: World, may_act: Callable[[float], bool]):
        self._world, self._may_act = world, may_act
        self._ranks: dict[int, tuple[Baton, Task]] = {}
        self._threaded: list[tuple[Baton, Task]] = []
        self._waited_ns = 0

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
            began_ns = time.monotonic_ns()
            waited.poll(LOOK_MS)
            self._waited_ns += time.monotonic_ns() - began_ns
            # Also beside threads that knock again and again.
            if self._waited_ns >= LOOK_MS * 1_000_000:
                waited_s, self._waited_ns = self._waited_ns * 1e-9, 0
                if not self._may_act(waited_s):
                    # It may have knocked just now.
                    return self._hear(self._ranks.values())
            if self._hear(self._ranks.values()):
                return True

    def _hear(self, ranks: Iterable[tuple[Baton, Task]]) -> bool:
        knocked = [task for baton, task in ranks if baton.knocked()]
        for task in knocked:
            self._world.end_wait(task)
        return bool(knocked)
