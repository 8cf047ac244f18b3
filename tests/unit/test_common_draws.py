"""Runs that are compared draw the same, however they wait, coalesce or meet faults."""

from __future__ import annotations

import numpy as np
import pytest

from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.scenario import WAIT_NAMES, Scenario
from shrimpmx.native.drawing import seed_of, stream_of
from shrimpmx.results.waiting_metrics import competitive_ratio
from shrimpmx.simulation.engine import Simulated

# The sender of an arrival learns so late that its wait has begun.
ANNOUNCED_NS = 30_000
# ... and so long after the drawn time it looks at the clock, at most.
LOOK_NS = 1_000


def test_each_purpose_and_agent_has_a_stream_of_its_own() -> None:
    streams = [
        ("loss", (1,)),
        ("loss", (1, 0)),
        ("loss", (1, 1)),
        ("loss", (11,)),
        ("gaps", (1, 1)),
    ]
    assert len({seed_of(purpose, *rest) for purpose, rest in streams}) == len(streams)
    assert seed_of("loss", 1, 0) == seed_of("loss", 1, 0)
    drawn = [stream_of("loss", 1, 0).random() for _ in range(2)]
    assert drawn[0] == drawn[1]


def competitive(*settings: str) -> Scenario:
    declared = load_scenario(find_scenario("waiting/competitive_ratio")).on(real=False)
    return declared.changed([*settings, "iterations=60"])


def executor(scenario: Scenario) -> ClusterExecutor:
    costs = {name: {"median": 0.0} for name in needed_costs(scenario.points())}
    return ClusterExecutor(Simulated(), costs=costs)


@pytest.mark.parametrize("arrivals", ["uniform", "exponential", "bimodal"])
def test_all_strategies_wait_for_the_same_arrivals(arrivals: str) -> None:
    scenario = competitive(f"arrivals={arrivals}")
    execute = executor(scenario)
    found = [execute(point, 3).figures["arrival_ns"] for point in scenario.points()]
    assert len(found) == len(WAIT_NAMES)
    longer = [np.maximum(delays, ANNOUNCED_NS) for delays in found]
    for delays in longer:
        np.testing.assert_allclose(delays, longer[0], rtol=0, atol=LOOK_NS)


@pytest.mark.parametrize("seed", range(1, 6))
def test_spin_block_costs_at_most_twice_the_optimum(seed: int) -> None:
    scenario = competitive("wait=spin-block")
    execute = executor(scenario)
    for point in scenario.points():
        assert competitive_ratio(execute(point, seed)) <= 2.0
