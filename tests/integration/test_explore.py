"""`shrimpmx explore` with real processes: a small grid, failures, a budget too short."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.conditions import patient, wait_until
from support.mpi_programs import MPI4PY, mpi_program
from support.page import Page
from support.timed_programs import KINDS, timed_program

from shrimpmx.cli import main
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.experiment.explore.measured import ALIKE
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.program_executor import ProgramExecutor
from shrimpmx.results.result import load_result

Captured = pytest.CaptureFixture[str]


# A second rank passes on what it gets, so that messages cross between the nodes.
PROGRAM = """
    value = np.zeros(1)
    for _ in range(20):
        world.Sendrecv(value, right, recvbuf=value.copy(), source=left)
    print("done")
    """
# Fails where ranks wait by sleeping.
SLEEPLESS = """
    if type(rank.waiter.strategy).__name__ == "Block":
        os._exit(9)
    finalize()
    """
GRID = ("--coalescing", "timeout,stream", "--wait", "block,spin-block")


def explore(place: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what --json got."""
    result = place / "explored.json"
    options = ("--output", str(place / "result"), "--json", str(result))
    code = main(["explore", "-n", "2", *options, *words])
    return code, json.loads(result.read_text()) if result.exists() else {}


def test_a_small_grid_is_explored_reported_and_kept(tmp_path: Path, capsys: Captured) -> None:
    code, document = explore(
        tmp_path, *GRID, "--runs", "2", *mpi_program(tmp_path, PROGRAM, MPI4PY)
    )
    assert code == 0
    found = document["explore"]
    assert found["recommended"] in [setting["name"] for setting in found["settings"]]
    assert len(found["settings"]) == 4
    assert all(each["interrupts"]["median"] > 0 for each in found["settings"])
    assert {each["runs"] for each in found["settings"]} in ({1, 2}, {2})
    assert found["counted"] == "work"
    assert 0 < found["share_of_run_percent"] < 100
    assert all(each["run_handler_cpu_time"]["median"] > 0 for each in found["settings"])
    said = capsys.readouterr()
    # Where a line is too short for all of it the name takes several.
    first, *_ = found["recommended"].split()
    assert re.search(rf"^ *→.* {first} ", said.out, re.M)
    assert all(command in said.out for command in found["commands"])
    assert "done" not in said.out
    place = tmp_path / "result"
    assert "done" in (place / "output.txt").read_text()
    assert {path.suffix for path in (place / "plots").iterdir()} == {".png", ".svg"}
    stored = load_result(place)
    assert len(stored["points"]) == 4
    assert stored["explore"] == found
    page = Page.read(place / "report.html")
    assert page.unbalanced == []
    order = (
        "For the shortest",
        "In the emulator",
        "numbered: the frontier",
        "setting",
        "At all points",
    )
    places = [0]
    for words in order:
        places.append(page.text.index(words, places[-1] + 1))
    assert page.text.count(order[-1]) == 1
    rows = [row for table in page.tables if "setting" in table[0] for row in table[1:]]
    assert sorted(row[1] for row in rows) == sorted(each["name"] for each in found["settings"])
    assert rows[0][1] == found["recommended"]
    shown = (*found["commands"], stored["command"])
    assert all(" ".join(command.split()) in page.text for command in shown)
    assert "--output" not in stored["command"]
    said_last = said.out.partition(f"\npage: {place / 'report.html'}\n")[2]
    assert found["recommended"] in " ".join(said_last.split())


@pytest.mark.nightly("each way to fail")
def test_a_program_that_fails_under_one_setting_is_explored_under_the_others(
    tmp_path: Path, capsys: Captured
) -> None:
    grid = ("--coalescing", "stream", "--wait", "block,sched", "--runs", "2")
    code, document = explore(tmp_path, *grid, *mpi_program(tmp_path, SLEEPLESS))
    assert code == 0
    assert document["explore"]["recommended"] == "stream, sched"
    assert "failed: stream, block: rank" in capsys.readouterr().out


@pytest.mark.nightly("each way to fail", but=1)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("raise SystemExit(7)", 1),
        ("MPI.COMM_WORLD.Abort(7)", 1),
        # A message has gone by the setting, which may be the reason.
        ("world.Barrier(); raise SystemExit(7)", 2),
    ],
)
def test_a_program_that_always_fails_ends_it_with_its_exit_code(
    text: str, runs: int, engine: str, tmp_path: Path, capsys: Captured
) -> None:
    program = mpi_program(tmp_path, text, MPI4PY)
    code, _ = explore(tmp_path, *GRID, "--engine", engine, *program)
    assert code == 7
    assert "exit code 7" in capsys.readouterr().err
    kept = load_result(tmp_path / "result")
    assert "explore" not in kept
    assert [bool(each["failed"]) for each in kept["points"]] == [True] * runs


@pytest.mark.nightly("seconds of a search")
def test_the_output_of_each_run_stands_below_its_setting(tmp_path: Path) -> None:
    program = mpi_program(tmp_path, "print(end='here')", MPI4PY)
    code, document = explore(tmp_path, *GRID, "--runs", "2", "--engine", "simulated", *program)
    assert code == 0
    runs: dict[str, list[str]] = {}
    for line in (tmp_path / "result" / "output.txt").read_text().splitlines():
        if line.startswith("# "):
            runs[line] = []
        elif line:
            *_, last = runs
            runs[last].append(line)
    assert all("".join(lines) == "herehere" for lines in runs.values())
    names = [each["name"] for each in document["explore"]["settings"]]
    assert all(f"# {name}, run 1" in runs for name in names)
    assert len(runs) == sum(each["runs"] for each in document["explore"]["settings"])


