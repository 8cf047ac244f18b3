"""The ends of a run's processes: seen at once, reaped last.

A process that has ended stays a zombie until all of its run have ended. Handlers and NICs know
processes by their pids: they signal them and copy into their memory. As long as the zombie is
there, its pid is no other process's.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import selectors
import shlex
import signal
import time
from collections.abc import Iterable

from shrimpmx.cluster.engine.child import ChildProcess
from shrimpmx.cluster.engine.leftovers import maps
from shrimpmx.cluster.engine.memory import RunParts
from shrimpmx.cluster.engine.notes import note
from shrimpmx.native.records import dataclass

# Of an agent's process, which reads memory that ranks write: as a shell says SIGSEGV.
EXIT_CRASHED = 128 + signal.SIGSEGV


def exit_code_of(process: ChildProcess, pidfd: int, *, ended: bool = False) -> int | None:
    """Its exit code, the negative number of the signal that killed it, or None: it runs.

    As its attribute `exitcode`, but without reaping it. `ended`: its pidfd says so. A tracer, such
    as strace, sees the code first, and this waits for that.
    """
    options = os.WEXITED | os.WNOWAIT | (0 if ended else os.WNOHANG)
    try:
        end = os.waitid(os.P_PIDFD, pidfd, options)
    except ChildProcessError:  # a program that runs a cluster may reap any child
        return process.exitcode
    if end is None:
        return None
    return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status


def end_within(pidfds: Iterable[int], limit_s: float) -> bool:
    """Whether all end within so many seconds."""
    until = time.monotonic() + limit_s
    for pidfd in pidfds:
        ends = select.poll()
        ends.register(pidfd, select.POLLIN)
        if not ends.poll(1e3 * max(0.0, until - time.monotonic())):
            return False
    return True


def reap(processes: Iterable[ChildProcess], pidfds: Iterable[int]) -> None:
    """Wait until all have ended, then let their pids go."""
    for pidfd in pidfds:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
    for process in processes:
        process.join()
        process.close()


def how_it_ended(exit_code: int | None, *, worked: bool, is_agent: bool = False) -> str:
    """For a sentence that begins with the process's name."""
    if is_agent and exit_code == EXIT_CRASHED:
        return (
            "crashed: a rank overwrote the run's memory, or this is a defect; "
            "PYTHONFAULTHANDLER=1 shows the place"
        )
    if exit_code is not None and exit_code < 0:
        try:
            return f"was killed by {signal.Signals(-exit_code).name}"
        except ValueError:
            return f"was killed by signal {-exit_code}"
    return f"ended {'after its work' if worked else 'early'} with exit code {exit_code}"


def never_joined(parts: RunParts, index: int, exit_code: int | None) -> str:
    """A hint if the process was to become a rank's program that never joined the run."""
    plan = parts.placement.processes[index]
    if plan.role != "rank" or parts.memory.control.runner_info(index)["pid"]:
        return ""
    rank = parts.spec.ranks[plan.agents[0].number]
    if not rank.command:
        return ""
    failed = "failed before it joined" if exit_code else "did not join"
    # A program that was launched is MPI's.
    mpi = "; a program of MPI needs workload=mpi" if rank.launch is None else ""
    return f": {shlex.join(rank.command)} {failed} the run by shrimpmx.join(){mpi}"


# -- The ranks that a run goes on without, and their endpoints, which are closed for them.

# Between two attempts to close an endpoint whose lock is held.
ATTEMPT_S = 0.01


class LostRanks:
    """Why ranks were lost, by name (`why`), and what is still to be done for them.

    An endpoint is closed when its process has ended, since a thread of one that has only reported
    its failure may still poll a ring. The holder of its lock may be stopped, so that nothing waits
    for that: it is tried again and again, while the run goes on.
    """

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._open: list[int] = []
        self._ended: set[int] = set()
        self.why: dict[str, str] = {}

    def note(self, name: str, why: str) -> None:
        """A rank has failed or ended, for the reason that is known first."""
        if name not in self.why:
            note("the run goes on without %s: %s", name, why)
            self.why[name] = why

    def note_end(self, index: int) -> None:
        """The process of a lost rank has ended; its endpoint is closed by the next close().

        Told twice of a program that a shell has started, which ends later.
        """
        if index not in self._ended:
            self._ended.add(index)
            self._open.append(index)

    def close(self) -> float:
        """Close what can be closed now. For how long there is nothing else to try, s."""
        self._open = [index for index in self._open if not self._close(index)]
        return ATTEMPT_S if self._open else math.inf

    def _close(self, index: int) -> bool:
        spec, memory = self._parts.spec, self._parts.memory
        number = self._parts.placement.processes[index].agents[0].number
        node = memory.nodes[spec.ranks[number].node]
        if not spec.kind.close_dead(node, spec.endpoints[number]):
            return False
        memory.control.set_runner_state(index, "failed")
        return True


# -- Programs of ranks that are children of what the supervisor started, as of a shell.
#
# Their parent reaps them as soon as they end, and may go on for as long as it likes. So they are
# watched by pidfds of their own from when they join: their endpoints are closed at once.

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
