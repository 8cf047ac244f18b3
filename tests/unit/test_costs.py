"""The table of costs: each row is a parameter, and each can be taken away by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shrimpmx.bench.calibration import MEASUREMENTS
from shrimpmx.cli import main
from shrimpmx.costs.table import ALL_CHARGED, CHARGED, COSTS, FREE
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.platform import PLATFORMS, costs_of, emulated
from shrimpmx.experiment.point import Point, PointParameters
from shrimpmx.experiment.this_machine import FAST_INTERRUPT, REPLY_COPY
from shrimpmx.results.json_file import read_json
from shrimpmx.settings.declared import HOST_COST, HOST_RATE
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.names import PARAMETER_NAMES
from shrimpmx.settings.platform import KNOWN, PlatformParameters
from shrimpmx.show.costs import free_cost_lines

GROUPS = (HostParameters, MxParameters, WaitParameters, HostModelParameters)
# Of a host, dilated with its costs, and no costs themselves.
TIMES = {"slice_ns", "wakeup_ns", "tick_ns", "interrupt_delivery_ns", "idle_after_ns"}


def test_each_row_is_one_parameter_and_each_cost_has_a_row() -> None:
    marked = [
        name
        for group in GROUPS
        for name, field in group.model_fields.items()
        if {HOST_COST, HOST_RATE} & set(field.metadata)
    ]
    assert sorted(marked) == sorted([*COSTS, *TIMES])
    for name, row in COSTS.items():
        group, field = PARAMETER_NAMES[name]
        (declared,) = (each.model_fields[field] for each in GROUPS if field in each.model_fields)
        assert declared.default == row.default
        assert declared.description == row.description
        assert group == row.group


def test_each_cost_has_a_range_and_the_platforms_lie_in_it() -> None:
    for row in COSTS.values():
        assert 0 < row.range[0] < row.range[1]
    for platform in PLATFORMS.values():
        for key, entry in platform.entries():
            table, _, name = key.partition(".")
            row = CHARGED.get(name) if table == "costs" else COSTS.get(name)
            for value in entry.value if isinstance(entry.value, list) else [entry.value]:
                assert row is None or row.range[0] <= value <= row.range[1], (platform.name, key)


# What stands for a new row: the table with it is there before anything else is imported.
TOY = """
from shrimpmx.costs import cost, table
table.COSTS["toy_ns"] = cost.Cost(
    "toy_ns", "nic", "packet", "toy of a packet", calibrated_by="look - 2 frame_copy"
)
from shrimpmx.costs.generate import GENERATED
from shrimpmx.settings.names import PARAMETER_NAMES
from shrimpmx.settings.model import HostModelParameters
assert PARAMETER_NAMES["toy_ns"] == ("model", "toy_ns")
assert HostModelParameters(toy_ns=7).toy_ns == 7
assert "    COST_toy_ns," in list(GENERATED["rows.h"]())
assert table.COSTS["toy_ns"].calibration == [(1, "look"), (-2, "frame_copy")]
"""


def test_a_row_alone_makes_a_parameter_and_a_number_for_the_site_that_pays() -> None:
    subprocess.run([sys.executable, "-c", TOY], check=True)


def test_costs_are_calibrated_by_what_calibrate_measures() -> None:
    measured = {*MEASUREMENTS, FAST_INTERRUPT, REPLY_COPY}
    for name, row in COSTS.items():
        assert {term for _, term in row.calibration} <= {*measured, *COSTS} - {name}


def charged(profile: str, **platform: Any) -> dict[str, Any]:
    parameters = PointParameters(platform=PlatformParameters(profile=profile, **platform))
    none = {name: {"median": 0.0} for name in needed_costs([Point(0, {}, parameters)])}
    return costs_of(emulated(parameters, none, real=False))


@pytest.mark.parametrize("profile", ["none", *KNOWN])
def test_a_free_cost_is_not_charged_and_all_others_are(profile: str) -> None:
    all_charged = charged(profile)
    assert all_charged == charged(profile, free_cost=ALL_CHARGED)
    for name in FREE:
        others = {each: value for each, value in all_charged.items() if each != name}
        assert charged(profile, free_cost=name) == others


def test_what_cannot_be_free_is_refused() -> None:
    for name in ("poll_ns", "slice_ns", "wake"):
        with pytest.raises(ValueError, match="free_cost"):
            PlatformParameters(free_cost=name)


def document(figures: dict[str, float], size: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "params": {"free_cost": name, "size_bytes": size},
            "metrics": {"round_trip": {"median": value, "ci95": [value, value], "count": 1}},
        }
        for name, value in figures.items()
    ]


def test_costs_come_in_order_of_their_effect_in_either_direction() -> None:
    points = document({"wake_ns": 9.0, "none": 10.0, "poll_ns": 10.0, "switch_ns": 30.0})
    points += document({"none": 4.0, "wake_ns": 1.0}, size=8)
    points.append({"params": {"free_cost": "none", "size_bytes": 9}, "impossible": "no CPU"})
    lines = free_cost_lines({"layout": {"axes": ["size_bytes", "free_cost"]}, "points": points})
    rows = [line.split() for line in lines if line.startswith("  ")]
    assert rows == [
        ["switch_ns", "3.000"],
        ["wake_ns", "0.900"],
        ["less", "than", "0.1%:", "poll_ns"],
        ["wake_ns", "0.250"],
    ]


SETTINGS = ("platform=none", "size_bytes=0", "coalescing=open-mx,disabled", "iterations=20")
RUN = ("run", "smoke/pingpong", *SETTINGS)


def test_run_frees_each_cost_of_its_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "result"
    words = ("--engine", "simulated", "--costs", "all-but-one", "--output", str(output))
    assert main([*RUN, "packet_cost_ns=500", "wake_ns=2000", *words]) == 0
    said = capsys.readouterr().out
    points = read_json(output / "run.json", "result")["points"]
    assert {point["params"]["free_cost"] for point in points} == {
        "none",
        "packet_cost_ns",
        "wake_ns",
    }
    assert "packet_cost_ns: packet processed by the receive handler" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "needs --engine simulated"),
        (("--engine", "simulated"), "no cost to leave out"),
        (("--engine", "simulated", "packet_cost_ns=1", "free_cost=none"), "free_cost"),
    ],
)
def test_run_refuses_what_has_no_costs_to_free(
    words: tuple[str, ...], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--costs", "all-but-one", "--output", str(tmp_path / "new"), *words]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "new").exists()
