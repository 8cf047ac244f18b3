"""The metrics of waiting: what a round trip, a wait or a block costs ranks and handlers.

Times are per rank and round trip, as in the waiting paper's Figure 3; a rank that is not running
since another has its CPU uses wall time and no CPU time.
"""

from __future__ import annotations

from collections.abc import Sequence

from shrimpmx.results import competitive
from shrimpmx.results.metric import AbsentError, MetricTable, Outcome, some, times_of
from shrimpmx.results.statistics import Samples

WAITING_METRICS = MetricTable()
NO_ROUND_TRIPS = "the workload has no round trips"
NO_USAGE = "the kernel gave no account of the ranks"
NO_WAIT = "no rank waited"
NO_COST = "every message was there at once: no cost at best"


def _per_round_trip(run: Outcome, name: str) -> float:
    """A time of the kernel's account, us per rank and round trip."""
    iterations = some(run.iterations, NO_ROUND_TRIPS)
    return run.used(name, absent=NO_USAGE) / len(run.ranks) / iterations / 1000


def _waits(run: Outcome) -> int:
    return some(run.account("waits"), NO_WAIT)


def _scheduler_runs(run: Outcome) -> float:
    """How often ranks had the kernel's scheduler run: when they slept, and at each yield.

    The kernel counts a yield that switched as involuntary, like a preemption by a handler; one that
    found no other process it does not count at all. The waiting account has both.
    """
    return run.used("voluntary_switches", absent=NO_USAGE) + run.account("yields")


def _wakes(run: Outcome) -> int:
    """How often handlers woke ranks, by themselves or by a notification."""
    return run.total("vmmc_wakes", "vmmc_notifications")


def _figures(run: Outcome, *names: str, absent: str) -> list[Samples]:
    """Figures of the workload. AbsentError if it does not give them all."""
    found = [run.figures[name] for name in names if name in run.figures]
    if len(found) < len(names) or not all(part.size for part in found):
        raise AbsentError(absent)
    return found


def _arrivals(run: Outcome) -> tuple[list[float], float]:
    """The delays of all arrivals and what blocking costs, ns."""
    (delays,) = _figures(
        run, "arrival_ns", absent="only the workload arrivals tells when each message came"
    )
    if run.t_block_ns is None:
        raise AbsentError(
            "the cost of blocking on this machine is not known: shrimpmx calibrate gives the reason"
        )
    return delays.tolist(), run.t_block_ns


def _per_block(run: Outcome, *names: str) -> float:
    """Times of the workload, us per block, over all ranks that give them."""
    absent = "only the workload file-service reads blocks"
    blocks, *times = _figures(run, "blocks", *names, absent=absent)
    return float(sum(time.sum() for time in times) / some(blocks.sum(), absent)) / 1000


@WAITING_METRICS.metric("Wall time", "us", "time")
def wall_time(run: Outcome) -> float:
    """Wall time of a rank per round trip, time of other processes on its CPU included."""
    elapsed = [run.elapsed_ns[rank] for rank in run.ranks if rank in run.elapsed_ns]
    mean_ns = sum(some(elapsed, NO_ROUND_TRIPS)) / len(elapsed)
    return mean_ns / some(run.iterations, NO_ROUND_TRIPS) / 1000


@WAITING_METRICS.metric("User time", "us", "time")
def user_time(run: Outcome) -> float:
    """User time of a rank per round trip: computing, sending, spinning."""
    return _per_round_trip(run, "user_ns")


@WAITING_METRICS.metric("System time", "us", "time")
def system_time(run: Outcome) -> float:
    """System time of a rank per round trip."""
    return _per_round_trip(run, "system_ns")


@WAITING_METRICS.metric("CPU time", "us", "time")
def cpu_time(run: Outcome) -> float:
    """User and system time of a rank per round trip."""
    return _per_round_trip(run, "task_clock_ns")


@WAITING_METRICS.metric("Reschedules", "runs", "count")
def reschedules(run: Outcome) -> float:
    """Runs of the kernel's scheduler for a rank, by a sleep or a yield, per round trip."""
    iterations = some(run.iterations, NO_ROUND_TRIPS)
    return _scheduler_runs(run) / len(run.ranks) / iterations


@WAITING_METRICS.metric("Reschedules per system call", "runs", "count")
def reschedules_per_call(run: Outcome) -> float:
    """Runs of the kernel's scheduler for the ranks, per system call for waiting."""
    calls = some(run.account("system_calls"), "no rank made a system call to wait")
    return _scheduler_runs(run) / calls


@WAITING_METRICS.metric("Interrupts per wait", "irq", "count")
def interrupts_per_wait(run: Outcome) -> float:
    """Interrupts taken by handlers, per wait of the ranks."""
    return run.total("interrupts") / _waits(run)


