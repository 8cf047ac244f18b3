"""The recommended setting under draws of a fitted platform's costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.exploring import Program, cost, exploration, outcome, scenario_of

from shrimpmx.cli import main
from shrimpmx.errors import RankEndedError
from shrimpmx.experiment.explore.draws import RIVALS, best_under_draws, words_of
from shrimpmx.experiment.explore.findings import Findings
from shrimpmx.experiment.point import Point
from shrimpmx.results.metrics import Outcome


def found() -> tuple[Findings, tuple[str, ...]]:
    explored = exploration(Program(cost, drawn=()), scenario_of())
    explored.run()
    findings = explored.findings()
    assert findings is not None
    return findings, explored.sweep.scenario.metrics


def test_the_best_settings_run_once_under_each_draw() -> None:
    findings, metrics = found()
    ran: list[tuple[int, int]] = []

    def execute(point: Point) -> Outcome:
        draw = point.parameters.platform.draw
        ran.append((point.index, draw))
        run_s, cpu_s, interrupts = cost(point.shown)
        # Under the second draw timers cost nothing, and marks very much.
        marks = point.shown["coalescing"] in ("open-mx", "stream", "disabled")
        return outcome((run_s + 9 * (draw == 2 and marks), cpu_s, interrupts), ())

    wins = best_under_draws(findings, 3, metrics, execute)
    best = findings.settings[findings.best].name
    assert len(ran) == len(set(ran)) == 3 * RIVALS
    assert {draw for _, draw in ran} == {1, 2, 3}
    assert sum(wins.values()) == 3
    assert wins[best] >= 2
    assert f"{best} is the best of {RIVALS} settings under {wins[best]} of 3" in next(
        iter(words_of(wins, best, RIVALS, 3))
    )


def test_a_setting_that_fails_under_a_draw_is_not_the_best_there() -> None:
    findings, metrics = found()
    best = findings.settings[findings.best]

    def execute(point: Point) -> Outcome:
        if point.index == best.index:
            raise RankEndedError("rank0 ended with exit code 9", "rank0", 9)
        return outcome(cost(point.shown), ())

    assert best.name not in best_under_draws(findings, 2, metrics, execute)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--draws", "3"], "--engine simulated"),
        (["--draws", "3", "--engine", "simulated"], "fitted platform"),
        (["--draws", "-1", "--engine", "simulated"], "0 or more"),
        (
            ["--draws", "3", "--engine", "simulated", "--set", "platform=xeon-100g"],
            "has no draws",
        ),
    ],
)
def test_draws_need_a_fitted_platform(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output = ["--output", str(tmp_path / "result")]
    assert main(["explore", *options, *output, "-n", "2", "true"]) == 2
    assert words in capsys.readouterr().err