@pytest.mark.nightly("each engine")
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_an_interrupted_exploration_goes_on_by_the_command_that_it_names(
    engine: str, tmp_path: Path
) -> None:
    text = "[world.Barrier() for _ in range(2000)]"
    words = ["explore", "-n", "2", *GRID, "--runs", "2", "--engine", engine]
    words += ["--output", str(tmp_path / "result")]
    interrupted = subprocess.Popen(
        [sys.executable, "-m", "shrimpmx", *words, *mpi_program(tmp_path, text, MPI4PY)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    points = tmp_path / "result" / "points"
    wait_until(lambda: points.is_dir() and len(list(points.iterdir())) > 1, "two runs", 60)
    interrupted.send_signal(signal.SIGINT)
    _, said = interrupted.communicate(timeout=patient(60))
    assert interrupted.returncode == 3
    [command] = re.findall(r"^  shrimpmx (.*)$", said, re.M)
    assert main(shlex.split(command)) == 0
    assert len(load_result(tmp_path / "result")["explore"]["settings"]) == 4


def test_a_budget_too_short_reports_what_has_run(tmp_path: Path, capsys: Captured) -> None:
    program = mpi_program(tmp_path, PROGRAM, MPI4PY)
    code, document = explore(tmp_path, "--budget", "0.1", *program)
    assert code == 2
    said = capsys.readouterr()
    assert "1 of 16" in said.err
    assert document["explore"]["chance_that_best_is_contender"] is None
    assert len(load_result(tmp_path / "result")["points"]) == 1


@pytest.fixture
def own_times(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[float]]:
    """What programs print of their loops, us, by the setting of each run."""
    found: dict[str, list[float]] = {}
    run = ProgramExecutor.run

    def observed(executor: ProgramExecutor, point: Point, seed: int) -> ClusterResult:
        result = run(executor, point, seed)
        printed = Path(executor.launches[0].stdout).read_text()
        *_, last = re.findall(r"loop (\S+) us", printed)
        name = f"{point.shown['coalescing']}, {point.shown['wait']}"
        found.setdefault(name, []).append(float(last))
        return result

    monkeypatch.setattr(ProgramExecutor, "run", observed)
    return found


# Hosts whose costs are the same each time.
EXACT = (
    *("--engine", "simulated", "--set", "platform=myri10g-2009"),
    *("--set", "cost_jitter=1", "--set", "wake_jitter=1"),
)
SIMULATED = (
    *("-n", "4", "--coalescing", "disabled,open-mx", "--wait", "block,spin-block"),
    *(*EXACT, "--set", "cores=8"),
)
# With a timer so long that no scatter of real times hides it.
REAL = ("-n", "2", "--coalescing", "disabled,timeout", "--wait", "block", "--runs", "2")
REAL = (*REAL, "--set", "rx_usecs=20000")


@pytest.mark.nightly("each program on each engine", but=1)
@pytest.mark.parametrize("options", [SIMULATED, REAL], ids=["simulated", "real"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_orders_settings_as_the_programs_own_times_do(
    kind: str, options: tuple[str, ...], tmp_path: Path, own_times: dict[str, list[float]]
) -> None:
    """Start and end of the program, which are no part of its loop, must not decide."""
    words = ("--placement", "round-robin", *options, *timed_program(tmp_path, kind, 40))
    code, document = explore(tmp_path, *words)
    assert code == 0
    found = document["explore"]
    judged = {each["name"]: each["time"]["median"] for each in found["settings"]}
    assert judged.keys() == own_times.keys()
    assert found["exact"] == (options == SIMULATED)
    assert all(judged[name] >= statistics.median(own) for name, own in own_times.items())
    # Where runs scatter only what no run contradicts is certain.
    pairs = [
        (less, more)
        for less, more in itertools.permutations(own_times, 2)
        if ALIKE * max(own_times[less]) < min(own_times[more])
    ]
    assert pairs
    assert [pair for pair in pairs if judged[pair[0]] >= judged[pair[1]]] == []
    beaten = {more for _, more in pairs if judged[more] > ALIKE * min(judged.values())}
    assert found["recommended"] not in beaten


@pytest.mark.nightly("each aim", but=1)
@pytest.mark.parametrize(
    ("objective", "grid", "best"),
    [
        # A rank that sleeps uses no CPU; one that spins never leaves it.
        ("cpu", ("--coalescing", "stream", "--wait", "spin,block"), "stream, block"),
        # An interrupt for each packet that comes or has left is the most that there can be.
        ("interrupts", ("--coalescing", "disabled,stream", "--wait", "spin"), "stream, spin"),
    ],
)
def test_what_was_asked_for_decides(
    objective: str, grid: tuple[str, ...], best: str, tmp_path: Path
) -> None:
    engine = ("--engine", "simulated", "--set", "platform=myri10g-2009")
    program = mpi_program(tmp_path, PROGRAM, MPI4PY)
    code, document = explore(tmp_path, "--for", objective, *grid, *engine, *program)
    assert code == 0
    assert document["explore"]["recommended"] == best


@pytest.mark.nightly("whole searches; unit tests have short ones")
def test_on_simulated_hosts_it_finds_the_same_each_time(tmp_path: Path, capsys: Captured) -> None:
    program = mpi_program(tmp_path, PROGRAM, MPI4PY)
    found = []
    for turn in ("one", "other"):
        (tmp_path / turn).mkdir()
        code, document = explore(tmp_path / turn, *GRID, *EXACT, *program)
        assert code == 0
        assert document["engine"] == "simulated"
        found.append((document["explore"], document["points"]))
    assert found[0] == found[1]
    # Nothing is drawn here, which the second run of the best one shows.
    assert sorted(each["runs"] for each in found[0][0]["settings"])[-2:] == [1, 2]
    said = capsys.readouterr().out
    assert "hosts of the platform myri10g-2009" in said
    assert "exact" in said
