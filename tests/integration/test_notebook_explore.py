"""`shrimpmx.explore`: the setting that suits a program, from a script; and its mistakes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from support.mpi_programs import MPI4PY, mpi_program

import shrimpmx
from shrimpmx.cli import main
from shrimpmx.errors import InputError, RankEndedError

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

RING = """
    for _ in range(5):
        heard = world.sendrecv(rank, right)
    print(f"{rank} heard {heard}", flush=True)
    """
GRID: dict[str, Any] = {"coalescing": ["disabled", "stream"], "wait": "spin"}
# Their costs are the same each time.
HOSTS: dict[str, Any] = {
    "engine": "simulated",
    "platform": "myri10g-2009",
    "cost_jitter": 1,
    "wake_jitter": 1,
}


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    return mpi_program(tmp_path, RING, MPI4PY)


@pytest.mark.nightly("seconds of a search")
def test_it_is_what_the_command_finds_and_runs_again(
    ring: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    found = shrimpmx.explore(ring, 2, **GRID, **HOSTS, rx_usecs=[20, 75], output="mine")
    assert capfd.readouterr().out == ""
    # The best setting runs twice.
    assert found.printed.count("heard") == 2 * (len(found.document["points"]) + 1)
    words = shlex.split(found.document["command"])
    assert main([*words[1:-2], "--output", "theirs", "--", *ring]) == 0
    theirs = shrimpmx.load("theirs").document
    assert theirs["explore"] == found.document["explore"]
    assert theirs["command"] == found.document["command"]
    told = capfd.readouterr().out
    assert found.repeat in told
    assert all(command in told for command in found.commands)
    shown = found._repr_html_()
    assert all(each["name"] in shown for each in found.document["explore"]["settings"])
    assert found.recommended in shown
    assert shlex.quote(ring[1]) in shown
    # Both ways to run the program so give the recommended setting's own figure.
    again = shrimpmx.mpirun(ring, 2, **HOSTS, **found.setting).document
    assert main([*shlex.split(found.repeat)[1:-2], "--json", "again.json", "--", *ring]) == 0
    figures = [document["points"][0]["metrics"]["run_time"]["median"]
               for document in (again, json.loads(Path("again.json").read_text()))]  # fmt: skip
    best = next(
        each for each in found.document["explore"]["settings"] if each["name"] == found.recommended
    )
    assert figures == [best["time"]["median"]] * 2


@pytest.mark.nightly("explorations by the command show it")
def test_a_short_budget_goes_on_with_real_processes(ring: list[str]) -> None:
    grid: dict[str, Any] = {"coalescing": ["disabled", "stream"], "wait": ["block", "spin-block"]}
    with pytest.raises(InputError, match="too short"):
        shrimpmx.explore(ring, 2, **grid, runs=2, budget=0.01, output="short")
    whole = shrimpmx.explore(ring, 2, **grid, runs=2, budget=600, output="short", resume=True)
    assert {each["runs"] for each in whole.document["explore"]["settings"]} <= {1, 2}
    assert len(whole.document["points"]) == 4
    assert whole.setting["coalescing"] in whole.recommended


@pytest.mark.parametrize(
    ("program", "options", "words"),
    [
        ("", {}, "name the program"),
        ("no-such-program", {}, "no-such-program"),
        ("python program.py", {"n": 0}, "n must be"),
        ("python program.py", {"n": 1}, "two nodes"),
        ("python program.py", {"coalescing": "streem"}, "did you mean 'stream'"),
        ("python program.py", {"wait": ["spin", "spin"]}, "^wait names 'spin' twice"),
        ("python program.py", {"placement": "corner"}, "^placement must be one of"),
        ("python program.py", {"objective": "speed"}, "^objective must be one of"),
        ("python program.py", {"budget": 0}, "^budget must be"),
        ("python program.py", {"runs": 51}, "^runs must be"),
        ("python program.py", {"seed": -1}, "seed"),
        ("python program.py", {"resume": True}, "resume=True needs output"),
        ("python program.py", {"rx_queues": 2}, "rx_queues"),
        ("python program.py", {"engine": "real"}, "engine is one of"),
        ("python program.py", {"timeout": 0}, "timeout"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    program: str, options: dict[str, Any], words: str, ring: list[str]
) -> None:
    assert ring
    before = sorted(Path().iterdir())
    with pytest.raises(InputError, match=words):
        shrimpmx.explore(program, **{"n": 2, **HOSTS, **options})
    assert sorted(Path().iterdir()) == before


def test_a_program_that_fails_everywhere_is_an_error_of_its_kind(ring: list[str]) -> None:
    assert ring
    with pytest.raises(RankEndedError) as failed:
        shrimpmx.explore([sys.executable, "-c", "raise SystemExit(7)"], 2, **GRID, **HOSTS)
    assert failed.value.exit_code == 7
