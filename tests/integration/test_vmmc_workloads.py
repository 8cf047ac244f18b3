"""The workloads of SHRIMP's ranks on real clusters, small: each runs, and its counts are sane."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clusters import on_both_engines, run

from shrimpmx.cli import main
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.point import PointParameters
from shrimpmx.results.metrics import METRICS, Outcome
from shrimpmx.settings.strategies import PAPER_WAIT_NAMES

ITERATIONS, WARMUP = 50, 5
ROUNDS = ITERATIONS + WARMUP
T_BLOCK_NS = 300_000.0


def outcome(kind: str, wait: str, **more: Any) -> Outcome:
    """What a short run gives; `more` are options of the workload, `cluster` and `host` groups."""
    groups = {name: more.pop(name, {}) for name in ("cluster", "host")}
    work = {"kind": kind, "iterations": ITERATIONS, "warmup": WARMUP, **more}
    parameters = PointParameters.model_validate(
        {"nic": {"nic_kind": "vmmc"}, "wait": {"strategy": wait}, "workload": work, **groups}
    )
    spec = cluster_spec(parameters, 1)
    return outcome_of(spec, run(spec), T_BLOCK_NS)


def figure(name: str, of: Outcome) -> float:
    found = METRICS[name].compute(of)
    assert not isinstance(found, str), found
    return float(np.median(found))


def check_waits(of: Outcome, wait: str, waits: int) -> None:
    """Each rank has waited so often, and made the system calls of its strategy only."""
    for rank in of.ranks:
        account = of.accounts[rank]
        assert account["waits"] == waits
        assert account["system_calls"] == account["yields"] + account["blocks"]
        if wait == "spin":
            assert account["system_calls"] == 0
        if not wait.endswith("sched"):
            # A futex may end early, but not twice as a rule.
            assert account["blocks"] <= account["interrupts_enabled"] + 2 or "notify" in wait
        if wait in ("block", "notify"):
            assert account["blocks"] <= waits - account["at_once"] - account["races"] + 2


@pytest.mark.nightly("each wait on each engine", but=8)
@on_both_engines
@pytest.mark.parametrize("wait", PAPER_WAIT_NAMES)
def test_a_round_trip_is_one_wait_of_each_rank(wait: str) -> None:
    of = outcome("pingpong", wait, delay_us=3, delay_max_us=9)
    assert of.samples.size == ITERATIONS
    assert of.samples.min() > 3_000 / 2
    check_waits(of, wait, ROUNDS)
    for rank in of.ranks:
        assert of.counters[rank]["recv_messages"] == ROUNDS
        assert of.counters[rank]["sent_updates"] == ROUNDS
    if wait == "spin":
        assert figure("interrupts_per_wait", of) == 0
    # No round trip is shorter than the shortest; the meeting of the ranks does not count.
    assert figure("wall_time", of) >= of.samples.min() / 500
    assert 0 < figure("cpu_time", of) <= figure("wall_time", of)
    if wait == "block":
        # A rank that has armed its slot may find the message itself before it sleeps.
        assert of.total("vmmc_wakes") <= of.account("blocks") + of.account("races")


@on_both_engines
def test_pairs_share_their_nodes() -> None:
    cluster, host = {"pairs": 3, "company": "nice"}, {"cores": 2}
    of = outcome("pingpong", "block", cluster=cluster, host=host)
    assert len(of.ranks) == 6
    check_waits(of, "block", ITERATIONS + WARMUP)
    # Two nodes of two cores, a companion on each; a loaded machine may leave them no CPU time.
    assert {name for name in of.counters if "nice" in name} == {f"nice{n}" for n in range(4)}


@pytest.mark.nightly("each wait and number of flags", but=8)
@on_both_engines
@pytest.mark.parametrize("count", [1, 40, 4096])
@pytest.mark.parametrize("wait", ["block", "spin-block", "notify"])
def test_whichever_flag_changes_ends_the_wait_and_no_other(wait: str, count: int) -> None:
    of = outcome("flags", wait, flags=count)
    assert of.samples.size == ITERATIONS
    assert list(of.figures["waits"]) == [ROUNDS, ROUNDS]
    assert figure("wrong_flags", of) == 0
    if wait == "block":
        assert figure("sleeps_per_wait", of) <= 1
        assert figure("wakes_per_wait", of) <= 1
    if wait == "notify":
        assert figure("wakes_per_wait", of) == 1
    check_waits(of, wait, ROUNDS)


@pytest.mark.parametrize("arrivals", ["fixed", "uniform", "exponential", "bimodal", "adversary"])
def test_arrivals_come_when_they_should_and_their_waits_cost_something(arrivals: str) -> None:
    of = outcome("arrivals", "block", arrivals=arrivals, delay_us=100)
    figures = of.figures
    assert {name: len(values) for name, values in figures.items()} == {
        "arrival_ns": ITERATIONS, "wait_cpu_ns": ITERATIONS,
    }  # fmt: skip
    # The sender may come late, never early.
    least = {"fixed": 100_000, "bimodal": 20_000, "adversary": 320_000}.get(arrivals, 0)
    assert figures["arrival_ns"].min() >= least
    assert (figures["wait_cpu_ns"] > 0).all()
    assert of.accounts["rank0"]["blocks"] == 0
    assert figure("waiting_cost", of) > 0
    assert figure("optimal_cost", of) <= 300
    assert figure("competitive_ratio", of) > 0


@on_both_engines
@pytest.mark.parametrize("wait", ["spin", "block", "spin-block"])
@pytest.mark.parametrize("size_bytes", [1, 3000])
def test_a_stream_of_bytes_arrives_whole(wait: str, size_bytes: int) -> None:
    of = outcome("ttcp", wait, size_bytes=size_bytes)
    assert list(of.figures["bytes"]) == [ROUNDS * size_bytes]
    assert of.counters["rank1"]["recv_messages"] == ROUNDS
    assert of.counters["rank1"]["socket_bytes_received"] == ROUNDS * size_bytes
    per_second = figure("message_rate", of) * 1000
    assert figure("throughput", of) == pytest.approx(per_second * size_bytes / 1e6)


SCENARIO = """
from shrimpmx.experiment.scenario import Scenario

scenario = Scenario(
    name="scratch/vmmc", title="t", source="s", shows="s",
    parameters={"nic": "vmmc", "workload": "pingpong", "iterations": 50, "warmup": 5,
                "company": "nice", "delay_us": 10},
    sweep={"pairs": (1, 2), "wait": ("block", "spin-block")},
    compare="wait", rows="wait", columns="pairs", repeats=1,
    metrics=("wall_time", "cpu_time", "reschedules", "interrupts_per_wait"),
)
"""


@pytest.mark.nightly("each scenario")
def test_a_scenario_with_the_vmmc_nic_runs_from_the_command_line(tmp_path: Path) -> None:
    scenario = tmp_path / "vmmc.py"
    scenario.write_text(SCENARIO)
    assert main(["run", str(scenario), "--output", str(tmp_path / "r")]) == 0
    document = json.loads((tmp_path / "r" / "run.json").read_text())
    assert len(document["points"]) == 4
    for point in document["points"]:
        assert all("median" in found for found in point["metrics"].values())
