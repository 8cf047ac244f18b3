"""Commands with `--engine simulated`: what they give, and what they say that they cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused

from shrimpmx.cli import main

ENGINE = ("--engine", "simulated")
SHORT = ("--set=iterations=50", "--set=warmup=5", "--set=repeats=1")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_reproduction_judges_what_the_engine_can_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "r"
    words = ["reproduce", "MQ-1", "WC-1", *ENGINE, "--workers", "2", *SHORT]
    assert main([*words, "--output", str(output)]) == 0
    document = read(output / "claims.json")
    assert document["engine"] == "simulated"
    assert document["host_model"]["poll_ns"] > 0
    ran, could_not = document["claims"]
    assert ran["verdict"] != "not measurable here"
    assert ran["measured"] is not None
    assert could_not["verdict"] == "not measurable here"
    assert "needs --engine forked" in could_not["reason"]
    assert "Simulated hosts" in capsys.readouterr().out
    # Where one engine has begun, another does not go on.
    (output / "claims.json").write_text(json.dumps({**document, "complete": False}))
    assert main(["reproduce", "MQ-1", "WC-1", *SHORT, "--output", str(output), "--resume"]) == 2
    assert_refused(capsys, "another engine")


def test_points_that_the_engine_cannot_run_are_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "waits"
    assert main(["run", "smoke/waiting", *ENGINE, *SHORT, "--output", str(output)]) == 0
    points = read(output / "run.json")["points"]
    left_out = {point["params"]["wait"] for point in points if "impossible" in point}
    assert left_out == {"notify", "spin-notify"}
    assert len(left_out) < len(points)
    assert "needs --engine forked" in capsys.readouterr().out
