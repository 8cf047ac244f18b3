"""`shrimpmx place`: maps and distances of any machine, without running anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.cli import assert_refused

from shrimpmx.bench.checkup import distances
from shrimpmx.cli import main
from shrimpmx.cli.place import distance_table
from shrimpmx.cluster.place.topology import topology_of

SCENARIO = """\
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(
    name="far", title="Far", metrics=("half_round_trip",),
    parameters={"cores": 2, "irq_binding": "1"}, sweep={"distance": ("SC", "S$", "SP", "OP")},
)
"""


@pytest.fixture
def scenario(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "far.py"
    path.write_text(SCENARIO)
    return str(path)


def test_the_maps_of_another_machine(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["place", scenario, "--machine", "clovertown-2007"]) == 0
    text = capsys.readouterr().out
    assert "  0   4   2,6  1,3,5,7" in text.splitlines()
    for distance, cpu in (("SC", 0), ("S$", 4), ("SP", 2), ("OP", 1)):
        assert f"two-node mode, distance {distance}:\nplacement on 8 CPUs" in text
        assert f"node 0, core 0; interrupts on CPU {cpu} ({distance})" in text


def test_what_a_machine_has_not_is_said(
    scenario: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["place", scenario, "--machine", "l3:1 core:2 pu:1", "--json", "out.json"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    sentence = "distance OP needs CPUs of two packages; CPUs 0-1 have only SC, S$"
    assert f"two-node mode, distance OP:\nno placement: {sentence}" in text
    found = json.loads((tmp_path / "out.json").read_text())
    assert [("placement" in point, "impossible" in point) for point in found["points"]] == [
        (True, False), (True, False), (False, True), (False, True),
    ]  # fmt: skip
    assert found["points"][3]["impossible"] == sentence
    assert found["distances"] == {
        "0": {"SC": [0], "S$": [1], "SP": [], "OP": []},
        "1": {"SC": [1], "S$": [0], "SP": [], "OP": []},
    }


def test_a_machine_that_has_no_point_ends_with_the_reason(
    scenario: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["--set", "distance=OP,SP", "--machine", "l3:1 core:2 pu:1", "--json", "out.json"]
    assert main(["place", scenario, *arguments]) == 2
    said = capsys.readouterr()
    assert "no placement: distance OP needs CPUs of two packages" in said.out
    assert said.err.startswith("shrimpmx: distance OP needs CPUs of two packages")
    assert json.loads((tmp_path / "out.json").read_text())["points"][1]["impossible"]


@pytest.mark.parametrize(
    ("command", "settings", "words"),
    [
        ("run", ["irq_binding=1,round-robin", "distance=S$"], "cores 0-1 turn"),
        ("run", ["process_binding=none,file:absent"], "binding file absent"),
        ("run", ["process_binding=file:there"], "line 1 binding file there"),
        ("reproduce", ["process_binding=file:absent"], "binding file absent"),
        ("reproduce", ["distance=S$"], "interrupts rank core"),
    ],
)
def test_what_one_point_cannot_do_is_told_before_anything_is_prepared(
    command: str,
    settings: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "there").write_text("no line of a binding\n")
    what = {"run": "smoke/pingpong", "reproduce": "IC-9"}[command]
    given = [word for setting in ("cores=2", *settings) for word in ("--set", setting)]
    assert main([command, what, *given, "--output", "kept"]) == 2
    assert_refused(capsys, words)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_this_machine_without_the_option(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["place", scenario, "distance=SC"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("distances between ")
    assert text.count("placement on ") == 1


def test_a_platform_needs_no_calibration(
    scenario: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = ["--set", "platform=myri10g-2009", "--set", "distance=SC"]
    assert main(["place", scenario, *settings]) == 0
    assert "rank0" in capsys.readouterr().out
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--machine", "cray-1"], "'cray-1' clovertown-2007 one-l3-8"),
        (["--machine", "package:2 tile:2 pu:1"], "'tile' level"),
        (["--set", "distance=XX"], "distance"),
        (["--set", "irq_binding=0"], "core 0 node 0 rank_core irq_binding"),
    ],
)
def test_bad_input_is_one_sentence(
    scenario: str, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["place", scenario, *arguments]) == 2
    assert_refused(capsys, words)


def test_a_run_of_impossible_points_ends_with_the_reason(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One CPU is never two packages, whatever this machine is."""
    cpu = min(os.sched_getaffinity(0))
    settings = ["--set", "distance=OP", "--set", f"cpus={cpu}"]
    assert main(["run", scenario, *settings]) == 2
    error = capsys.readouterr().err
    assert f"distance OP needs CPUs of two packages; CPU {cpu} has only SC" in error


def test_a_large_machine_has_a_line_for_each_cpu() -> None:
    lines = distance_table(topology_of("two-socket-32")).splitlines()
    assert len(lines) == 65
    assert lines[1].split() == ["0", "1-15,32-47", "-", "16-31,48-63"]


def test_doctor_tells_the_distances_that_there_are() -> None:
    finding = distances(Path("/"))
    assert finding.found.startswith("SC CPU ")
    assert finding.state in ("good", "limited")
    assert bool(finding.follows) == (finding.state == "limited")
