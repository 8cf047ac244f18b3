"""What simulated runs draw: nothing by default, and then no seed makes a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.simulated_seeds import are_equal, draw_simulated

from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.outcome import drawn_in
from shrimpmx.experiment.point import Point, parameters_of
from shrimpmx.experiment.run_data import merged, run_data
from shrimpmx.results.metrics import Outcome
from shrimpmx.simulation.engine import Simulated


def spec_of(seed: int = 1, **given: Any) -> ClusterSpec:
    some = {} if "program" in given else {"iterations": 20, "warmup": 2}
    parameters = {"workload": "pingpong", **some, **given}
    return cluster_spec(parameters_of(parameters)[0], seed)


def are_same(spec: ClusterSpec) -> bool:
    engine = Simulated()
    one, other = (engine.run(replace(spec, seed=seed)) for seed in (1, 2))
    return are_equal(one, other)


def are_same_again(**given: Any) -> bool:
    engine = Simulated()
    return are_equal(*(engine.run(spec_of(seed, **given)) for seed in (1, 2)))


@pytest.mark.parametrize("chunk", range(4))
def test_whatever_draws_nothing_is_the_same_by_any_seed(chunk: int) -> None:
    specs = [draw_simulated(seed) for seed in range(1 + chunk * 40, 41 + chunk * 40)]
    assert [spec for spec in specs if not drawn_in(spec) and not are_same(spec)] == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"coalescing": "stream", "size_bytes": 100_000},
        {"coalescing": "timeout", "wait": "block", "cores": 2, "pairs": 2},
        {"workload": "stream", "iterations": 50},
        {"delay_us": 30, "wait": "spin-block"},
        {"workload": "ttcp", "nic": "vmmc", "size_bytes": 2000},
    ],
)
def test_common_runs_draw_nothing(given: dict[str, Any]) -> None:
    assert drawn_in(spec_of(**given)) == ()
    assert are_same_again(**given)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"loss": 0.2, "resend_delay_ns": 10**6}, "loss"),
        ({"wake_jitter": [0.5, 2.0], "idle_exit_ns": 5000, "wait": "block"}, "wake_jitter"),
        ({"cost_jitter": [0.5, 2.0], "send_cost_ns": 900}, "cost_jitter"),
        ({"cost_jitter": [0.5, 2.0], "packet_cost_ns": 900, "wait": "block"}, "cost_jitter"),
        (
            {"cost_jitter": [0.9, 1.1], "copy_bytes_per_second": 10**9, "size_bytes": 9000},
            "cost_jitter",
        ),
        ({"coalescing": "timeout", "rx_timer": "free-running"}, "rx_timer"),
        (
            {"workload": "stream", "iterations": 99, "tx_gap_ns": 900, "tx_gap_jitter": 0.5},
            "tx_gap_jitter",
        ),
        ({"nic": "vmmc", "workload": "arrivals", "delay_us": 50}, "workload"),
        ({"nic": "vmmc", "delay_us": 10, "delay_max_us": 200}, "workload"),
        ({"scheduler": "goodness", "company": "hog", "wait": "spin"}, "tick_phase"),
    ],
)
def test_what_is_drawn_is_named_and_makes_a_difference(given: dict[str, Any], name: str) -> None:
    assert drawn_in(spec_of(**given)) == (name,)
    assert not are_same_again(**given)


def test_payments_scatter_as_their_ratios_do() -> None:
    """Each is drawn by itself, and those of ranks are not those of handlers."""
    ratios = [0.5, 1.0, 2.0, 4.5]
    given = {"iterations": 2000, "cost_jitter": ratios, "send_cost_ns": 1000, "event_cost_ns": 1000}
    paid = Simulated().run(spec_of(**given)).paid()
    for node in ("node0", "node1"):
        sends, events = (
            [paid[f"{node}, ranks"][f"paid_{cost}{of}"] for of in ("", "_total")]
            for cost in ("send_cost_ns", "event_cost_ns")
        )
        assert sends[1] / sends[0] == pytest.approx(1000 * np.mean(ratios), rel=0.1)
        assert sends[1] != events[1]
    assert paid["node0, ranks"] != paid["node1, ranks"]


@pytest.mark.parametrize(
    ("given", "names"),
    [({}, ("program",)), ({"compute": "measured"}, ("compute", "program"))],
)
def test_a_program_may_draw_by_itself(given: dict[str, Any], names: tuple[str, ...]) -> None:
    assert drawn_in(spec_of(workload="mpi", program="true", **given)) == names


@pytest.mark.parametrize(
    ("drawn", "figures", "is_exact"),
    [
        ([()], [1.0], True),
        ([(), ()], [1.0, 1.0], True),
        ([("program",)], [1.0], True),
        ([("program",), ("program",)], [1.0, 1.0], True),
        # This program draws by itself.
        ([("program",), ("program",)], [1.0, 2.0], False),
        # Runs that agree by chance.
        ([("workload",), ("workload",)], [1.0, 1.0], False),
        ([("program", "loss")] * 5, [1.0] * 5, False),
        ([(), ("loss",)], [1.0, 1.0], False),
        ([None, None], [1.0, 1.0], False),
        ([(), None], [1.0, 1.0], False),
    ],
)
def test_figures_are_exact_if_their_runs_draw_nothing(
    drawn: Sequence[tuple[str, ...] | None], figures: Sequence[float], is_exact: bool
) -> None:
    point = Point(0, {}, parameters_of({})[0])
    outcomes = [
        Outcome(np.full(20, figure * 1e3), {}, drawn=names)
        for figure, names in zip(figures, drawn, strict=True)
    ]
    runs = [run_data(point, each, ("half_round_trip",), "any", []) for each in outcomes]
    metric = merged(point, runs)["metrics"]["half_round_trip"]
    assert metric.get("exact", False) == is_exact
