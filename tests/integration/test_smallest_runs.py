"""Each scenario with a single iteration: a result without a figure that no run could have given."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from shrimpmx.cli import main

SCENARIOS = Path(__file__).parents[2] / "scenarios"
# Programs have iterations of their own; cache misses are real.
WITHOUT = {"table2_cache_misses", "table3_nas", "table4_nas", "table5_interrupts"}
WITHOUT |= {"busy_cores", "fig5_alltoall", "__init__"}
NAMES = [
    f"{file.parent.name}/{file.stem}"
    for file in sorted(SCENARIOS.glob("*/*.py"))
    if file.parent.name != "programs" and file.stem not in WITHOUT
]


@pytest.mark.nightly("each scenario", but=3)
@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_of_one_iteration_has_finite_figures(name: str, tmp_path: Path) -> None:
    once = ("--set", "iterations=1", "--set", "repeats=1")
    output = tmp_path / "r"
    assert main(["run", name, "--engine", "simulated", *once, "--output", str(output)]) == 0
    for point in json.loads((output / "run.json").read_text())["points"]:
        for metric in point["metrics"].values():
            for sample in metric.get("samples", ()):
                assert math.isfinite(sample)
