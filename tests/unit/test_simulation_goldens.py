"""Simulated runs give the same figures on every machine, and other seeds what they must."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.goldens import GOLDENS, LOSS, RECORDED, golden_text

from shrimpmx.bench import calibration
from shrimpmx.cli import main
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.results.json_file import write_json
from shrimpmx.simulation.engine import Simulated


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


def test_this_machines_calibration_is_no_matter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a platform's hosts, which on real processes take what this machine lacks of its times."""
    places = ["--set=platform=myri10g-2009", "--set=coalescing=timeout", "--set=size_bytes=0"]
    short = ["--set=iterations=100", "--set=warmup=10", "--set=repeats=1"]
    found = []
    for ns in (100.0, 3000.0):
        machine = tmp_path / f"{ns:g}"
        monkeypatch.setenv("XDG_CACHE_HOME", str(machine))
        calibration.storage_path().parent.mkdir(parents=True)
        write_json(calibration.storage_path(), calibrated(ns))
        words = ["run", "coalescing/fig4_message_rate", "--engine", "simulated", *places, *short]
        assert main([*words, "--output", str(machine / "r")]) == 0
        points = json.loads((machine / "r" / "run.json").read_text())["points"]
        found.append([point["metrics"] for point in points])
    assert found[0] == found[1] != []


def calibrated(ns: float) -> dict[str, object]:
    """The calibration of a machine on which all takes so long."""
    cost = {"median": ns, "ci95": [ns, ns], "meaning": "as measured"}
    names = (*calibration.MEASUREMENTS, "t_block", "handler_per_packet")
    taken = {"time": "2026-01-01T00:00:00+00:00"}
    costs = dict.fromkeys(names, cost)
    return {"schema": calibration.SCHEMA, "state": "near", "environment": taken, "costs": costs}
