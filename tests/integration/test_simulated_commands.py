"""Commands with `--engine simulated`: what they give, and what they say that they cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused

from shrimpmx.cli import main
from shrimpmx.papers.charts import charts_of
from shrimpmx.results.result import load_result
from shrimpmx.show.plot.chart import Panel

ENGINE = ("--engine", "simulated")
SHORT = ("--set=iterations=50", "--set=warmup=5", "--set=repeats=1")
ON_CPUS = "select distinct name from slice where category = 'cpu'"


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_reproduction_judges_what_the_engine_can_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "r"
    words = ["reproduce", "MQ-1", "MQ-5", *ENGINE, "--workers", "2", *SHORT]
    assert main([*words, "--output", str(output)]) == 0
    document = read(output / "claims.json")
    assert document["engine"] == "simulated"
    ran, could_not = document["claims"]
    assert ran["result"] != "needs"
    assert ran["measured"] is not None
    assert could_not["result"] == "needs"
    assert "needs --engine forked" in could_not["reason"]
    assert "Simulated hosts" in capsys.readouterr().out
    # Where one engine has begun, another does not go on.
    (output / "claims.json").write_text(json.dumps({**document, "complete": False}))
    assert main(["reproduce", "MQ-1", "MQ-5", *SHORT, "--output", str(output), "--resume"]) == 2
    assert_refused(capsys, "another engine")


@pytest.mark.nightly("unit tests judge each engine")
def test_claims_are_judged_on_both_engines(tmp_path: Path) -> None:
    output, document = tmp_path / "r", tmp_path / "r.json"
    words = ["reproduce", "MQ-10", "--engine", "both", "--output", str(output), *SHORT]
    words += ["--set=pairs=1", "--set=size_bytes=0", "--json", str(document)]
    assert main(words) == 0
    claims = read(document)["claims"]
    assert [(each["engine"], each["result"]) for each in claims] == [
        *(("simulated", "size"), ("forked", "size"))
    ]
    assert all(each["evidence"] == ["invariant"] for each in claims)
    for each in claims:
        assert read(output / each["engine"] / "claims.json")["claims"] == [each]
    assert main([*words, "--resume"]) == 0
    assert read(document)["claims"] == claims
    # The first engine was done when the second one was killed at its very begin.
    shutil.rmtree(output / "forked")
    (output / "forked").mkdir()
    assert main([*words, "--resume"]) == 0
    assert [each["engine"] for each in read(document)["claims"]] == ["simulated", "forked"]


def test_every_placement_of_interrupts_is_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those that this machine has no CPUs for."""
    words = ["run", "multiqueue/table1_binding", *ENGINE, *SHORT, "--set=platform=myri10g-2009"]
    assert main([*words, "--output", str(tmp_path / "r")]) == 0
    points = read(tmp_path / "r" / "run.json")["points"]
    assert not [point for point in points if "impossible" in point]
    assert all(point["metrics"]["mean_half_round_trip"]["median"] > 0 for point in points)
    places = {(point["params"]["irq_binding"], point["params"]["distance"]) for point in points}
    cores = {("0", distance) for distance in ("SC", "S$", "SP", "OP")}
    assert places >= {("round-robin", "any"), ("per-queue", "SC"), *cores}
    table = capsys.readouterr().out
    assert all(distance in table for _, distance in cores)


def test_points_that_the_engine_cannot_run_are_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "waits"
    words = ["run", "smoke/waiting", *ENGINE, *SHORT, "--set", "realtime=true,false"]
    assert main([*words, "--output", str(output)]) == 0
    points = read(output / "run.json")["points"]
    left_out = {point["params"]["realtime"] for point in points if "impossible" in point}
    assert left_out == {False}
    assert len(left_out) < len(points)
    assert "needs --engine forked" in capsys.readouterr().out


def test_a_trace_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    texts = []
    for workers in ("1", "2"):
        output = tmp_path / workers
        words = [
            "run",
            "smoke/pingpong",
            *ENGINE,
            "--workers",
            workers,
            "--trace",
            *SHORT[1:],
            "--set=iterations=5",
        ]
        assert main([*words, "--set", "size_bytes=32768", "--output", str(output)]) == 0
        texts.append({path.name: path.read_bytes() for path in (output / "traces").iterdir()})
    assert texts[0] == texts[1]
    text = next(each for name, each in sorted(texts[0].items()) if name.endswith(".txt")).decode()
    assert all(words in text for words in ("isend", "interrupt taken", "received"))


def test_a_timeline_shows_what_makes_a_packet_go_before_it(tmp_path: Path) -> None:
    words = ["run", "coalescing/table2_anatomy", *ENGINE, *SHORT, "--set=coalescing=open-mx"]
    assert main([*words, "--output", str(tmp_path / "r")]) == 0
    lines = (tmp_path / "r" / "timelines" / "point0000.txt").read_text().splitlines()
    assert "isend" in lines[1]
    assert "rndv" in lines[2]


def test_pictures_and_counters_of_a_simulated_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "r"
    words = ["run", "coalescing/fig4_message_rate", *ENGINE, *SHORT]
    assert main([*words, "--output", str(output)]) == 0
    [chart, *_] = charts_of(load_result(output))
    caption = "\n".join(chart.caption)
    assert "Simulated hosts" in caption
    assert "Measured on" not in caption
    for panel in chart.panels:
        assert isinstance(panel, Panel)
        assert "this machine" not in {panel.title, *(series.label for series in panel.series)}
        assert "own costs" not in panel.title
    capsys.readouterr()
    assert main(["counters", str(output), "--agent", "node0.irq0", "--only", "recv_packets"]) == 0
    assert "recv_packets" in capsys.readouterr().out


def test_places_are_emulated_cpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "places.json"
    assert main(["place", "smoke/pingpong", *ENGINE, "--json", str(path)]) == 0
    [point, *_] = read(path)["points"]
    cpus = [process["cpu"] for process in point["placement"]["processes"]]
    assert len(set(cpus)) > 2
    capsys.readouterr()
    assert main(["place", "smoke/pingpong", *ENGINE, "--machine", "package:1 core:4 pu:1"]) == 2
    assert_refused(capsys, "--machine")


def test_what_describes_simulated_hosts_is_refused_for_real_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "smoke/pingpong", "--set", "poll_ns=10", "--output", str(tmp_path / "r")]
    assert main(words) == 2
    assert "--engine simulated" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
