"""Programs of ranks that are children of what the supervisor started, as of a shell.

Their parent reaps them as soon as they end, and may go on for as long as it likes. So they are
watched by pidfds of their own from when they join: their endpoints are closed at once.
"""

from __future__ import annotations

import os
import selectors
from dataclasses import dataclass

from shrimpmx.cluster.engine.leftovers import maps
from shrimpmx.cluster.engine.parts import RunParts

# The states of a rank that has nothing left to do in its run.
OVER = ("done", "failed")


@dataclass(frozen=True)
class Relayed:
    """The program of the rank that is process `index` of the placement."""

    index: int
    pid: int


class RelayedPrograms:
    """Watches them by the supervisor's selector, whose keys carry a Relayed for each."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._pidfds: list[int] = []

    def note_ready(self, parts: RunParts, name: str, started_pid: int) -> Relayed | None:
        """A process has joined; what it is if the supervisor did not start it, and if it has ended
        already. If it has not, it is watched from now on.
        """
        index = parts.placement.process_index(name)
        joined = Relayed(index, parts.memory.control.runner_info(index)["pid"])
        if joined.pid in (0, started_pid):
            return None
        try:
            pidfd = os.pidfd_open(joined.pid)
        except ProcessLookupError:
            return joined
        self._pidfds.append(pidfd)
        if not maps(joined.pid, parts.memory.identity.segment_name("")):
            return joined  # the pid is another process's by now
        self._selector.register(pidfd, selectors.EVENT_READ, joined)
        return None

    def close(self) -> None:
        """Watch none of them any more."""
        for pidfd in self._pidfds:
            os.close(pidfd)


def was_at_work(parts: RunParts, program: Relayed) -> bool:
    """Whether one that has ended had not done its work."""
    return parts.memory.control.runner_info(program.index)["state"] not in OVER