@WAITING_METRICS.metric("Sleeps per wait", "sleeps", "count")
def sleeps_per_wait(run: Outcome) -> float:
    """Sleeps of the ranks, per wait."""
    return run.account("blocks") / _waits(run)


@WAITING_METRICS.metric("Wake-ups per sleep", "wakes", "count")
def wakes_per_sleep(run: Outcome) -> float:
    """Wake-ups and notifications of ranks by handlers, per sleep; slightly above one
    if some prevent a sleep that was about to begin.
    """
    return _wakes(run) / some(run.account("blocks"), "no rank slept")


@WAITING_METRICS.metric("Wake-ups per wait", "wakes", "count")
def wakes_per_wait(run: Outcome) -> float:
    """Wake-ups and notifications of ranks by handlers, per wait."""
    return _wakes(run) / _waits(run)


@WAITING_METRICS.metric("Found while spinning", "%", "count", "higher")
def found_spinning(run: Outcome) -> float:
    """Share of waits that spun and ended before the rank gave up its CPU."""
    return 100 * run.account("while_spinning") / _waits(run)


@WAITING_METRICS.metric("Wrong flags per wait", "waits", "count")
def wrong_flags(run: Outcome) -> float:
    """Share of waits for any of several flags that ended without the written flag."""
    absent = "only the workload flags counts them"
    wrong, waits = _figures(run, "wrong_flags", "waits", absent=absent)
    return float(wrong.sum() / waits.sum())


@WAITING_METRICS.metric("Cost of a wait", "us", "time")
def waiting_cost(run: Outcome) -> float:
    """Mean CPU time of a rank and its node's handlers per wait."""
    absent = "only the workload arrivals records the cost of each wait"
    (cost_ns,) = _figures(run, "wait_cpu_ns", absent=absent)
    waits = sum(run.accounts.get(rank, {}).get("waits", 0) for rank in _waiters(run))
    some(waits, absent)
    handlers = [usage for name, usage in run.usage.items() if name.startswith("node1.irq")]
    if not handlers or any("task_clock_ns" not in usage for usage in handlers):
        raise AbsentError("the kernel reported no CPU time of the handlers")
    handling_ns = sum(usage["task_clock_ns"] for usage in handlers) / waits
    return (float(cost_ns.mean()) + handling_ns) / 1000


def _waiters(run: Outcome) -> Sequence[str]:
    """Those ranks that await arrivals: of each pair, the one on node 1."""
    return run.ranks[1::2]


@WAITING_METRICS.metric("Optimal cost of a wait", "us", "time")
def optimal_cost(run: Outcome) -> float:
    """Mean cost of the same waits at best: the arrival delay, at most T_block."""
    delays, t_block_ns = _arrivals(run)
    return competitive.offline_cost(delays, t_block_ns) / len(delays) / 1000


@WAITING_METRICS.metric("Cost over the optimum", "times", "time")
def competitive_ratio(run: Outcome) -> float:
    """Cost of the waits over the optimum for the same arrival delays."""
    cost, optimum = waiting_cost(run), optimal_cost(run)
    return cost / some(optimum, NO_COST)


@WAITING_METRICS.metric("Best fixed limit over the optimum", "times", "time")
def best_limit_ratio(run: Outcome) -> float:
    """Cost of the best fixed spin limit, computed from the arrival delays alone, over the
    optimum.
    """
    delays, t_block_ns = _arrivals(run)
    some(any(delays), NO_COST)
    limit_ns = competitive.best_fixed_limit(delays, t_block_ns)
    return competitive.competitive_ratio(delays, limit_ns, t_block_ns)


@WAITING_METRICS.metric("Throughput", "MB/s", "time", "higher")
def throughput(run: Outcome) -> float:
    """Bytes received per second after the warm-up, in millions; one figure per run."""
    absent = "only the workload ttcp counts bytes"
    received, messages = _figures(run, "bytes", "messages", absent=absent)
    return float((1000 * float(received.sum() / messages.sum()) / times_of(run, absent)).sum())


@WAITING_METRICS.metric("Time per block", "us", "time")
def block_time(run: Outcome) -> float:
    """Wall time per block read or written, for all threads together; one figure per run."""
    return _per_block(run, "wall_ns")


@WAITING_METRICS.metric("CPU time per block", "us", "time")
def block_cpu(run: Outcome) -> float:
    """User and system time of all ranks per block, over the same interval as its wall time."""
    return _per_block(run, "user_ns", "system_ns")


@WAITING_METRICS.metric("User time per block", "us", "time")
def block_user(run: Outcome) -> float:
    """User time of all ranks per block, over the same interval as its wall time."""
    return _per_block(run, "user_ns")


@WAITING_METRICS.metric("System time per block", "us", "time")
def block_system(run: Outcome) -> float:
    """System time of all ranks per block, over the same interval as its wall time."""
    return _per_block(run, "system_ns")
