"""Metrics of whole runs, for programs that know best what a round is."""

from __future__ import annotations

from shrimpmx.results.metric import Metric, Outcome, one, ranks_usage, total
from shrimpmx.results.statistics import Samples


def _run_time(outcome: Outcome) -> Samples | str:
    times = [ns for rank, ns in outcome.elapsed_ns.items() if rank in outcome.ranks]
    return one(max(times) / 1000) if times else "no rank told how long it worked"


def _run_cpu_time(outcome: Outcome) -> Samples | str:
    used_ns = ranks_usage(outcome, "task_clock_ns")
    return "the kernel gave no CPU time of the ranks" if used_ns is None else one(used_ns / 1000)


def _run_interrupts(outcome: Outcome) -> Samples | str:
    return one(total(outcome.counters, "irq_raised"))


RUN_METRICS = (
    Metric(
        "run_time",
        "Run time",
        "us",
        "time from the start of the ranks' work until the last rank is done",
        _run_time,
        "time",
    ),
    Metric(
        "run_cpu_time",
        "CPU time of the ranks",
        "us",
        "user and system time of all ranks in a run",
        _run_cpu_time,
        "time",
    ),
    Metric(
        "run_interrupts",
        "Interrupts of a run",
        "irq",
        "interrupts that the NICs raised while the ranks worked",
        _run_interrupts,
        "count",
    ),
)
