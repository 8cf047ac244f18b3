"""The command that repeats a result, by the command that made it."""

from __future__ import annotations

from typing import Any

import pytest
from support.results import a_document, a_point

from shrimpmx.results.repeating import repeating_command

PROGRAM = {"workload": "mpi", "program": "./a.out", "nodes": 2, "cores": [0, 1], "realtime": True}


def document(command: str, **more: Any) -> dict[str, Any]:
    points = [a_point({**PROGRAM, "coalescing": name}, {"run_time": 1}) for name in ("a", "b")]
    return {**a_document("mine", points, "coalescing"), "command": command, **more}


@pytest.mark.parametrize(
    ("made", "repeats"),
    [
        ("shrimpmx mpirun -n 2 ./a.out", "shrimpmx mpirun --runs 5 --seed 2 -n 2 ./a.out"),
        ("shrimpmx mpirun --runs 3 -n 2 ./a", "shrimpmx mpirun --runs 5 --seed 2 -n 2 ./a"),
        ("shrimpmx reproduce OMX-1", "shrimpmx reproduce OMX-1 --seed 2"),
        (
            "shrimpmx run smoke/pingpong --set repeats=9 --set mtu=9000",
            "shrimpmx run smoke/pingpong --set mtu=9000 --set repeats=5 --seed 2",
        ),
    ],
)
def test_a_command_is_made_again_with_more_runs(made: str, repeats: str) -> None:
    assert repeating_command(document(made), 5, ["--seed", "2"]) == repeats


def test_one_run_of_a_program_needs_no_number() -> None:
    made = "shrimpmx mpirun --runs 3 -n 2 ./a"
    assert repeating_command(document(made), 1) == "shrimpmx mpirun -n 2 ./a"


def test_the_program_of_an_exploration_runs_with_each_setting_where_it_ran() -> None:
    command = repeating_command(document("shrimpmx explore --wdir /data -x KEY=1 -n 2 ./a.out"), 5)
    assert command.startswith("env -C /data KEY=1 shrimpmx run ")
    for setting in ("program=./a.out", "coalescing=a,b", "cores=0,1", "realtime=true", "repeats=5"):
        assert setting in command.split()
    plain = repeating_command(document("shrimpmx explore -n 2 ./a.out"), 5)
    assert plain.startswith("shrimpmx run ")


def test_classes_of_a_cell_have_no_command() -> None:
    one = document("")
    for point in one["points"]:
        point["params"] = {"workload": "pingpong"}
    assert repeating_command(one, 5) == ""
