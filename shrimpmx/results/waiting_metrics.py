"""The metrics of waiting: what a round trip, a wait or a block costs ranks and handlers.

Times are per rank and round trip, as in the waiting paper's Figure 3; a rank that is not running
since another has its CPU uses wall time and no CPU time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shrimpmx.results.competitive import best_fixed_limit, competitive_ratio, offline_cost
from shrimpmx.results.metric import Metric, Outcome, one, ranks_account, ranks_usage, total
from shrimpmx.results.statistics import Samples

NO_ROUND_TRIPS = "the workload has no round trips"
NO_USAGE = "the kernel gave no account of the ranks"
NO_WAIT = "no rank waited"
NO_COST = "every message was there at once: no cost at best"
NO_BLOCKS = "only the workload file-service reads blocks"


def _wall_time(outcome: Outcome) -> Samples | str:
    elapsed = [outcome.elapsed_ns[rank] for rank in outcome.ranks if rank in outcome.elapsed_ns]
    if not elapsed or not outcome.iterations:
        return NO_ROUND_TRIPS
    return one(sum(elapsed) / len(elapsed) / outcome.iterations / 1000)


def _per_round_trip(name: str) -> Callable[[Outcome], Samples | str]:
    """A time of the kernel's account, us per rank and round trip."""

    def compute(outcome: Outcome) -> Samples | str:
        used = ranks_usage(outcome, name)
        if not outcome.iterations:
            return NO_ROUND_TRIPS
        if used is None:
            return NO_USAGE
        return one(used / len(outcome.ranks) / outcome.iterations / 1000)

    return compute


def _per_wait(name: str) -> Callable[[Outcome], Samples | str]:
    """An entry of the waiting account, per wait of the ranks."""

    def compute(outcome: Outcome) -> Samples | str:
        waits = ranks_account(outcome, "waits")
        return one(ranks_account(outcome, name) / waits) if waits else NO_WAIT

    return compute


def _scheduler_runs(outcome: Outcome) -> float | None:
    """How often ranks had the kernel's scheduler run: when they slept, and at each yield.

    The kernel counts a yield that switched as involuntary, like a preemption by a handler; one that
    found no other process it does not count at all. The waiting account has both.
    """
    slept = ranks_usage(outcome, "voluntary_switches")
    return None if slept is None else slept + ranks_account(outcome, "yields")


def _reschedules(outcome: Outcome) -> Samples | str:
    runs = _scheduler_runs(outcome)
    if not outcome.iterations:
        return NO_ROUND_TRIPS
    if runs is None:
        return NO_USAGE
    return one(runs / len(outcome.ranks) / outcome.iterations)


def _reschedules_per_call(outcome: Outcome) -> Samples | str:
    calls, runs = ranks_account(outcome, "system_calls"), _scheduler_runs(outcome)
    if not calls:
        return "no rank made a system call to wait"
    return one(runs / calls) if runs is not None else NO_USAGE


def _interrupts_per_wait(outcome: Outcome) -> Samples | str:
    waits = ranks_account(outcome, "waits")
    return one(total(outcome.counters, "interrupts") / waits) if waits else NO_WAIT


def _wakes(outcome: Outcome) -> int:
    """How often handlers woke ranks, by themselves or by a notification."""
    return total(outcome.counters, "vmmc_wakes") + total(outcome.counters, "vmmc_notifications")


def _wakes_per_sleep(outcome: Outcome) -> Samples | str:
    sleeps = ranks_account(outcome, "blocks")
    return one(_wakes(outcome) / sleeps) if sleeps else "no rank slept"


def _wakes_per_wait(outcome: Outcome) -> Samples | str:
    waits = ranks_account(outcome, "waits")
    return one(_wakes(outcome) / waits) if waits else NO_WAIT


def _found_spinning(outcome: Outcome) -> Samples | str:
    waits = ranks_account(outcome, "waits")
    return one(100 * ranks_account(outcome, "while_spinning") / waits) if waits else NO_WAIT


