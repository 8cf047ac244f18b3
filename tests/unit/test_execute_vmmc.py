"""From a point with SHRIMP's NIC to the cluster that it describes, and its figures back."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.engine.real import check_real
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import InputError, NotHereError
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.machine_costs import costs_for
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.platform import emulated
from shrimpmx.experiment.point import Point, PointParameters
from shrimpmx.experiment.ranks import companions_of, needs_t_block, resolved_wait, t_block_ns
from shrimpmx.experiment.scenario import Scenario

# Two context switches of 500 ns and an interrupt.
T_BLOCK = {"t_block": {"median": 20_000.0}, "interrupt_to_handler": {"median": 19_000.0}}
OWN_COSTS = {**T_BLOCK, "context_switch": {"median": 500.0}}


def parameters(**groups: dict[str, Any]) -> PointParameters:
    groups.setdefault("nic", {"nic_kind": "vmmc"})
    return PointParameters.model_validate(groups)


def spec_of(**groups: dict[str, Any]) -> ClusterSpec:
    return cluster_spec(parameters(**groups), 3)


def point_of(**values: Any) -> Point:
    """The only point of a scenario with these parameters."""
    words: dict[str, Any] = {
        "name": "a/b", "title": "t", "source": "s", "shows": "s", "metrics": ("wall_time",),
        "parameters": {"nic": "vmmc", **values}, "sweep": {"delay_us": (0,)}, "rows": "delay_us",
    }  # fmt: skip
    (point,) = Scenario(**words).points()
    return point


def test_partners_are_on_different_nodes_and_share_the_cores_evenly() -> None:
    spec = spec_of(cluster={"pairs": 3}, host={"cores": 2})
    assert [(rank.node, rank.core) for rank in spec.ranks] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (1, 0),
    ]  # fmt: skip
    assert spec.endpoints == [0, 0, 1, 1, 2, 2]
    assert {rank.workload for rank in spec.ranks} == {"pingpong"}
    assert spec.seed == 3


def test_ranks_have_the_workloads_options() -> None:
    work = {"kind": "pingpong", "iterations": 30, "warmup": 5, "delay_us": 2, "delay_max_us": 7}
    (options, other) = (rank.options for rank in spec_of(workload=work).ranks)
    assert options == other
    wanted = {"iterations": 30, "warmup": 5, "delay_ns": 2000, "delay_max_ns": 7000}
    assert {name: options[name] for name in wanted} == wanted
    more = {"kind": "file-service", "size_bytes": 120, "threads": 3, "flags": 9}
    of_service = spec_of(workload=more).ranks[1].options
    assert {name: of_service[name] for name in ("size_bytes", "threads", "flags")} == {
        "size_bytes": 120, "threads": 3, "flags": 9,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ({"kind": "pingpong", "size_bytes": 4}, "always sends one word on a vmmc NIC"),
        ({"kind": "arrivals", "size_bytes": 4}, "always sends one word on a vmmc NIC"),
        ({"kind": "ttcp"}, "size_bytes must be at least 1"),
        ({"kind": "flags", "delay_max_us": 4}, "delay_max_us needs workload 'pingpong'"),
        ({"kind": "pingpong", "delay_us": 5, "delay_max_us": 4}, "less than delay_us, 5: raise it"),
        ({"kind": "file-service", "size_bytes": 15}, "at least 16 bytes, not 15"),
        ({"kind": "file-service", "iterations": 65_517}, "at most 65536, not 65537"),
        ({"kind": "file-service", "size_bytes": 1 << 20, "warmup": 57}, "at most 256, not 257"),
    ],
)
def test_what_a_workload_does_not_heed_cannot_be_set(work: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parameters(workload=work)
    with pytest.raises(ValueError, match="needs workload 'pingpong' and a vmmc NIC"):
        parameters(nic={}, workload={"kind": "pingpong", "delay_max_us": 5})


def test_the_file_service_may_have_the_largest_file_and_the_shortest_blocks() -> None:
    for work in ({"iterations": 65_516}, {"size_bytes": 16}, {"size_bytes": 1 << 20, "warmup": 56}):
        spec_of(workload={"kind": "file-service", **work})


def test_who_sends_arrivals_spins_and_who_waits_does_as_told() -> None:
    wait = {"strategy": "block", "reschedule_cost_ns": 5}
    spec = spec_of(workload={"kind": "arrivals"}, wait=wait)
    assert [spec.wait_of(rank).strategy for rank in (0, 1)] == ["spin", "block"]
    assert {spec.wait_of(rank).reschedule_cost_ns for rank in (0, 1)} == {5}
    ordinary = spec_of(workload={"kind": "pingpong"}, wait=wait)
    assert [ordinary.wait_of(rank).strategy for rank in (0, 1)] == ["block", "block"]


@pytest.mark.parametrize("company", ["hog", "nice"])
@pytest.mark.parametrize("kind", ["vmmc", "ethernet"])
def test_company_is_on_each_core_of_each_node(company: str, kind: str) -> None:
    spec = spec_of(nic={"nic_kind": kind}, cluster={"company": company}, host={"cores": 2})
    found = [(companion.node, companion.core, companion.kind) for companion in spec.companions]
    assert found == [(0, 0, company), (0, 1, company), (1, 0, company), (1, 1, company)]
    plans = place(spec, Topology.of_this_machine()).processes
    assert [plan.niceness for plan in plans if plan.role == "hog"] == [19 * (company == "nice")] * 4


def test_raised_ranks_have_company_of_the_normal_priority() -> None:
    spec = spec_of(nic={"nic_kind": "vmmc"}, cluster={"company": "raised"})
    plans = place(spec, Topology.of_this_machine()).processes
    niceness = {plan.role: plan.niceness for plan in plans}
    assert (niceness["rank"], niceness["hog"], niceness["irq"]) == (-20, 0, 0)


@pytest.mark.parametrize("permitted", [True, False])
def test_a_priority_that_ranks_may_not_have_is_told_before_they_start(
    permitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = (permitted, "no right to niceness -20 (why)")
    monkeypatch.setattr("shrimpmx.cluster.engine.real.niceness_permitted", lambda _: answer)
    spec = spec_of(nic={"nic_kind": "vmmc"}, cluster={"company": "raised"})
    refused = pytest.raises(NotHereError, match="company 'raised': no right to niceness -20")
    with contextlib.nullcontext() if permitted else refused:
        check_real(spec)
    check_real(spec_of(nic={"nic_kind": "vmmc"}, cluster={"company": "hog"}))


def test_a_rank_alone_has_no_company_and_a_generator_none_beside_it() -> None:
    assert spec_of().companions == ()
    generator = {"mode": "generator", "company": "hog"}
    found = companions_of(parameters(nic={}, cluster=generator, workload={"kind": "stream"}))
    assert [companion.node for companion in found] == [0]


def test_a_spin_limit_in_t_blocks_is_that_of_this_machine() -> None:
    executor = ClusterExecutor(Forked(), costs=T_BLOCK)
    point = point_of(wait="spin-block", spin_t_block=0.54)
    spec = executor.spec_of(point, 1)
    assert spec.wait.spin_ns == 10_800
    assert executor.spec_of(point_of(wait="spin-block"), 1).wait.spin_ns == 300_000


def test_a_platforms_t_block_is_this_machines_and_what_is_charged_beside_it() -> None:
    executor = ClusterExecutor(Forked(), costs=OWN_COSTS)
    point = point_of(wait="spin-block", platform="shrimp-1996", spin_t_block=1.0)
    # Two switches of 15 us and an interrupt of 270, whatever this machine takes.
    assert executor.spec_of(point, 1).wait.spin_ns == 300_000
    assert t_block_ns(executor.emulated(point), OWN_COSTS) == 300_000
    slower = {**OWN_COSTS, "interrupt_to_handler": {"median": 289_000.0}}
    slower["t_block"] = {"median": 290_000.0}
    assert t_block_ns(ClusterExecutor(Forked(), costs=slower).emulated(point), slower) == 319_000


def test_a_points_t_block_follows_from_the_point_alone() -> None:
    executor = ClusterExecutor(Forked(), costs=OWN_COSTS)
    arrivals = point_of(workload="arrivals", platform="none", spin_ns=50_000)
    assert needs_t_block(arrivals.parameters)
    assert t_block_ns(executor.emulated(arrivals), OWN_COSTS) == 20_000
    dear = point_of(workload="arrivals", reschedule_cost_ns=1000, interrupt_time_ns=30_000)
    assert t_block_ns(executor.emulated(dear), OWN_COSTS) == 20_000 + 2 * 1000 + 11_000
    quick = point_of(workload="arrivals", interrupt_time_ns=5_000)
    assert t_block_ns(executor.emulated(quick), OWN_COSTS) == 20_000
    assert t_block_ns(executor.emulated(arrivals), None) is None
    assert not needs_t_block(point_of().parameters)


def test_without_a_calibration_that_limit_is_refused() -> None:
    wait = {"strategy": "spin-block", "spin_t_block": 1}
    with pytest.raises(InputError, match=r"T_block of this machine.*no calibration has it"):
        spec_of(wait=wait)
    absent = {"t_block": {"unavailable": "only one CPU"}}
    with pytest.raises(InputError, match="only one CPU"):
        resolved_wait(emulated(parameters(wait=wait), None), absent)


def test_only_points_that_need_t_block_have_the_machine_calibrated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def for_platforms(_handler_cost: object) -> dict[str, Any]:
        asked.append(True)
        return {**T_BLOCK, "rank_event": {"median": 1.0}}

    monkeypatch.setattr("shrimpmx.bench.calibration.for_platforms", for_platforms)
    assert costs_for([point_of(), point_of(wait="block")], None, Forked()) is None
    assert not asked
    assert costs_for([point_of(), point_of(spin_t_block=1.0)], None, Forked()) == T_BLOCK
    assert costs_for([point_of(), point_of(workload="arrivals")], None, Forked()) == T_BLOCK


def test_an_outcome_has_the_figures_of_all_ranks() -> None:
    spec = spec_of(workload={"kind": "arrivals", "iterations": 2, "warmup": 1})
    placement = place(spec, Topology.of_this_machine())
    result = ClusterResult(
        placement,
        samples={
            "rank0": {"wrong_flags": np.array([1])},
            "rank1": {
                "wrong_flags": np.array([2]),
                "arrival_ns": np.array([7, 9]),
                "other": np.array([1]),
            },
        },
        elapsed_ns={"rank0": 30, "rank1": 50},
    )
    outcome = outcome_of(spec, result)
    assert {name: list(values) for name, values in outcome.figures.items()} == {
        "wrong_flags": [1.0, 2.0], "arrival_ns": [7.0, 9.0], "other": [1.0],
    }  # fmt: skip
    assert outcome.iterations == 3
    assert outcome.elapsed_ns == {"rank0": 30, "rank1": 50}
    assert outcome.t_block_ns is None
    assert outcome_of(spec, result, 20_000.0).t_block_ns == 20_000
    assert outcome.samples.size == 0
