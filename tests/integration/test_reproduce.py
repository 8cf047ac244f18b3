"""`shrimpmx reproduce` on real processes: one claim, few messages; counts only, no times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shrimpmx.cli import main
from shrimpmx.measure.result import load_result


def test_a_claim_is_run_judged_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "IC-14", "--output", str(tmp_path / "r"), "--json"]
    arguments += [str(tmp_path / "r.json")]
    for setting in ("platform=none", "iterations=3", "warmup=1", "repeats=1", "wait=block"):
        arguments += ["--set", setting]
    assert main(arguments) == 0
    [claim] = json.loads((tmp_path / "r.json").read_text())["claims"]
    assert set(claim) >= {"id", "verdict", "paper", "measured", "ci95", "unit", "reason"}
    # One run is enough for what the protocol alone decides, and for nothing else.
    verdicts = {part["text"]: (part["verdict"], part["measured"]) for part in claim["parts"]}
    assert verdicts["packets, acknowledgements apart"] == ("reproduced", 167)
    assert verdicts["pull requests"] == ("reproduced", 5)
    assert verdicts["pull replies"] == ("reproduced", 160)
    assert claim["verdict"] in ("inconclusive", "not measurable here")
    assert claim["reason"].startswith("interrupts without coalescing (coalescing disabled")
    result = load_result(tmp_path / "r" / "coalescing-table2_anatomy")
    assert {tuple(point["params"]["marks"]) for point in result["points"]} == {
        ("rndv", "pull-request", "pull-reply", "notify")
    }
    assert len(result["points"]) == 4
    out = capsys.readouterr().out
    assert "92.4 irq/msg" in out
    assert "1 inconclusive" in out or "1 not measurable here" in out
