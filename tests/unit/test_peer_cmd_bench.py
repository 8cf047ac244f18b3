"""omx_cmd_bench: what a message costs, layer by layer.

Open-MX's driver returns from its bench call at a layer of choice. Here `shrimpmx bench` has a
figure for each layer instead; a run of those that take no second gives positive figures, each
with what bound it.
"""

from __future__ import annotations

import os

import pytest

from shrimpmx.bench import run as bench
from shrimpmx.cluster.engine.forked import Forked

# From the ring between two agents to a message between two processes.
LADDER = [
    "cache_line_round_trip",
    "ring_pass_64B",
    "wake_cross_cpu",
    "interrupt_to_handler",
    "library.match_posted[1]",
    "receive_path_128B[disabled,spin,no-limit]",
    "pingpong_0B[disabled]",
    "intranode.pingpong_8",
]


def test_every_layer_has_a_figure() -> None:
    assert set(LADDER) <= {benchmark.name for benchmark in bench.benchmarks(Forked())}


@pytest.mark.parametrize("name", [LADDER[1], LADDER[4], LADDER[5]])
def test_a_layer_costs_something(name: str) -> None:
    (benchmark,) = (one for one in bench.benchmarks(Forked()) if one.name == name)
    if len(os.sched_getaffinity(0)) < benchmark.cpus:
        pytest.skip(bench.ONE_CPU)
    sample = benchmark.measure(0.05)
    assert sample.figures.size > 0
    assert (sample.figures > 0).all()
    assert sample.bound_by
