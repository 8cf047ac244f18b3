"""Metrics of whole runs, for programs that know best what a round is.

An MPI program's metrics cover its work: from the last rank's return from MPI_Init until
each rank comes to MPI_Finalize or ends its interpreter; or of its sections (MPI_Pcontrol).
"""

from __future__ import annotations

from shrimpmx.results.metric import AbsentError, MetricTable, Outcome, some

RUN_METRICS = MetricTable()


@RUN_METRICS.metric("Run time", "us", "time")
def run_time(run: Outcome) -> float:
    """Time from the start of the ranks' work until the last rank is done."""
    times = [ns for rank, ns in run.elapsed_ns.items() if rank in run.ranks]
    return max(some(times, "no rank told how long it worked")) / 1000


@RUN_METRICS.metric("CPU time of the ranks", "us", "time")
def run_cpu_time(run: Outcome) -> float:
    """User and system time of all ranks in their work."""
    return run.used("task_clock_ns", absent="the kernel gave no CPU time of the ranks") / 1000


@RUN_METRICS.metric("CPU time of the handlers", "us", "time")
def run_handler_cpu_time(run: Outcome) -> float:
    """User and system time of all interrupt handlers while the ranks worked."""
    return handlers_cpu_ns(run) / 1000


@RUN_METRICS.metric("Interrupts of a run", "irq", "count")
def run_interrupts(run: Outcome) -> float:
    """Interrupts that the NICs raised while the ranks worked."""
    return run.total("irq_raised")


@RUN_METRICS.metric("Work's share of the run", "%", "count", "", is_judged=False)
def work_share(run: Outcome) -> float:
    """The run time as a share of the whole run, from the start of its processes to their end."""
    whole_ns = some(run.whole_ns, "only runs of programs tell how long all of them took")
    return 100 * run_time(run) * 1000 / whole_ns


def handlers_cpu_ns(run: Outcome) -> float:
    """CPU time of all interrupt handlers. AbsentError if there is none."""
    handlers = [usage for name, usage in run.usage.items() if ".irq" in name]
    some(handlers, "there is no interrupt handler: the NIC handles packets itself")
    if any("task_clock_ns" not in usage for usage in handlers):
        raise AbsentError("the kernel gave no CPU time of the handlers")
    return sum(usage["task_clock_ns"] for usage in handlers)
