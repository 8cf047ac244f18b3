"""What a run's result says of the work alone."""

from __future__ import annotations

from typing import Any

from shrimpmx.cluster.engine.result import ClusterResult

NOWHERE: Any = None


def test_work_is_what_was_counted_since_it_began() -> None:
    result = ClusterResult(
        NOWHERE,
        counters={"node0.nic": {"irq_raised": 9, "rx_packets": 4}, "rank0": {"progress_calls": 1}},
        counters_before={"node0.nic": {"irq_raised": 2}},
    )
    assert result.worked("node0.nic") == {"irq_raised": 7, "rx_packets": 4}
    assert result.worked("rank0") == {"progress_calls": 1}


def test_the_longest_of_times_is_not_subtracted() -> None:
    longest = {"irq_deferred_longest_ns": 700}
    result = ClusterResult(
        NOWHERE,
        counters={"node0.nic": longest},
        counters_before={"node0.nic": {"irq_deferred_longest_ns": 600}},
    )
    assert result.worked("node0.nic") == longest
