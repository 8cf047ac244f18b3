"""Rows of `bench`, with the smallest counts: each measures, and names its limit."""

from __future__ import annotations

import pytest

from shrimpmx.bench import copy_offload, intra_node, throughput
from shrimpmx.bench.benchmark import BUSY_SHARE, Sample
from shrimpmx.bench.run import benchmarks
from shrimpmx.bench.throughput import payload_limit
from shrimpmx.simulation.engine import Simulated

TURN_S = 0.001
ON_THIS_MACHINE = (
    "wake_same_cpu",
    "wake_cross_cpu",
    "library.match_posted[100]",
    "intranode.pingpong_8",
    "intranode.rate_8",
    "intranode.share_of_copy_4MiB",
    "mpi.pingpong_8",
    "mpi.exchange_8",
    "memory.bounce[intra-node]",
    "simulated.receive_path_128B",
    "simulated.pingpong_0B",
)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages and round trips."""
    for name, count in (("BATCH", 2), ("WINDOWS", 1), ("LARGE_BATCH", 1)):
        monkeypatch.setattr(intra_node, name, count)
    monkeypatch.setattr(throughput, "MESSAGES_MIN", 8)
    monkeypatch.setattr(copy_offload, "ITERATIONS_MIN", 4)
    monkeypatch.setattr(copy_offload, "WARMUP", 1)


def measured(name: str) -> Sample:
    """The row's turn; the simulated engine runs its clusters."""
    [row] = [each for each in benchmarks(Simulated()) if each.name == name]
    sample = row.measure(TURN_S)
    assert sample.figures.size > 0
    assert (sample.figures >= 0).all()
    return sample


@pytest.mark.parametrize("name", ON_THIS_MACHINE)
def test_a_row_measures_this_machine(name: str) -> None:
    sample = measured(name)
    assert sample.figures.max() > 0
    assert sample.bound_by


def test_the_link_binds_a_stream_unless_it_has_no_limit() -> None:
    limit = payload_limit(1500) / 1e9
    limited = measured("large.throughput_1500")
    assert BUSY_SHARE * limit < limited.figures[0] <= limit
    assert limited.bound_by == "the link"
    unlimited = measured("large.throughput_unlimited")
    assert unlimited.figures[0] > limit
    # Nothing costs time on hosts without costs.
    assert unlimited.bound_by.startswith("waiting; most on CPU ")


def test_an_offloaded_copy_takes_time_that_a_free_one_does_not() -> None:
    sample = measured("large.copy_offload")
    assert 0 < sample.figures[0] < 1
    assert sample.bound_by == "the handlers"


def test_hosts_without_costs_wait_for_the_coalescing_delay_only() -> None:
    assert measured("pingpong_0B[timeout]").bound_by == "the coalescing delay"
    assert measured("pingpong_0B[disabled]").bound_by == "wake-ups across CPUs"
    assert measured("launch_16_agents").bound_by == "forks and exits"
