"""The note that a program's ranks share cores, and how each gets its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from shrimpmx.cli import main
from shrimpmx.experiment.clusters import shared_cores
from shrimpmx.experiment.program import Program
from shrimpmx.experiment.scenario import Scenario

MPI = {"workload": "mpi", "program": "true"}
PROGRAM = {"workload": "program", "program": str(Path(__file__).parents[2] / "setup.py")}


def note_of(given: dict[str, Any], sweep: dict[str, Any] | None = None, *, real: bool) -> str:
    scenario = Scenario(
        name="mine/x", title="One", parameters=given, sweep=sweep or {}, metrics=("run_time",)
    )
    return shared_cores(scenario.points(), real=real)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({**MPI, "ranks": 2}, ""),
        ({**MPI, "ranks": 4}, "2 ranks take turns on 1 core of their node: --set cores=2"),
        ({**MPI, "ranks": 5, "cores": 2}, "3 ranks take turns on 2 cores of their node: --set cor"),
        ({**MPI, "ranks": 4, "cores": 2}, ""),
        ({**MPI, "ranks": 4, "nodes": 4}, ""),
        ({**MPI, "ranks": 6, "nodes": 4, "map_by": "core", "cores": 1}, "2 ranks take turns on 1"),
        ({**MPI, "ranks": 4, "bind_to": "none"}, "2 ranks take turns on 1 core"),
        ({**MPI, "ranks": 130, "cores": 64}, "65 ranks take turns on 64 cores"),
        ({**PROGRAM, "pairs": 3}, "3 ranks take turns on 1 core of their node: --set cores=3"),
        ({**PROGRAM, "pairs": 3, "cores": 3}, ""),
        ({"workload": "pingpong", "pairs": 3}, ""),
    ],
)
@pytest.mark.parametrize("real", [False, True])
def test_ranks_that_share_a_core_are_told(given: dict[str, Any], told: str, *, real: bool) -> None:
    note = note_of(given, real=real)
    assert note.startswith(told)
    assert bool(note) == bool(told)


def test_more_ranks_than_a_node_may_have_cores_need_more_nodes() -> None:
    assert "more nodes give each" in note_of({**MPI, "ranks": 130, "cores": 64}, real=False)


def test_a_platform_gives_simulated_hosts_cores() -> None:
    given = {**MPI, "ranks": 4, "platform": "myri10g-2009"}
    assert note_of(given, real=False) == ""
    assert "2 ranks" in note_of(given, real=True)
    assert "9 ranks take turns on 8 cores" in note_of({**given, "ranks": 18}, real=False)


def test_of_several_points_the_most_crowded_one_is_told() -> None:
    assert "8 ranks take" in note_of(MPI, {"ranks": [2, 16, 4]}, real=False)


def test_every_rank_of_a_plain_mpirun_has_a_core() -> None:
    for ranks in (1, 2, 5, 64):
        for real in (False, True):
            point, _, _ = Program(("true",), ranks, real=real).point()
            assert shared_cores([point], real=real) == ""


def test_the_note_is_said_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    own = ["--engine", "simulated", "--set", "cores=1"]
    assert main(["mpirun", "-n", "4", *own, sys.executable, "-c", "pass"]) == 0
    said = capfd.readouterr().err
    assert "shrimpmx: note: 2 ranks take turns on 1 core of their node: --set cores=2" in said
