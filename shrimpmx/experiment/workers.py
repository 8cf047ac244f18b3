"""What makes runs of a sweep: other machines, or processes beside each other, where none disturbs
another.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import multiprocessing
import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.engine import TELL_S, Engine
from shrimpmx.cluster.engine.exits import how_it_ended
from shrimpmx.errors import AgentError, InputError, MachineError, ShrimpmxError
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.loading import ScenarioFile
from shrimpmx.experiment.progress import awaited_words
from shrimpmx.experiment.remote.dispatch import Cluster, Remote
from shrimpmx.experiment.remote.messages import Job, OwnFile, OwnRule, text_of
from shrimpmx.experiment.run_data import RunData
from shrimpmx.experiment.scenario import RunPlan, Scenario
from shrimpmx.experiment.sweep import Beside, Sweep
from shrimpmx.native.cores import die_with_parent
from shrimpmx.settings.user_code import OwnClass

Measure = Callable[[RunPlan], RunData]

# Forked: policies and strategies of a scenario file are of no module that others could import.
FORK = multiprocessing.get_context("fork")
# By error, the way to more workers.
ROOM = {
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EAGAIN: "raise the limit of processes (ulimit -u)",
}
MORE = "run where there is more memory and room for files"
# How long a worker that gave no result has to end (ours).
END_LIMIT_S = 5.0


def _work(orders: Connection, measure: Measure, parent: int) -> None:
    """Measure one plan after the other, until there is none."""
    # The parent alone answers the terminal, and ends its workers.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    die_with_parent(parent)
    while (plan := orders.recv()) is not None:
        try:
            answer: RunData | Exception = measure(plan)
        except Exception as error:
            answer = _sendable(error)
            answer.add_note(traceback.format_exc())
        orders.send(answer)


def _sendable(error: Exception) -> Exception:
    """The same, or if it cannot be sent, one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        words = (
            str(error) if isinstance(error, ShrimpmxError) else f"{type(error).__name__}: {error}"
        )
        sendable = AgentError(words, getattr(error, "agent", ""))
        sendable.exit_code = getattr(error, "exit_code", AgentError.exit_code)
        return sendable


def measured_beside(
    sweep: Sweep, plans: Sequence[RunPlan], workers: int
) -> Iterator[tuple[RunPlan, RunData]]:
    """Each plan of a sweep with its run, as it is finished, by so many workers, or one for each
    plan. A run's exception ends them all; AgentError if a worker gave none, MachineError if they
    cannot be started.
    """
    left = deque(plans)
    given: dict[Connection, RunPlan] = {}
    crew: dict[Connection, ForkProcess] = {}
    try:
        # All of them are there before the first is told to begin.
        for _ in range(min(workers, len(plans))):
            _join(crew, sweep.measured)
        idle = list(crew)
        while idle:
            for worker in idle:
                _order(worker, left.popleft() if left else None, given)
            idle = []
            while given and not idle:
                ended = wait(list(given), TELL_S)
                idle = [worker for worker in given if worker in ended]
                if not idle and sweep.progress:
                    sweep.progress.waits_for(awaited_words(len(given), len(given)))
            for worker in idle:
                yield given.pop(worker), _answer(worker, crew[worker])
        for process in crew.values():
            process.join()
    finally:
        # What they have begun is not waited for.
        for worker, process in crew.items():
            process.kill()
            process.join()
            process.close()
            worker.close()


def _join(crew: dict[Connection, ForkProcess], measure: Measure) -> None:
    """Another worker joins the crew. MachineError if there can be none."""
    ours, orders = FORK.Pipe()
    process = FORK.Process(target=_work, args=(orders, measure, os.getpid()))
    with orders:
        try:
            process.start()
        except OSError as error:
            ours.close()
            most = (
                f"no more than {len(crew)} worker{'s' * (len(crew) > 1)}" if crew else "no worker"
            )
            lower = "lower --workers, or " if crew else ""
            advice = lower + ROOM.get(error.errno or 0, MORE)
            raise MachineError(f"{most} can be started here: {error.strerror}; {advice}") from None
    crew[ours] = process


def _order(worker: Connection, plan: RunPlan | None, given: dict[Connection, RunPlan]) -> None:
    """Give a worker its next plan; None: there is no more. If it is dead its answer says so."""
    if plan is not None:
        given[worker] = plan
    with suppress(ConnectionError):
        worker.send(plan)


def _answer(worker: Connection, process: ForkProcess) -> RunData:
    try:
        answer: RunData | Exception = worker.recv()
    except (EOFError, OSError):  # between two answers, or in the middle of one
        process.join(END_LIMIT_S)
        how = how_it_ended(process.exitcode, worked=False)
        raise AgentError(f"a worker gave no result: it {how}") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


@contextlib.contextmanager
def cluster_at(scheduler: str | None, engine: Engine, *, trust: bool) -> Iterator[Cluster | None]:
    """The workers of a Dask scheduler, to `trust` its network without TLS; None without one.
    InputError if they cannot be had.
    """
    if scheduler is None:
        yield None
        return
    try:
        from shrimpmx.experiment.remote.dask_cluster import connected
    except ModuleNotFoundError as error:
        raise InputError(
            f"--scheduler needs Dask, and there is no {error.name}: install shrimpmx[dask]"
        ) from error
    with connected(scheduler, real=engine.is_real, trust_network=trust) as cluster:
        yield cluster


def runs_beside(
    workers: int,
    cluster: Cluster | None,
    engine: Engine,
    scenario: Scenario,
    file: ScenarioFile,
) -> Beside | None:
    """What makes the runs of a scenario of `file`: the `cluster`, or as many processes as
    there are `workers`; None: this process.
    """
    if cluster is not None:
        return Remote(cluster, job_of(engine, scenario, file), real=engine.is_real)
    return None if workers == 1 else functools.partial(measured_beside, workers=workers)


def job_of(engine: Engine, scenario: Scenario, file: ScenarioFile) -> Job:
    """What other machines need for the runs of a scenario of `file`."""
    points = scenario.points()
    used = {point.policy for point in points} | {point.wait for point in points}
    rules = {
        name: OwnRule.of(Path(rule.file), rule.source, name=rule.name)
        for name, rule in {**scenario.policies, **scenario.waits}.items()
        if isinstance(rule, OwnClass) and name in used
    }
    own_code: dict[str, Any] = {"rules": rules} if rules else {}
    if used - {*rules, ""}:
        own_code["scenario"] = OwnFile.of(file.path, text_of(file.path, file.source))
    return Job(
        engine=engine.name,
        metrics=scenario.metrics,
        directory=os.getcwd(),
        needed_costs=tuple(sorted(needed_costs(points))),
        **own_code,
    )
