"""Simulated runs give the same figures on every machine, and other seeds what they must."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.goldens import GOLDENS, LOSS, RECORDED, golden_text

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.commands import sweeping
from shrimpmx.simulation.engine import Simulated
from shrimpmx.study.execute import ClusterExecutor
from shrimpmx.study.loading import find_scenario, load_scenario


def run(name: str, **changes: object) -> ClusterResult:
    return Simulated().run(replace(GOLDENS[name](), **changes))


@pytest.mark.parametrize("name", GOLDENS)
def test_a_run_gives_the_kept_figures(name: str) -> None:
    """If a change is meant to change them: python tools/goldens.py."""
    assert golden_text(run(name)) == (RECORDED / f"{name}.json").read_text()


def test_each_kept_file_is_one_of_these_and_readable() -> None:
    assert {path.stem for path in RECORDED.glob("*")} == set(GOLDENS)
    for path in RECORDED.glob("*.json"):
        assert set(json.loads(path.read_text())) >= {"elapsed_ns", "counters", "samples"}


def test_a_seed_decides_what_is_lost_and_no_more() -> None:
    """Of links that lose nothing runs of two seeds have the same counts."""
    texts = [golden_text(run("stream-loss", link_faults=faults(seed))) for seed in (3, 4)]
    assert texts[0] != texts[1]
    counted = [run("medium-sched", seed=seed).counters["rank0"] for seed in (1, 2)]
    assert counted[0]["send_mediumsq_frag"] == counted[1]["send_mediumsq_frag"]


def faults(seed: int) -> object:
    return LOSS.model_copy(update={"seed": seed})


def test_this_machines_calibration_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a platform's hosts, which on real processes take what this machine lacks of its times."""
    scenario = load_scenario(find_scenario("coalescing/fig4_message_rate")).changed(
        ["platform=myri10g-2009", "iterations=100", "warmup=10", "coalescing=timeout"]
    )
    points = sweeping.checked_points(scenario)

    def measured(ns: float) -> Callable[..., object]:
        return lambda *_: {name: {"median": ns} for name in sweeping.ANY_COSTS}

    texts = []
    for ns in (100.0, 3000.0):
        monkeypatch.setattr(sweeping, "machine_costs", measured(ns))
        costs = sweeping.costs_for(points, None, Simulated())
        executor = ClusterExecutor(Simulated(), costs=costs)
        texts.append(golden_text(Simulated().run(executor.spec_of(points[0], 1))))
    assert texts[0] == texts[1]
