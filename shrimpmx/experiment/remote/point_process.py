"""The process that makes runs on a machine: a job on its input, then a task per line; a reply per
line on its output; one real run at a time on a machine. Whatever a run prints goes to standard
error.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Set
from pathlib import Path
from typing import TextIO

from shrimpmx.cluster.engine.ending import FirstInterrupt
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.engine.leftovers import scratch_directory
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.errors import AgentError, InputError, ShrimpmxError
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.loading import load_scenario, read_scenario
from shrimpmx.experiment.machine_costs import costs_named
from shrimpmx.experiment.measuring import UNDISTURBED, Measuring
from shrimpmx.experiment.own_code import code_of_programs, digests_of, modules_beside
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.remote.messages import (
    Job,
    OwnFile,
    OwnRule,
    Task,
    reply_of_error,
    reply_of_run,
)
from shrimpmx.experiment.run_data import RunData
from shrimpmx.native.cores import die_with_parent
from shrimpmx.native.files import write_whole
from shrimpmx.results.environment import environment, same_environment
from shrimpmx.settings.user_code import OwnClass
from shrimpmx.simulation.engine import Simulated

# It is there on every machine, is no other machine's, and a lock on it leaves nothing behind.
LOCKED = "/dev/shm"
# With fewer CPUs a run needs them all (ours).
SPARING_CPUS = 3


class Machine:
    """Makes runs of a job on this machine; a user's own files go into `scratch`."""

    def __init__(self, job: Job, scratch: Path) -> None:
        self._job = job
        self._engine: Engine = Simulated() if job.engine == Simulated.name else Forked()
        scenario = job.scenario and _placed(job.scenario, scratch / "scenario")
        self._scenario = load_scenario(read_scenario(scenario)) if scenario else None
        numbered = enumerate(job.rules.items())
        self._rules = {name: _rule_of(rule, scratch / str(n)) for n, (name, rule) in numbered}
        self._costs: dict[str, float] = {}
        self._measure: Measuring | None = None
        if self._engine.is_real:
            os.sched_setaffinity(0, cpus_of_runs(os.sched_getaffinity(0)))
        self._environment = environment()

    def run(self, task: Task) -> RunData:
        """One run; a real one when it is its turn, with the machine that made it."""
        if not self._engine.is_real:
            return self._run(task)
        with machine_turn():
            kept = task.machine
            if kept is not None and same_environment(kept["environment"], self._environment):
                self._take_costs(kept["costs"])
            run = self._run(task)
        told = {"environment": self._environment, "costs": self._costs}
        return {**run, "machine": {"name": socket.gethostname(), **told}}

    def _run(self, task: Task) -> RunData:
        if self._measure is None:
            self._take_costs(None)
        assert self._measure is not None
        self._check_programs(task)
        run = self._measure(task.point, task.seed)
        self._check_programs(task)
        return run

    def _take_costs(self, kept: dict[str, float] | None) -> None:
        """Measure with these costs, ns by name, from now on, or with this machine's."""
        if self._measure is not None and kept == self._costs:
            return
        names = set(self._job.needed_costs)
        costs: Costs | None
        if not self._engine.is_real:
            costs = {name: {"median": 0.0} for name in names}
        elif kept is None:
            costs = costs_named(names, self._engine)
        else:
            costs = {name: {"median": ns} for name, ns in kept.items()}
        policies = {**(self._scenario.policies if self._scenario else {}), **self._rules}
        waits = {**(self._scenario.waits if self._scenario else {}), **self._rules}
        executor = ClusterExecutor(self._engine, policies, costs, waits)
        undisturbed = {} if self._engine.is_real else UNDISTURBED
        self._measure = Measuring(executor, self._job.metrics, **undisturbed)
        known = {name: each.get("median") for name, each in (costs or {}).items()}
        self._costs = {name: ns for name, ns in known.items() if ns}

    def _check_programs(self, task: Task) -> None:
        _check_same(task.programs, code_of_programs([task.point], self._job.directory))


def _rule_of(rule: OwnRule, place: Path) -> OwnClass:
    path = _placed(rule, place)
    modules = modules_beside(path, rule.source.encode(), is_word=True)
    return OwnClass(str(path), rule.source, rule.name, modules)


def _placed(own: OwnFile, place: Path) -> Path:
    """The path of a user's file that is written into `place`, with the modules in its directory;
    InputError if a module from elsewhere differs here.
    """
    home, place = Path(own.file).parent, place.resolve()
    path = place / Path(own.file).name
    for name, text in {path.name: own.source, **own.modules}.items():
        write_whole(place / name, text)
    code = digests_of(path, home=place)
    elsewhere = [name for name in code if name.startswith(os.pardir)]
    names = {name: os.path.relpath(place / name, home) for name in elsewhere}
    _check_same(own.code, {names.get(name, name): each for name, each in code.items()})
    return path


def _check_same(wanted: dict[str, str], found: dict[str, str]) -> None:
    others = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    if others:
        raise InputError(
            f"{', '.join(others)} is missing here or has changed since the sweep began; every "
            "machine needs the same files at the same paths"
        )


def serve(lines: Iterator[str], replies: TextIO, scratch: Path) -> None:
    """Reply to each task; the first line is the job. An error is the last reply."""
    failed: ShrimpmxError | None = None
    with run_log(scratch) as log:
        try:
            job = Job.model_validate_json(next(lines))
            with contextlib.suppress(FileNotFoundError):
                os.chdir(job.directory)
            machine = Machine(job, scratch)
            for line in lines:
                run = machine.run(Task.model_validate_json(line))
                print(reply_of_run(run), file=replies, flush=True)
        except ShrimpmxError as error:
            failed = error
        except Exception as error:
            words = f"the process that makes runs failed: {error}"
            failed = AgentError(words, traceback=traceback.format_exc())
    if failed is not None:
        print(reply_of_error(failed, log.read_text()), file=replies, flush=True)


@contextlib.contextmanager
def _own_output() -> Iterator[TextIO]:
    """Standard output, for this module alone: to all others it is standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)
        yield replies


@contextlib.contextmanager
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


def main(arguments: list[str]) -> None:
    """Serve the worker whose pid is the first argument, until it closes the input."""
    die_with_parent(int(arguments[0]))
    with (
        FirstInterrupt((signal.SIGTERM, signal.SIGHUP)),
        contextlib.suppress(KeyboardInterrupt),
        scratch_directory() as scratch,
        _own_output() as replies,
    ):
        serve(sys.stdin, replies, scratch)


if __name__ == "__main__":
    main(sys.argv[1:])
