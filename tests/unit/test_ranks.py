"""Where the ranks of a point are: nodes, cores and endpoints; and whose samples count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.machines import described

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.point import PointParameters

ONE_CPU = described({"packages": [[[0]]]})


def spec_of(**groups: dict[str, Any]) -> ClusterSpec:
    return cluster_spec(PointParameters.model_validate(groups), 3)


def places(spec: ClusterSpec) -> list[tuple[int, int, int]]:
    """(node, core, endpoint) of each rank."""
    return [
        (rank.node, rank.core, endpoint)
        for rank, endpoint in zip(spec.ranks, spec.endpoints, strict=True)
    ]


@pytest.mark.parametrize("kind", ["ethernet", "mx", "vmmc"])
def test_pairs_are_on_two_nodes_and_go_round_the_cores(kind: str) -> None:
    spec = spec_of(cluster={"pairs": 3, "rank_core": 1}, host={"cores": 3}, nic={"nic_kind": kind})
    assert places(spec) == [(0, 1, 0), (1, 1, 0), (0, 2, 1), (1, 2, 1), (0, 0, 2), (1, 0, 2)]


def test_without_pairs_each_node_has_a_rank() -> None:
    assert places(spec_of()) == [(0, 0, 0), (1, 0, 0)]
    four = spec_of(cluster={"nodes": 4, "rank_core": 1}, host={"cores": 2})
    assert places(four) == [(node, 1, 0) for node in range(4)]


def test_a_generators_receiver_is_on_the_core_that_was_asked_for() -> None:
    spec = spec_of(
        cluster={"mode": "generator", "rank_core": 2},
        host={"cores": 3},
        workload={"kind": "stream"},
    )
    assert places(spec) == [(0, 2, 0)]


def test_what_is_asked_of_ranks_and_machine_reaches_the_run() -> None:
    spec = spec_of(
        cluster={"distance": "S$", "hardware_counters": True, "rank_core": 1},
        host={"cores": 2, "irq_binding": "0"},
    )
    assert (spec.distance, spec.hardware_counters) == ("S$", True)
    moving = spec_of(host={"cores": 2}, workload={"move_every": 7})
    assert [rank.options["move_every"] for rank in moving.ranks] == [7, 7]
    assert (spec_of().distance, spec_of().hardware_counters) == ("any", False)


def samples_of(spec: ClusterSpec) -> list[float]:
    """Of a run in which each rank had half a round trip of its number in ns."""
    samples = {
        f"rank{number}": {"half_round_trip_ns": np.array([number])}
        for number in range(len(spec.ranks))
    }
    result = ClusterResult(placement=place(spec, ONE_CPU), samples=samples)
    return list(outcome_of(spec, result).samples)


def test_round_trips_count_as_who_began_them_saw_them() -> None:
    assert samples_of(spec_of()) == [0]
    assert samples_of(spec_of(cluster={"pairs": 3})) == [0, 2, 4]
    assert samples_of(spec_of(cluster={"nodes": 4})) == [0]
    assert samples_of(spec_of(cluster={"pairs": 3}, nic={"nic_kind": "vmmc"})) == [0]
