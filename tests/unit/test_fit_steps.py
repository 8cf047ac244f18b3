"""`shrimpmx fit`: what it says to measure next, groups left out together, a validation's times as
measurements, and fits that a page finds whatever their files are called.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shrimpmx.cli import main
from shrimpmx.experiment.fit.held_out import parts_of
from shrimpmx.experiment.fit.measurements import MACHINE, Measurement, read_measurements
from shrimpmx.experiment.fit.next_step import CANDIDATES, candidates_beside, next_steps
from shrimpmx.experiment.fit.predictor import Predictor, simulated_value
from shrimpmx.experiment.fit.solve import Solution
from shrimpmx.experiment.fit.varied import completed, varied_of
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.page.fits import is_fit
from shrimpmx.page.page import published_in
from shrimpmx.results.json_file import read_json

BASE = completed(PLATFORMS["myri10g-2009"])


def pingpong(size: int, group: str = "a") -> Measurement:
    settings = {"workload": "pingpong", "coalescing": "disabled", "size_bytes": str(size)}
    return Measurement(tuple(sorted(settings.items())), "half_round_trip", 12.0, 0.03, group, "")


# -- what to measure next --------------------------------------------------------------


def test_candidates_are_runs_that_were_not_measured() -> None:
    every = candidates_beside([], {})
    assert len(every) == len(CANDIDATES)
    fewer = candidates_beside([pingpong(0)], {})
    assert every.keys() - fewer.keys() == {"PingPong of 0 B with rx-usecs 0"}
    # Ping-pongs of four ranks there are none.
    assert len(candidates_beside([], {"nic": "vmmc"})) < len(every)


def test_for_an_open_cost_the_command_that_tells_of_it_is_next() -> None:
    varied = varied_of(BASE, ["link_delay_ns", "copy_bytes_per_second", "handover_ns"])
    logs = np.array([one.middle for one in varied])
    widths = np.array([one.deviation for one in varied])
    ends = np.array([one.bounds for one in varied])
    solution = Solution(varied, logs, np.diag(widths**2), 0.01, np.zeros(0), np.zeros((0, 3)), ends)
    commands = {"short": pingpong(0), "long": pingpong(65_536)}
    with_predictor = Predictor(list(commands.values()), BASE)
    steps = {each["cost"]: each for each in next_steps(solution, with_predictor, list(commands))}
    assert steps["nic.link_delay_ns"]["command"] == "short"
    assert steps["model.copy_bytes_per_second"]["command"] == "long"
    assert all(each["command"] == "" or each["gain"] > 0.2 for each in steps.values())
    narrow = np.stack([logs - widths / 9, logs + widths / 9], axis=1)
    known = Solution(
        varied, logs, np.diag((widths / 9) ** 2), 0.01, np.zeros(0), np.zeros((0, 3)), narrow
    )
    assert next_steps(known, with_predictor, list(commands)) == []


def test_groups_are_left_out_alone_or_in_parts() -> None:
    some = [pingpong(0, group) for group in ("a", "b", "c", "a")]
    assert parts_of(some) == [("a",), ("b",), ("c",)]
    assert parts_of(some, 2) == [("a", "c"), ("b",)]
    assert parts_of(some, 9) == [("a",), ("b",), ("c",)]
    assert parts_of(some[:1]) == []


# -- the page --------------------------------------------------------------------------


def test_a_fit_tells_where_it_comes_from_and_is_found_by_any_name(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "workload,size_bytes,coalescing,metric,value,iterations,warmup\n"
        "pingpong,0,disabled,half_round_trip,12,3,1\n"
    )
    target, kept = tmp_path / "mine.toml", tmp_path / "whatever.json"
    command = [
        "fit",
        str(path),
        "--vary",
        "copy_bytes_per_second",
        "-o",
        str(target),
        "--json",
        str(kept),
    ]
    assert main([*command, "--workers", "1"]) == 0
    document = read_json(kept, "fit")
    assert "SHA-256" in document["origin"]["measurements"][str(path)]
    assert document["origin"]["files"] == {
        "platform": "mine.toml",
        "page": "mine.html",
        "figures": str(kept),
    }
    assert [each["cost"] for each in document["next"]] == ["model.copy_bytes_per_second"]
    page = (tmp_path / "mine.html").read_text()
    assert "SHA-256" in page
    assert "mine.toml" in page
    assert is_fit(kept)
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(kept.read_bytes()))
    (tmp_path / "other.json").write_text('{"schema":1,"kind":"other"}\n')
    (tmp_path / "broken.json.gz").write_bytes(b"no gzip")
    assert published_in(tmp_path) == [packed, kept]
    assert main(["report", str(tmp_path), "--output", str(tmp_path / "all.html")]) == 0
    assert (tmp_path / "all.html").read_text().count("Hosts from measurements") >= 2
    assert main(["report", str(tmp_path / "other.json")]) == 2


# -- a validation ----------------------------------------------------------------------

ROW: dict[str, Any] = {
    "family": "coalescing-spin",
    "params": {"wait": "spin", "size_bytes": 0, "coalescing": "disabled", "iterations": 300},
    "metric": "half_round_trip",
    "kind": "time",
    "model": "machine",
    "real": 12.5,
    "real_ci95": [11.5, 13.5],
}


def validation(directory: Path, *rows: dict[str, Any]) -> Path:
    path = directory / "validation.json"
    path.write_text(json.dumps({"schema": 1, "rows": [{**ROW, **row} for row in rows]}))
    return path


def test_times_of_a_validation_are_measurements_on_its_machine(tmp_path: Path) -> None:
    params = {"pairs": 1, "nic": "vmmc", "iterations": 150, "warmup": 300, "wait": "block"}
    path = validation(
        tmp_path,
        {},
        {"kind": "count", "metric": "interrupts_per_message"},
        {"metric": "wall_time", "params": params, "family": "waiting", "real_ci95": None},
        {"model": "hosts"},
    )
    one, waiting, hosts = read_measurements([path])
    assert (one.group, one.metric, one.value, one.on) == (
        "coalescing-spin",
        "half_round_trip",
        12.5,
        MACHINE,
    )
    assert one.uncertainty == pytest.approx(1 / 1.96 / 12.5, rel=1e-3)
    assert "iterations" not in dict(one.settings)
    assert dict(waiting.settings)["iterations"] == "150"
    assert "warmup" not in dict(waiting.settings)
    assert waiting.uncertainty == 0.02
    # On the machine the NIC is a process that has to run.
    values = [simulated_value(each, PLATFORMS["myri10g-2009"], 1) for each in (one, hosts)]
    assert values[0] != values[1]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "no times of real processes"),
        ([{"real": "much"}], "row 0"),
        ([{"kind": "count"}], "no times of real processes"),
        ([{"model": "moon"}], "'on' must be hosts or machine"),
    ],
)
def test_a_validation_that_cannot_be_used_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]], words: str
) -> None:
    path = validation(tmp_path, *rows)
    assert main(["fit", str(path), "-o", str(tmp_path / "out.toml")]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "out.toml").exists()


def test_folds_are_two_or_more(tmp_path: Path) -> None:
    for folds in ("1", "-2"):
        command = ["fit", str(validation(tmp_path, {})), "-o", str(tmp_path / "out.toml")]
        assert main([*command, "--folds", folds]) == 2
