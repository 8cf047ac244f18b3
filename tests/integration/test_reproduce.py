"""`shrimpmx reproduce` on real processes: one claim, few messages; counts only, no times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shrimpmx.cli import main
from shrimpmx.results.result import load_result


def test_a_claim_is_run_judged_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "IC-14", "--output", str(tmp_path / "r"), "--json"]
    arguments += [str(tmp_path / "r.json")]
    for setting in ("platform=none", "iterations=3", "warmup=1", "repeats=1", "wait=block"):
        arguments += ["--set", setting]
    assert main(arguments) == 0
    [claim] = json.loads((tmp_path / "r.json").read_text())["claims"]
    assert set(claim) >= {"id", "result", "paper", "measured", "ci95", "unit", "reason"}
    # One run is enough for what the protocol alone decides, and for nothing else.
    results = {part["text"]: (part["result"], part["measured"]) for part in claim["parts"]}
    assert results["packets, acknowledgements apart"] == ("size", 167)
    assert results["pull requests"] == ("size", 5)
    assert results["pull replies"] == ("size", 160)
    # The paper's interrupts are those of its hosts.
    assert results["interrupts without coalescing"] == ("needs", None)
    assert (claim["result"], claim["needs"]) == ("needs", "platform myri10g-2009")
    assert claim["reason"].startswith("interrupts without coalescing: ")
    result = load_result(tmp_path / "r" / "coalescing-table2_anatomy")
    assert {tuple(point["params"]["marks"]) for point in result["points"]} == {
        ("rndv", "pull-request", "pull-reply", "notify")
    }
    assert len(result["points"]) == 4
    out = capsys.readouterr().out
    assert "92.4 irq/msg" in out
    assert "IC-14, needs platform myri10g-2009" in " ".join(out.split())


@pytest.mark.nightly("each paper")
def test_a_claim_of_the_waiting_paper_is_run_with_the_costs_of_its_machine(tmp_path: Path) -> None:
    arguments = ["reproduce", "WC-4", "--beside", "--output", str(tmp_path / "r")]
    for setting in ("iterations=5", "warmup=1", "repeats=1"):
        arguments += ["--set", setting]
    assert main(arguments) == 0
    result = load_result(tmp_path / "r" / "waiting-wake_up")
    points = {(p["params"]["platform"], p["params"]["wait"]): p for p in result["points"]}
    assert len(points) == 4
    for (platform, _), point in points.items():
        charged = point["host_costs_ns"]
        costs = (charged["interrupt"], charged["notification"])
        assert costs == ((270_000, 160_000) if platform == "shrimp-1996" else (0, 0))
        assert (charged["reschedule"] > 0) == (platform == "shrimp-1996")
        assert point["time_dilation"] == 1.0
    [claim] = json.loads((tmp_path / "r" / "claims.json").read_text())["claims"]
    # The handler's cost there is fitted: this machine's own costs decide.
    assert [part["decides"] for part in claim["parts"]] == [True, False, False]