def _figures(outcome: Outcome, *names: str) -> list[Samples] | None:
    """Figures of the workload; None if it does not give them all."""
    found = [outcome.figures[name] for name in names if name in outcome.figures]
    return found if len(found) == len(names) and all(part.size for part in found) else None


def _wrong_flags(outcome: Outcome) -> Samples | str:
    found = _figures(outcome, "wrong_flags", "waits")
    if found is None:
        return "only the workload flags counts them"
    wrong, waits = found
    return one(float(wrong.sum() / waits.sum()))


def _waiters(outcome: Outcome) -> Sequence[str]:
    """Those ranks that await arrivals: of each pair, the one on node 1."""
    return outcome.ranks[1::2]


def _waiting_cost(outcome: Outcome) -> Samples | str:
    found = _figures(outcome, "wait_cpu_ns")
    waits = sum(outcome.accounts.get(rank, {}).get("waits", 0) for rank in _waiters(outcome))
    if found is None or not waits:
        return "only the workload arrivals tells what each wait cost"
    handlers = [usage for name, usage in outcome.usage.items() if name.startswith("node1.irq")]
    if not handlers or any("task_clock_ns" not in usage for usage in handlers):
        return "the kernel gave no CPU time of the handlers"
    handling_ns = sum(usage["task_clock_ns"] for usage in handlers) / waits
    return one((float(found[0].mean()) + handling_ns) / 1000)


def _arrivals(outcome: Outcome) -> tuple[list[float], float] | str:
    """The delays of all arrivals and what blocking costs, ns; or what is not known of them."""
    found = _figures(outcome, "arrival_ns")
    if found is None:
        return "only the workload arrivals tells when each message came"
    if outcome.t_block_ns is None:
        return "what blocking costs on this machine is not known: shrimpmx calibrate tells why"
    return found[0].tolist(), outcome.t_block_ns


def _optimal_cost(outcome: Outcome) -> Samples | str:
    known = _arrivals(outcome)
    if isinstance(known, str):
        return known
    delays, t_block_ns = known
    return one(offline_cost(delays, t_block_ns) / len(delays) / 1000)


def _best_limit_ratio(outcome: Outcome) -> Samples | str:
    known = _arrivals(outcome)
    if isinstance(known, str):
        return known
    delays, t_block_ns = known
    limit_ns = best_fixed_limit(delays, t_block_ns)
    return one(competitive_ratio(delays, limit_ns, t_block_ns)) if any(delays) else NO_COST


def _competitive_ratio(outcome: Outcome) -> Samples | str:
    cost, optimum = _waiting_cost(outcome), _optimal_cost(outcome)
    if isinstance(cost, str):
        return cost
    if isinstance(optimum, str):
        return optimum
    return cost / optimum if optimum[0] > 0 else NO_COST


def _throughput(outcome: Outcome) -> Samples | str:
    found = _figures(outcome, "bytes", "messages")
    if found is None or not outcome.samples.size:
        return "only the workload ttcp counts bytes"
    message_bytes = float(found[0].sum() / found[1].sum())
    return one(float((1000 * message_bytes / outcome.samples).sum()))


def _per_block(*names: str) -> Callable[[Outcome], Samples | str]:
    """Times of the workload, us per block, over all ranks that give them."""

    def compute(outcome: Outcome) -> Samples | str:
        found = _figures(outcome, "blocks", *names)
        if found is None or not found[0].sum():
            return NO_BLOCKS
        blocks, *times = found
        return one(float(sum(time.sum() for time in times) / blocks.sum()) / 1000)

    return compute


