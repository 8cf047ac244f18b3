"""A run, or a process of it, that stands still."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from shrimpmx.cluster.engine.diagnosis import (
    member_pids,
    place_in_program,
    process_state,
    unreported,
)
from shrimpmx.cluster.engine.memory import RunParts
from shrimpmx.cluster.engine.mpi_ranks import MpiRanks
from shrimpmx.cluster.engine.silence import LINES_MAX
from shrimpmx.errors import NeverReportedError, StandstillError

# All ranks wait for so long, and no message moves: more time would not help (ours).
STILL_S = 1.0


def check_hope(parts: RunParts, mpi: MpiRanks, told: str, late: str, agent: str, dump: str) -> None:
    """StandstillError if more time would not help a run that is late, in which no interrupt is
    under way: `told` in words with what blamed processes do, `late` without.
    """
    if words := unreported(parts.memory.nodes, parts.spec):
        raise NeverReportedError(told + words, agent, dump)
    still_s = mpi.still_s()
    if still_s < STILL_S:
        return
    places = {name: place_in_program(parts, name) for name in list(mpi.doing())[:LINES_MAX]}
    calls = "; ".join(
        f"{name}: {mpi.doing()[name]}{' at ' * bool(place)}{place}"
        for name, place in places.items()
    )
    raise StandstillError(
        f"{late}: every rank waits, and no message has moved for {still_s:.0f} s: {calls}",
        agent,
        dump,
    )


# -- Processes of a run that are stopped, as by SIGSTOP: what they should do is left undone.

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
                    f"shrimpmx: {name} (pid {pid}) is stopped, and its work waits; `kill -CONT "
                    f"{pid}` continues it"
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
    if pidfd < 0:  # it has not been started
        return False
    try:
        return os.waitid(os.P_PIDFD, pidfd, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has ended
        return False


# -- Pauses: the whole run stands still, and nothing in it can know.
#
# Ctrl-Z stops a terminal's process group, `kill -STOP` a group or a process; a container is frozen,
# a virtual machine held. The supervisor never sleeps for long, and so sees that it comes too late.

# The supervisor's longest sleep (ours).
PULSE_S = 0.5
# So late a busy machine does not wake it (ours); after SIGCONT it need not be late at all.
LATE_S = 1.0


class Pauses:
    """Finds pauses by the moments, of time.monotonic(), at which the supervisor is awake.

    `count`: how many there were. `seconds`: how long all of them lasted, up to PULSE_S less for
    each.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self._due_s = math.inf
        self._continued = False

    def look(self, now_s: float) -> float:
        """How long the run has stood still since the last look; 0.0 if it went on."""
        late_s = max(0.0, now_s - self._due_s)
        paused = self._continued or late_s > LATE_S
        self._continued = False
        self._due_s = now_s + PULSE_S
        if not paused:
            return 0.0
        self.count += 1
        self.seconds += late_s
        return late_s

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """From now on looks come by the pulse, and SIGCONT is heard, the sign of a pause however
        short. For the main thread.
        """

        def note(number: int, frame: FrameType | None) -> None:
            self._continued = True
            if callable(before):
                before(number, frame)

        before = signal.signal(signal.SIGCONT, note)
        self._due_s = time.monotonic() + PULSE_S
        try:
            yield
        finally:
            signal.signal(signal.SIGCONT, before)
