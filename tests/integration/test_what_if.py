"""`--what-if`: the differences are those of runs with these settings, and mistakes end first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.mpi_programs import mpi_program

from shrimpmx.cli import main
from shrimpmx.costs.table import COSTS
from shrimpmx.experiment.what_if import costs_of_part
from shrimpmx.show.breakdown.spans import PARTS

SIMULATED = ("--engine", "simulated")
PINGPONG = (
    *("run", "smoke/pingpong", *SIMULATED, "--set", "size-bytes=0,4096", "--set", "repeats=1"),
    *("--set", "platform=myri10g-2009", "--set", "iterations=3", "--set", "warmup=1"),
)
TIMEOUT = ("--set", "coalescing=timeout")
EXCHANGE = """
    theirs = bytearray(1)
    receive = rank.endpoint.irecv(theirs, match=1)
    rank.endpoint.send(b"x", rank.partners[1 - number], match=1)
    rank.endpoint.wait(receive)
    finalize()
    """

Captured = pytest.CaptureFixture[str]


def what_if(place: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((place / "what-if.json").read_text())["runs"]
    return runs


def where(place: Path) -> list[dict[str, float]]:
    """The parts of the critical path of each traced run, in ns of the emulated hosts."""
    assert main(["trace", str(place), "--where", "--json", str(place / "where.json")]) == 0
    runs = json.loads((place / "where.json").read_text())["runs"].values()
    return [
        {part: ns / run["time_dilation"] for part, ns in run["critical_path"]["parts"].items()}
        for run in runs
    ]


def test_a_run_tells_the_difference_to_one_with_these_settings(
    tmp_path: Path, capsys: Captured
) -> None:
    changes = ("coalescing=open-mx", "interrupt_time_ns=0")
    asked = [word for change in changes for word in ("--what-if", change)]
    now, then = tmp_path / "now", tmp_path / "then"
    assert main([*PINGPONG, *TIMEOUT, "--trace", *asked, "--output", str(now)]) == 0
    told = capsys.readouterr().out
    assert told.count("what if coalescing=open-mx, interrupt_time_ns=0 (") == 2
    settings = [word for change in changes for word in ("--set", change)]
    assert main([*PINGPONG, *settings, "--trace", "--output", str(then)]) == 0
    pairs = what_if(now)
    assert [pair["params"] for pair in pairs] == [{"size_bytes": 0}, {"size_bytes": 4096}]
    assert [pair["now"]["critical path"] for pair in pairs] == where(now)
    assert [pair["then"]["critical path"] for pair in pairs] == where(then)
    for pair in pairs:
        parts = [pair[when]["critical path"].get("coalescing", 0) for when in ("now", "then")]
        assert parts[1] < parts[0]


@pytest.mark.parametrize("part", ["interrupt", "handler", "wake-up", "copy", "wire", "DMA"])
def test_a_part_of_the_time_is_free_without_its_costs(
    part: str, tmp_path: Path, capsys: Captured
) -> None:
    place = tmp_path / "r"
    asked = ("--what-if", f"{part.lower()}=0", "--output", str(place))
    assert main([*PINGPONG, *TIMEOUT, *asked]) == 0
    told = capsys.readouterr().out
    document = json.loads((place / "what-if.json").read_text())
    assert f"what if {part.lower()}=0 sets {', '.join(document['set'])}\n" in told
    for pair in document["runs"]:
        assert pair["now"]["critical path"][part] > 0
        assert part not in pair["then"]["critical path"]


def test_every_cost_is_in_parts_of_the_time() -> None:
    assert {part for cost in COSTS.values() for part in cost.time_parts} <= set(PARTS)
    with_costs = {part for part in PARTS if costs_of_part(part)}
    assert with_costs == {"interrupt", "handler", "wake-up", "copy", "wire", "DMA"}


def test_what_changes_nothing_makes_no_difference(tmp_path: Path, capsys: Captured) -> None:
    words = (*PINGPONG, *TIMEOUT, "--set", "rx-usecs=75", "--what-if", "rx-usecs=75")
    assert main([*words, "--output", str(tmp_path / "r")]) == 0
    for pair in what_if(tmp_path / "r"):
        assert pair["now"] == pair["then"]
    told = capsys.readouterr().out.partition("what if")[2].splitlines()
    changes = {line.split()[-1] for line in told if line.startswith(("coalescing", "sum"))}
    assert changes == {"+0.000"}


def test_a_program_runs_once_more(tmp_path: Path, capfd: Captured) -> None:
    place = tmp_path / "r"
    words = ("mpirun", "-n", "2", *SIMULATED, "--set", "coalescing=timeout")
    asked = ("--what-if", "coalescing=open-mx", "--output", str(place))
    assert main([*words, *asked, *mpi_program(tmp_path, EXCHANGE)]) == 0
    told = capfd.readouterr().err
    assert "what if coalescing=open-mx: the program runs once more" in told
    [pair] = what_if(place)
    assert sum(pair["then"]["critical path"].values()) < sum(pair["now"]["critical path"].values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*SIMULATED, "--what-if", "coalesing=open-mx"), "coalesing coalescing"),
        ((*SIMULATED, "--what-if", "coalescing=nonsense"), "nonsense"),
        ((*SIMULATED, "--what-if", "coalescing=timeout,open-mx"), "--what-if one value"),
        ((*SIMULATED, "--what-if", "repeats=2"), "--what-if repeats"),
        ((*SIMULATED, "--what-if", "late-partner=0"), "no cost makes up late partner"),
        ((*SIMULATED, "--what-if", "interrupt=5"), "interrupt=0 interrupt_time_ns"),
        (("--what-if", "coalescing=open-mx"), "--what-if simulated"),
        ((*SIMULATED, "--what-if", "rx-usecs=1", "--resume"), "--what-if --resume"),
        ((*SIMULATED, "--what-if", "rx-usecs=1", "--workers", "2"), "--what-if --workers"),
    ],
    ids=str,
)
def test_mistakes_end_before_anything_runs(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: Captured
) -> None:
    place = tmp_path / "r"
    given = ["run", "smoke/pingpong", "--set", "repeats=1", *words, "--output", str(place)]
    assert main(given) == 2
    assert_refused(capsys, said)
    assert not place.exists()
