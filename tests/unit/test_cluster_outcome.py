"""What a run's result says of the work alone."""

from __future__ import annotations

from typing import Any

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.experiment.outcome import outcome_of

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


def test_an_outcome_tells_of_pauses() -> None:
    spec = ClusterSpec(ranks=(RankSpec(0, "pingpong"), RankSpec(1, "pingpong")))
    placement = place(spec, Topology.from_synthetic("core:4 pu:1"))
    assert outcome_of(spec, ClusterResult(placement)).pauses == 0
    assert outcome_of(spec, ClusterResult(placement, pauses=2, paused_s=1.5)).pauses == 2
