"""Metrics of whole runs, for programs that know best what a round is."""

from __future__ import annotations

from shrimpmx.results.metric import MetricTable, Outcome, some

RUN_METRICS = MetricTable()


@RUN_METRICS.metric("Run time", "us", "time")
def run_time(run: Outcome) -> float:
    """Time from the start of the ranks' work until the last rank is done."""
    times = [ns for rank, ns in run.elapsed_ns.items() if rank in run.ranks]
    return max(some(times, "no rank told how long it worked")) / 1000


@RUN_METRICS.metric("CPU time of the ranks", "us", "time")
def run_cpu_time(run: Outcome) -> float:
    """User and system time of all ranks in a run."""
    return run.used("task_clock_ns", absent="the kernel gave no CPU time of the ranks") / 1000


@RUN_METRICS.metric("Interrupts of a run", "irq", "count")
def run_interrupts(run: Outcome) -> float:
    """Interrupts that the NICs raised while the ranks worked."""
    return run.total("irq_raised")
