"""The processes that the supervisor of a run has started, by their index in the placement."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence

from shrimpmx.cluster.engine.child import ChildProcess
from shrimpmx.cluster.engine.exits import end_within, exit_code_of, reap
from shrimpmx.cluster.engine.notes import note
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import AgentFault


class Children:
    """They are signalled by pidfd, and reaped last: a pid that came round again is never hit.

    `exited`: the indices of those whose end the supervisor has handled, or that have not been
    started yet; these have pid 0, and -1 for a pidfd.
    """

    def __init__(self, placement: Placement) -> None:
        self._plans = placement.processes
        self._processes: list[ChildProcess | None] = []
        self._former: list[tuple[int, ChildProcess, int]] = []
        self.pidfds: list[int] = []
        self.exited: set[int] = set()

    def __len__(self) -> int:
        return len(self._processes)

    def expect(self, count: int) -> None:
        """The first `count` are started by put(), if at all."""
        self._processes = [None] * count
        self.pidfds = [-1] * count
        self.exited = set(range(count))

    def put(self, index: int, process: ChildProcess) -> int:
        """One has been started, or again; returns its pidfd. OSError without one: it is ended
        again.
        """
        former, pidfd = self._processes[index], self.pidfds[index]
        new = self._pidfd_of(process)
        if former is not None:
            self._former.append((index, former, pidfd))
        self._processes[index], self.pidfds[index] = process, new
        self.exited.discard(index)
        return new

    def _pidfd_of(self, process: ChildProcess) -> int:
        pid = process.pid or 0
        try:
            return os.pidfd_open(pid)
        except OSError:
            os.kill(pid, signal.SIGKILL)  # not reaped yet: its pid is its own
            process.join()
            process.close()
            raise

    def pids(self) -> list[int]:
        """The pid of each."""
        return [process.pid or 0 if process else 0 for process in self._processes]

    def exit_code(self, index: int, *, ended: bool = False) -> int | None:
        """As `exit_code_of`; 0 of one that was not started."""
        process = self._processes[index]
        return 0 if process is None else exit_code_of(process, self.pidfds[index], ended=ended)

    def running(self) -> list[int]:
        """The indices of those that have not ended."""
        return [
            index
            for index in range(len(self))
            if index not in self.exited and self.exit_code(index) is None
        ]

    def late(self, limit_s: float) -> list[int]:
        """The indices of those that have not ended after so many seconds."""
        started = [pidfd for pidfd in self.pidfds if pidfd >= 0]
        return [] if end_within(started, limit_s) else self.running()

    def signal_group(self, index: int, number: signal.Signals, group_has_it: bool) -> None:
        """Send a signal to the process group that a process leads, with its children; without such
        a group to the process, unless its own group has the signal already.
        """
        pid = self.pids()[index]
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(pid) == pid:  # not reaped yet: its pid is its own
                os.killpg(pid, number)
                return
        if not group_has_it:
            self.signal(index, number)

    def signal(self, index: int, number: signal.Signals) -> None:
        """Send a signal. One that is killed gets CPU time to end."""
        if self.pidfds[index] < 0:
            return
        if number == signal.SIGKILL:
            self._hurry(index)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfds[index], number)

    def hurry(self) -> None:
        """Let those of the idle class, and nice ones, see the stop word soon, also where strangers
        keep the CPU busy. Without the right to it they end when they get their share.
        """
        for index in range(len(self)):
            self._hurry(index)

    def _hurry(self, index: int) -> None:
        if index in self.exited:
            return
        plan, pid = self._plans[index], self.pids()[index]
        with contextlib.suppress(PermissionError, ProcessLookupError):
            if plan.idle_class:
                os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
            if plan.niceness:
                os.setpriority(os.PRIO_PROCESS, pid, 0)

    def reap(self) -> dict[str, dict[str, int]]:
        """Wait until all have ended, then let their pids go. What programs have used, by name."""
        now = zip(range(len(self)), self._processes, self.pidfds, strict=True)
        found = [*self._former, *((index, each, fd) for index, each, fd in now if each is not None)]
        reap([process for _, process, _ in found], [pidfd for _, _, pidfd in found])
        used: dict[str, Counter[str]] = {}
        for index, process, pidfd in found:
            os.close(pidfd)
            used.setdefault(self._plans[index].name, Counter()).update(process.used)
        return {name: dict(each) for name, each in used.items()}


# -- Processes that a run kills, stops and continues by itself, as its spec says.


class AgentFaults:
    """Carries out `faults` in time."""

    def __init__(self, faults: Sequence[AgentFault], placement: Placement) -> None:
        self._faults, self._placement = faults, placement
        self._planned: list[tuple[float, AgentFault]] = []
        self._stopped: list[tuple[float, int]] = []

    def begin(self, now_s: float) -> None:
        """The ranks begin: from now on the time counts."""
        planned = [(now_s + fault.after_s, fault) for fault in self._faults]
        self._planned = sorted(planned, key=lambda timed: timed[0])

    def apply(self, now_s: float, send: Callable[[int, signal.Signals], None]) -> float:
        """Do what is due; the time of what comes next.

        `send`, called with a process's index and a signal, sends it. It is not kept: a run that
        keeps itself keeps its memory.
        """
        while self._planned and self._planned[0][0] <= now_s:
            _, fault = self._planned.pop(0)
            index = self._placement.process_index(fault.process)
            note("fault: %s %s", fault.action, fault.process)
            send(index, signal.SIGKILL if fault.action == "kill" else signal.SIGSTOP)
            if fault.action != "kill" and fault.stop_for_s > 0:
                self._stopped.append((now_s + fault.stop_for_s, index))
        for moment, index in [timed for timed in self._stopped if timed[0] <= now_s]:
            self._stopped.remove((moment, index))
            send(index, signal.SIGCONT)
        return min((moment for moment, _ in [*self._planned, *self._stopped]), default=math.inf)

    def postpone(self, late_s: float) -> None:
        """The run stood still for so long."""
        self._planned = [(moment + late_s, fault) for moment, fault in self._planned]
        self._stopped = [(moment + late_s, index) for moment, index in self._stopped]
