"""Runs of a sweep in processes beside each other, where none disturbs another."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from shrimpmx.cluster.engine.onlooker import TELL_S
from shrimpmx.errors import AgentError
from shrimpmx.native.cores import die_with_parent
from shrimpmx.study.progress import awaited_words
from shrimpmx.study.run_data import RunData
from shrimpmx.study.scenario import RunPlan
from shrimpmx.study.sweep import Sweep

Measure = Callable[[RunPlan], RunData]


class _Adopted:
    """What a worker does, which it has from the process that forked it."""

    measure: Measure


def _adopt(measure: Measure, parent: int) -> None:
    # The parent alone answers the terminal, and ends its workers.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    die_with_parent(parent)
    _Adopted.measure = measure


def _measured(plan: RunPlan) -> RunData:
    return _Adopted.measure(plan)


def measured_beside(
    sweep: Sweep, plans: Sequence[RunPlan], workers: int
) -> Iterator[tuple[RunPlan, RunData]]:
    """Each plan of a sweep with its run, as it is finished, by so many workers, or one for each
    plan. What a run raises ends them all; AgentError if a worker was killed.
    """
    # Forked: policies and strategies of a scenario file are of no module that others could import.
    context = multiprocessing.get_context("fork")
    count = max(1, min(workers, len(plans)))  # the pool forks all of them at once
    pool = ProcessPoolExecutor(count, context, _adopt, (sweep.measured, os.getpid()))
    futures: dict[Future[RunData], RunPlan] = {}
    ended: queue.SimpleQueue[Future[RunData]] = queue.SimpleQueue()
    try:
        for plan in plans:
            futures[future := pool.submit(_measured, plan)] = plan
            future.add_done_callback(ended.put)
        while futures:
            try:
                future = ended.get(timeout=TELL_S)
            except queue.Empty:
                if sweep.progress:
                    running = min(len(futures), count)
                    sweep.progress.waits_for(awaited_words(running, running))
                continue
            yield futures.pop(future), future.result()
        pool.shutdown()
    except BaseException as error:
        # What they have begun is not waited for.
        for worker in multiprocessing.active_children():
            worker.kill()
        pool.shutdown(cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise AgentError("a process that simulated points was killed") from error
        raise
