"""Metrics of waiting: what they are made of, and the reasons why there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shrimpmx.results.metrics import METRICS, Outcome

RANKS = ("rank0", "rank1", "rank2", "rank3")


def outcome(**given: Any) -> Outcome:
    """Four ranks, ten iterations each."""
    fields: dict[str, Any] = {"samples": np.empty(0), "counters": {}, "ranks": RANKS}
    return Outcome(**{**fields, "iterations": 10, **given})


def figure(name: str, of: Outcome) -> float:
    found = METRICS[name].compute(of)
    assert not isinstance(found, str), found
    (value,) = found
    return float(value)


def of_each(**entries: int) -> dict[str, dict[str, int]]:
    return {rank: dict(entries) for rank in RANKS}


def test_times_are_per_rank_and_round_trip_in_us() -> None:
    usage = of_each(user_ns=400_000, system_ns=200_000, task_clock_ns=610_000)
    usage["node0.irq0"] = {"user_ns": 10**9, "system_ns": 10**9, "task_clock_ns": 10**9}
    elapsed = {"rank0": 1_000_000, "rank1": 2_000_000, "rank2": 3_000_000, "rank3": 2_000_000}
    of = outcome(usage=usage, elapsed_ns={**elapsed, "nic": 10**9})
    assert figure("wall_time", of) == 200
    assert figure("user_time", of) == 40
    assert figure("system_time", of) == 20
    assert figure("cpu_time", of) == 61


def test_reschedules_are_sleeps_and_yields_but_no_preemptions() -> None:
    of = outcome(
        usage=of_each(voluntary_switches=12, involuntary_switches=30),
        accounts=of_each(system_calls=6, waits=20, yields=3),
    )
    assert figure("reschedules", of) == 1.5
    assert figure("reschedules_per_call", of) == 2.5


def test_interrupts_and_sleeps_are_per_wait_of_the_ranks() -> None:
    of = outcome(
        accounts={**of_each(waits=10, blocks=4), "node0.irq0": {"waits": 999, "blocks": 999}},
        counters={
            "node0.irq0": {"interrupts": 12, "vmmc_wakes": 5},
            "node1.irq0": {"interrupts": 8, "vmmc_wakes": 1, "vmmc_notifications": 2},
        },
    )
    assert figure("interrupts_per_wait", of) == 0.5
    assert figure("sleeps_per_wait", of) == 0.4
    assert figure("wakes_per_sleep", of) == 0.5
    assert figure("wakes_per_wait", of) == 0.2


def test_a_message_that_was_there_at_once_was_not_found_spinning() -> None:
    of = outcome(accounts=of_each(waits=10, at_once=3, while_spinning=4))
    assert figure("taken_spinning", of) == 70
    assert figure("found_spinning", of) == 40


def test_wrong_flags_are_per_wait_for_flags() -> None:
    figures = {"wrong_flags": np.array([0.0, 3.0]), "waits": np.array([20.0, 40.0])}
    assert figure("wrong_flags", outcome(figures=figures)) == 0.05


def competition(**more: Any) -> Outcome:
    """Four waits of rank 1, of which half come within T_block."""
    return outcome(
        ranks=("rank0", "rank1"),
        figures={
            "arrival_ns": np.array([10_000.0, 30_000.0, 100_000.0, 900_000.0]),
            "wait_cpu_ns": np.array([11_000.0, 31_000.0, 79_000.0, 79_000.0]),
        },
        accounts={"rank0": {"waits": 4}, "rank1": {"waits": 5}},
        usage={
            "node0.irq0": {"task_clock_ns": 10**9},
            "node1.irq0": {"task_clock_ns": 40_000},
            "node1.irq1": {"task_clock_ns": 10_000},
            "rank1": {"task_clock_ns": 10**9},
        },
        t_block_ns=40_000.0,
        **more,
    )


def test_the_cost_of_a_wait_is_the_waiters_and_its_handlers_cpu_time() -> None:
    # 50 us of CPU for each wait, and 50 us of node 1's handlers over all five.
    assert figure("waiting_cost", competition()) == 50 + 10
    # 10 and 30 spinning, 40 and 40 blocking.
    assert figure("optimal_cost", competition()) == 30
    assert figure("competitive_ratio", competition()) == 2
    # In hindsight 0, four times 40: a limit of 30 would have cost 10, 30, and twice 30 + 40.
    assert figure("best_limit_ratio", competition()) == 160 / 120


def test_a_competitive_ratio_needs_a_cost_at_best() -> None:
    of = competition()
    at_once = {**of.figures, "arrival_ns": np.zeros(4)}
    for name in ("competitive_ratio", "best_limit_ratio"):
        words = METRICS[name].compute(outcome(**{**vars(of), "figures": at_once}))
        assert words == "every message was there at once: no cost at best"


def test_an_optimum_needs_what_blocking_costs() -> None:
    of = outcome(**{**vars(competition()), "t_block_ns": None})
    for name in ("optimal_cost", "competitive_ratio", "best_limit_ratio"):
        assert str(METRICS[name].compute(of)).startswith("the cost of blocking on this machine is")


def test_throughput_is_in_millions_of_bytes_per_second() -> None:
    figures = {"bytes": np.array([640_000.0]), "messages": np.array([10_000.0])}
    of = outcome(samples=np.array([32.0]), figures=figures)
    assert figure("throughput", of) == 2000
    assert METRICS["throughput"].unit == "MB/s"
    assert METRICS["throughput"].scale(2.0) == 2


def test_blocks_have_each_their_time_and_a_share_of_all_ranks_cpu() -> None:
    """The rank that answers accesses no blocks, and gives no wall time."""
    figures = {
        "wall_ns": np.array([800_000.0]),
        "blocks": np.array([8.0, 0.0]),
        "user_ns": np.array([100_000.0, 60_000.0]),
        "system_ns": np.array([60_000.0, 20_000.0]),
    }
    of = outcome(figures=figures, usage=of_each(user_ns=10**9, system_ns=10**9))
    assert figure("block_time", of) == 100
    assert figure("block_user", of) == 20
    assert figure("block_system", of) == 10
    assert figure("block_cpu", of) == 30


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wall_time", "the workload has no round trips"),
        ("cpu_time", "the kernel gave no account of the ranks"),
        ("reschedules", "the kernel gave no account of the ranks"),
        ("reschedules_per_call", "no rank made a system call to wait"),
        ("interrupts_per_wait", "no rank waited"),
        ("sleeps_per_wait", "no rank waited"),
        ("wakes_per_sleep", "no rank slept"),
        ("wakes_per_wait", "no rank waited"),
        ("found_spinning", "no rank waited"),
        ("wrong_flags", "only the workload flags counts them"),
        ("waiting_cost", "only the workload arrivals records the cost of each wait"),
        ("optimal_cost", "only the workload arrivals tells when each message came"),
        ("competitive_ratio", "only the workload arrivals records the cost of each wait"),
        ("throughput", "only the workload ttcp counts bytes"),
        ("block_time", "only the workload file-service reads blocks"),
        ("block_cpu", "only the workload file-service reads blocks"),
        ("block_user", "only the workload file-service reads blocks"),
        ("best_limit_ratio", "only the workload arrivals tells when each message came"),
    ],
)
def test_without_figures_there_is_a_reason(name: str, reason: str) -> None:
    assert METRICS[name].compute(outcome()) == reason


def test_counts_are_taken_over_all_runs_and_times_are_not() -> None:
    counts = ("reschedules", "reschedules_per_call", "interrupts_per_wait", "sleeps_per_wait")
    more = ("wakes_per_sleep", "wakes_per_wait", "wrong_flags", "found_spinning")
    assert {METRICS[name].kind for name in (*counts, *more)} == {"count"}
    times = ("wall_time", "user_time", "system_time", "cpu_time", "throughput", "block_time")
    assert {METRICS[name].kind for name in times} == {"time"}
