"""Runs of a sweep in processes beside each other, where none disturbs another."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed

from shrimpmx.study.run_data import RunData
from shrimpmx.study.scenario import RunPlan

Measure = Callable[[RunPlan], RunData]


class _Adopted:
    """What a worker does, which it has from the process that forked it."""

    measure: Measure


def _adopt(measure: Measure) -> None:
    _Adopted.measure = measure


def _measured(plan: RunPlan) -> RunData:
    return _Adopted.measure(plan)


def measured_beside(
    plans: Sequence[RunPlan], measure: Measure, workers: int
) -> Iterator[tuple[RunPlan, RunData]]:
    """Each plan with its run, as it is finished. What a run raises ends them all."""
    # Forked: policies and strategies of a scenario file are of no module that others could import.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, _adopt, (measure,)) as pool:
        futures: dict[Future[RunData], RunPlan] = {}
        try:
            for plan in plans:
                futures[pool.submit(_measured, plan)] = plan
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
