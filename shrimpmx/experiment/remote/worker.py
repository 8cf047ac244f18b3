"""What a Dask worker does for a sweep. It is imported on workers, by its name."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from distributed import get_worker

from shrimpmx.cluster.engine.exits import how_it_ended
from shrimpmx.errors import AgentError
from shrimpmx.experiment.remote.messages import is_run, reply_of_error
from shrimpmx.results.environment import software

# How often a worker looks whether its run is still wanted, and how long one that is not may take
# to clean up, s (ours).
LOOK_S = 0.5
END_LIMIT_S = 10.0


class PointProcess:
    """A process that makes the runs of one job, one after another."""

    def __init__(self, job: str) -> None:
        self.job = job
        # -P: a module of the working directory, which may be /tmp, is none of ours.
        program = [sys.executable, "-P", "-m", "shrimpmx.experiment.remote.point_process"]
        self._process = subprocess.Popen(
            [*program, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._write(job)

    def reply(self, task: str, wanted: Callable[[], bool]) -> str:
        """The reply to a task; "" if that is not `wanted` any longer, or the process has died."""
        self._write(task)
        assert self._process.stdout is not None
        while not select.select([self._process.stdout], [], [], LOOK_S)[0]:
            if not wanted():
                return ""
        return self._process.stdout.readline()

    def end(self) -> str:
        """End it and its run; returns how it ended."""
        self._process.terminate()
        try:
            self._process.communicate(timeout=END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        return how_it_ended(self._process.returncode, worked=False)

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died, which its reply tells
            print(line, file=self._process.stdin, flush=True)


# Processes of this worker that have nothing to do.
_idle: list[PointProcess] = []


def describe() -> dict[str, Any]:
    """The worker's machine, and its shrimpmx."""
    return {"name": socket.gethostname(), **software()}


def measure(job: str, task: str) -> str:
    """The reply to a task, by a process of its own: the worker's answers its scheduler meanwhile,
    and signals, priorities and crashes of a run are not its own.
    """
    process, wanted = _process_for(job), _is_wanted()
    reply = process.reply(task, wanted)
    if is_run(reply) and wanted():
        _idle.append(process)
        return reply
    ended = process.end()
    return reply or reply_of_error(AgentError(f"the process that makes runs {ended}"))


async def dismiss() -> None:
    """End the processes that have nothing to do; the worker answers its scheduler meanwhile."""
    while process := _taken():
        await asyncio.to_thread(process.end)


def _process_for(job: str) -> PointProcess:
    while process := _taken():
        if process.job == job:
            return process
        process.end()
    return PointProcess(job)


def _taken() -> PointProcess | None:
    """One that has nothing to do, from now on the caller's; other threads take them, too."""
    try:
        return _idle.pop()
    except IndexError:
        return None


def _is_wanted() -> Callable[[], bool]:
    """Whether the client still waits for the task of this thread."""
    worker = get_worker()
    key, tasks = worker.get_current_task(), worker.state.tasks

    def wanted() -> bool:
        task = tasks.get(key)
        return task is not None and task.state == "executing"

    return wanted