ROUND_TRIPS = (
    Metric(
        "wall_time",
        "Wall time",
        "us",
        "time from round trip to round trip of a rank, its CPU's other users included",
        _wall_time,
        "time",
    ),
    Metric(
        "user_time",
        "User time",
        "us",
        "time of a rank in user mode per round trip: computing, sending, spinning",
        _per_round_trip("user_ns"),
        "time",
    ),
    Metric(
        "system_time",
        "System time",
        "us",
        "time of a rank in the kernel per round trip",
        _per_round_trip("system_ns"),
        "time",
    ),
    Metric(
        "cpu_time",
        "CPU time",
        "us",
        "user and system time of a rank per round trip",
        _per_round_trip("task_clock_ns"),
        "time",
    ),
    Metric(
        "reschedules",
        "Reschedules",
        "runs",
        "times that a rank had the kernel's scheduler run, by a sleep or a yield, per round trip",
        _reschedules,
        "count",
    ),
)
WAITS = (
    Metric(
        "reschedules_per_call",
        "Reschedules per system call",
        "runs",
        "times that ranks had the kernel's scheduler run, per system call that they made to wait",
        _reschedules_per_call,
        "count",
    ),
    Metric(
        "interrupts_per_wait",
        "Interrupts per wait",
        "irq",
        "interrupts that handlers took, per wait of the ranks",
        _interrupts_per_wait,
        "count",
    ),
    Metric(
        "sleeps_per_wait",
        "Sleeps per wait",
        "sleeps",
        "times that ranks went to sleep, per wait",
        _per_wait("blocks"),
        "count",
    ),
    Metric(
        "wakes_per_sleep",
        "Wake-ups per sleep",
        "wakes",
        "times that handlers woke or notified ranks, per time that one went to sleep",
        _wakes_per_sleep,
        "count",
    ),
    Metric(
        "wakes_per_wait",
        "Wake-ups per wait",
        "wakes",
        "times that handlers woke or notified ranks, per wait",
        _wakes_per_wait,
        "count",
    ),
    Metric(
        "found_spinning",
        "Found while spinning",
        "%",
        "waits that spun, and found what they waited for before the rank gave up its CPU",
        _found_spinning,
        "count",
        "higher",
    ),
    Metric(
        "wrong_flags",
        "Wrong flags per wait",
        "waits",
        "waits for any of a set of flags that ended with another one changed than was written",
        _wrong_flags,
        "count",
    ),
)
COSTS = (
    Metric(
        "waiting_cost",
        "Cost of a wait",
        "us",
        "mean CPU time that a rank uses in a wait, and its node's handlers for it",
        _waiting_cost,
        "time",
    ),
    Metric(
        "optimal_cost",
        "Optimal cost of a wait",
        "us",
        "mean of what the same waits cost at best: the arrival delay, but no more than T_block",
        _optimal_cost,
        "time",
    ),
    Metric(
        "competitive_ratio",
        "Cost over the optimum",
        "times",
        "cost of a wait over the optimum for the same arrival delays",
        _competitive_ratio,
        "time",
    ),
    Metric(
        "best_limit_ratio",
        "Best fixed limit over the optimum",
        "times",
        "what the fixed spin limit that fits these arrival delays best would have cost, told from "
        "the delays alone, over the optimum",
        _best_limit_ratio,
        "time",
    ),
)
TRANSFERS = (
    Metric(
        "throughput",
        "Throughput",
        "MB/s",
        "bytes received per second behind the warm-up, in millions; one figure per run",
        _throughput,
        "time",
        "higher",
    ),
    Metric(
        "block_time",
        "Time per block",
        "us",
        "wall time per block that is read or written, of all threads together; one figure per run",
        _per_block("wall_ns"),
        "time",
    ),
    Metric(
        "block_cpu",
        "CPU time per block",
        "us",
        "user and system time of all ranks, in the same time as its wall time, per block",
        _per_block("user_ns", "system_ns"),
        "time",
    ),
    Metric(
        "block_user",
        "User time per block",
        "us",
        "time of all ranks in user mode, in the same time as its wall time, per block",
        _per_block("user_ns"),
        "time",
    ),
    Metric(
        "block_system",
        "System time per block",
        "us",
        "time of all ranks in the kernel, in the same time as its wall time, per block",
        _per_block("system_ns"),
        "time",
    ),
)
WAITING_METRICS = (*ROUND_TRIPS, *WAITS, *COSTS, *TRANSFERS)
