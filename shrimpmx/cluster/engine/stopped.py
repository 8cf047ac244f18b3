"""Processes of a run that are stopped, as by SIGSTOP: what they should do is left undone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from shrimpmx.cluster.engine.diagnosis import member_pids, process_state
from shrimpmx.cluster.engine.parts import RunParts

# Between two looks. A process is named when two of them have found it stopped: one alone may fall
# between the SIGCONTs of a group that is continued.
LOOK_S = 0.5


class StoppedProcesses:
    """Says by `say`, once per stop, which process of a run is stopped. The run goes on."""

    def __init__(self, parts: RunParts, say: Callable[[str], None]) -> None:
        self._parts = parts
        self._say = say
        self._stopped: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._due_s = 0.0

    def look(self, now_s: float, pids: Sequence[int], pidfds: Sequence[int]) -> float:
        """See which processes are stopped, if it is time to; returns the time of the next look.

        `pids` and `pidfds`: of the processes that the supervisor started, the placement's first.
        """
        if now_s >= self._due_s:
            self._due_s = now_s + LOOK_S
            before, self._stopped = self._stopped, self._find(pids, pidfds)
            lasting = {name: pid for name, pid in self._stopped.items() if before.get(name) == pid}
            for name in lasting.keys() - self._told.keys():
                pid = lasting[name]
                self._say(
                    f"shrimpmx: {name} (pid {pid}) is stopped, and what it should do waits; "
                    f"`kill -CONT {pid}` continues it"
                )
            self._told = lasting
        return self._due_s

    def _find(self, pids: Sequence[int], pidfds: Sequence[int]) -> dict[str, int]:
        """The pids of those that are stopped, by name."""
        found = {}
        members = member_pids(self._parts, pids)
        plans = self._parts.placement.processes[: len(pids)]
        for plan, pid, member, pidfd in zip(plans, pids, members, pidfds, strict=True):
            stopped = process_state(member) == "stopped" if member != pid else _is_stopped(pidfd)
            if stopped:
                found[plan.name] = member
        return found


def _is_stopped(pidfd: int) -> bool:
    # Hundreds of times quicker than a look at /proc, which would take its time from the run.
    try:
        return os.waitid(os.P_PIDFD, pidfd, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has ended
        return False
