"""Points that this machine has no CPUs for: not measurable here, and the sweep goes on."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from shrimpmx.errors import AgentError, NotHereError
from shrimpmx.experiment.execute import check_possible
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Ratio, Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.disturbance import QUIET
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.result import load_result
from shrimpmx.show.report import notes, print_report

REASON = "distance OP needs CPUs of two packages; CPUs 0-1 have only SC, S$"


def far(distance: str) -> Ratio:
    """One distance against the same core."""
    return Ratio(
        text=f"{distance} is slower than SC",
        metric="half_round_trip",
        of={"distance": distance},
        to={"distance": "SC"},
        at_least=1.5,
    )


SCENARIO = Scenario(
    name="x",
    title="Distances",
    parameters={"cores": 2, "irq_binding": "1"},
    sweep={"distance": ("SC", "S$", "OP")},
    rows="distance",
    repeats=5,
    metrics=("half_round_trip", "interrupts_per_message"),
    expectations=(far("S$"), far("OP")),
)


class TwoCpus:
    """An executor of a machine that has no second package; it may fail at a call."""

    def __init__(self, fail_at: int = -1) -> None:
        self.calls = 0
        self.fail_at = fail_at

    def __call__(self, point: Point, seed: int) -> Outcome:
        self.calls += 1
        if self.calls == self.fail_at:
            raise AgentError("rank0 died", "rank0")
        distance = point.parameters.cluster.distance
        if distance == "OP":
            raise NotHereError(REASON)
        base = 20_000 if distance == "SC" else 40_000
        samples = np.random.default_rng(seed).normal(base, 100, 50)
        placement = {"processes": [{"cpu": 0}, {"cpu": 1}]}
        counters = {"node0.nic": {"irq_raised": 60}, "rank0": {"recv_messages": 50}}
        return Outcome(samples, counters, placement=placement, ranks=("rank0",), dilation=8.0)


def near(_cpus: Sequence[int]) -> tuple[str, float | None]:
    return "near", 100.0


def sweep(executor: Any, output: Path | None = None, **more: Any) -> Sweep:
    scenario = more.pop("scenario", SCENARIO)
    return Sweep(scenario, executor, output=output, prober=near, figures=QUIET, **more)


def printed(document: Any) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_report(document, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_point_without_cpus_is_not_measurable_here_and_the_others_are() -> None:
    document = sweep(TwoCpus()).run()
    possible, _, impossible = document["points"]
    assert "impossible" not in possible
    assert impossible["impossible"] == REASON
    assert impossible["metrics"]["half_round_trip"] == {"unavailable": REASON}
    assert impossible["limits"] == []
    verdicts = [(each["verdict"], each["detail"]) for each in document["expectations"]]
    assert verdicts[0][0] == "as expected"
    assert verdicts[1] == ("not measurable here", REASON)
    assert document["placement"]["processes"]
    json.dumps(document, allow_nan=False)


def test_the_report_shows_the_gap_and_says_why_once() -> None:
    document = sweep(TwoCpus()).run()
    assert notes(document).count(f"not measurable here: {REASON}") == 1
    text = printed(document)
    assert "—" in text
    # What is said of the emulated hosts is said once: an impossible point has none.
    assert text.count("Times are those of the emulated hosts") == 1


def test_it_is_kept_and_a_resumed_sweep_goes_on(tmp_path: Path) -> None:
    with pytest.raises(AgentError):
        sweep(TwoCpus(fail_at=14), tmp_path / "r").run()
    assert load_result(tmp_path / "r")["complete"] is False
    rest = TwoCpus()
    document = sweep(rest, tmp_path / "r", resume=True).run()
    assert rest.calls == 2
    assert document["points"] == sweep(TwoCpus(), tmp_path / "whole").run()["points"]
    assert load_result(tmp_path / "r")["points"][2]["impossible"] == REASON


def test_nothing_is_traced_of_it() -> None:
    traced: list[Any] = []

    def tracer(point: Point, _seed: int) -> Any:
        traced.append(point.shown["distance"])
        raise RuntimeError

    changed = SCENARIO.model_copy(
        update={"sweep": {"distance": ("OP",)}, "sections": ("timeline",), "expectations": ()}
    )
    sweep(TwoCpus(), tracer=tracer, scenario=changed).run()
    assert traced == []


def test_a_scenario_of_such_points_only_cannot_be_run() -> None:
    check_possible(sweep(TwoCpus()).run())
    document = sweep(TwoCpus(), scenario=SCENARIO.changed(["distance=OP"])).run()
    with pytest.raises(NotHereError, match="needs CPUs of two packages"):
        check_possible(document)
