"""`run --engine simulated`, and what a real run has in common with it."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest
from support import resends
from support.cli import assert_refused
from support.clusters import pingpong_pair, run

from shrimpmx.cli import main
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.progress_bar import Bar, point_words
from shrimpmx.experiment.scenario import plan_runs
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation.engine import Simulated

SMALL = ("--set=iterations=50", "--set=warmup=5", "--set=repeats=1")


def document_of(output: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((output / "run.json").read_text())
    return found


def test_a_scenario_gives_the_same_points_each_time(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for output in (one, other):
        words = ["run", "smoke/pingpong", "--engine", "simulated", *SMALL]
        assert main([*words, "--output", str(output)]) == 0
    points = [json.dumps(_timeless(document_of(each)["points"])) for each in (one, other)]
    assert points[0] == points[1]
    assert document_of(one)["engine"] == "simulated"


def _timeless(points: object) -> object:
    """Points without how long it took to simulate them."""
    assert isinstance(points, list)
    return [{name: v for name, v in point.items() if name != "took_s"} for point in points]


def test_two_workers_give_what_one_does(tmp_path: Path) -> None:
    found = []
    for workers in ("1", "2"):
        output = tmp_path / workers
        words = ["run", "smoke/pingpong", "--engine", "simulated", *SMALL]
        assert main([*words, "--workers", workers, "--output", str(output)]) == 0
        found.append(json.dumps(_timeless(document_of(output)["points"])))
    assert found[0] == found[1]


def test_of_more_workers_than_runs_or_cpus_no_more_are_made_and_a_word_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []

    def noted(process: ForkProcess) -> None:
        made.append(process)
        start(process)

    start = ForkProcess.start
    monkeypatch.setattr(ForkProcess, "start", noted)
    words = ["run", "smoke/pingpong", "--engine", "simulated", *SMALL]
    assert main([*words, "--workers", "5000", "--output", str(tmp_path / "r")]) == 0
    assert len(made) == 8
    assert "--workers 5000 is more than there are CPUs" in capsys.readouterr().err


def test_of_runs_beside_each_other_the_bar_names_the_last_one_to_end() -> None:
    scenario = load_scenario(find_scenario("smoke/pingpong"))
    axes = scenario.varying_axes
    plan = plan_runs(scenario, scenario.points(), 1)[0]
    bar = Bar("smoke/pingpong", axes, 200)
    bar.begin(8, 3)
    bar.finished(plan)
    [line] = bar.lines()
    assert "4/8" in line
    assert point_words(plan, axes) in line
    bar.end()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workers", "2"), "--engine simulated"),
        (("--workers", "0", "--engine", "simulated"), "at least 1"),
    ],
)
def test_workers_that_cannot_be_are_refused(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    assert main(["run", "smoke/pingpong", *options]) == 2
    assert_refused(capsys, words)


def test_an_error_of_one_worker_ends_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "late"
    words = ["run", "smoke/pingpong", "--engine", "simulated", "--workers", "2"]
    late = ["--set=iterations=100000", "--set=deadline_s=1", "--output", str(output)]
    assert main([*words, *late]) == 3
    assert "--workers 2" in capsys.readouterr().err
    assert multiprocessing.active_children() == []


def test_a_result_is_not_resumed_by_the_other_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "kept"
    words = ["run", "smoke/pingpong", *SMALL, "--output", str(output)]
    assert main([*words, "--engine", "simulated"]) == 0
    document = document_of(output)
    (output / "run.json").write_text(json.dumps({**document, "complete": False}))
    capsys.readouterr()
    assert main([*words, "--resume"]) == 2
    assert_refused(capsys, "other settings")


def test_what_only_real_processes_do_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["run", "smoke/pingpong", "--engine", "simulated", "--set", "realtime=false"]
    assert main([*words, "--output", str(tmp_path / "none")]) == 2
    assert_refused(capsys, "--engine forked")


@pytest.mark.parametrize("size_bytes", [0, 100, 5000, 200_000])
def test_both_engines_count_the_same_packets(size_bytes: int) -> None:
    """Of what neither time nor order can change: packets by type, and where messages lie."""
    nic = NicParameters(coalescing="open-mx")
    spec = pingpong_pair(
        20, size_bytes, nic=nic, wait=WaitParameters(strategy="block"), mx=resends.MX,
        host=resends.HOST,
    )  # fmt: skip
    real, simulated = run(spec), Simulated().run(replace(spec))
    for rank in ("rank0", "rank1"):
        counted = [
            {
                name: each
                for name, each in result.worked(rank).items()
                if name.startswith(("send_", "memory_"))
            }
            for result in (real, simulated)
        ]
        # Delayed acknowledgements are a matter of time.
        for each in counted:
            each.pop("send_liback")
        assert counted[0] == counted[1]
