"""The ends of a run's processes: seen at once, reaped last.

A process that has ended stays a zombie until all of its run have ended. Handlers and NICs know
processes by their pids: they signal them and copy into their memory. As long as the zombie is
there, its pid is no other process's.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import time
from collections.abc import Iterable
from multiprocessing.context import ForkProcess

from shrimpmx.cluster.engine.parts import RunParts
from shrimpmx.cluster.engine.program import ProgramProcess

Member = ForkProcess | ProgramProcess
# Of an agent's process, which reads memory that ranks write: as a shell says SIGSEGV.
EXIT_CRASHED = 128 + signal.SIGSEGV


def exit_code_of(process: Member, pidfd: int) -> int | None:
    """Its exit code, the negative number of the signal that killed it, or None: it runs.

    As its attribute `exitcode`, but without reaping it.
    """
    try:
        end = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
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


def reap(processes: Iterable[Member], pidfds: Iterable[int]) -> None:
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
