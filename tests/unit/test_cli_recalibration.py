"""Results of platforms that are gone on with: the machine has been calibrated anew meanwhile."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import assert_refused

from shrimpmx.bench import calibration
from shrimpmx.cli import main, reproduce
from shrimpmx.experiment import execute
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.papers import reproduction
from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.results.disturbance import QUIET
from shrimpmx.results.expectation_kinds import Near
from shrimpmx.results.metrics import Outcome

SCENARIO = """\
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(
    name="{name}", title="T", metrics=("interrupts_per_message",), repeats=3,
    parameters={{"platform": "{platform}"}}, sweep={{"coalescing": ("disabled", "stream")}},
)
"""
METRIC = "interrupts_per_message"


class Machine:
    """What it charges now, ns, how often it was asked, and what runs were made with."""

    def __init__(self) -> None:
        self.interrupt_ns, self.packet_ns = 6000.0, 50.0
        self.asked = 0
        self.made: list[tuple[float, int]] = []
        self.before: Callable[[], None] = lambda: None

    def costs(self, _handler_cost: Any) -> dict[str, dict[str, Any]]:
        self.asked += 1
        figures = {
            "interrupt_to_handler": self.interrupt_ns,
            "handler_per_packet": self.packet_ns,
            "wake_same_cpu": 1.0,
        }
        return {name: {"median": ns, "meaning": name} for name, ns in figures.items()}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Scenarios on a platform, claims on them, and an executor that only remembers."""
    found = Machine()

    class Fake(ClusterExecutor):
        def __call__(self, point: Point, _seed: int) -> Outcome:
            found.before()
            made = self.emulated(point)
            found.made.append((made.dilation, made.host.packet_cost_ns))
            counters = {"node0.nic": {"irq_raised": 5}, "rank0": {"recv_messages": 5}}
            return Outcome(np.full(9, 2e4), counters, dilation=made.dilation)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(calibration, "for_platforms", found.costs)
    monkeypatch.setattr(execute, "ClusterExecutor", Fake)
    steady = functools.partial(Sweep, prober=lambda _cpus: ("near", 100.0), figures=QUIET)
    monkeypatch.setattr(execute, "Sweep", steady)
    near = Near(text="one", metric=METRIC, of={"coalescing": "disabled"}, value=1)
    texts = {"kind": "count", "source": "table I", "setup": "What.", "paper": "one"}
    claims = []
    for number, name in enumerate(("one", "two"), 1):
        Path(f"{name}.py").write_text(SCENARIO.format(name=name, platform="myri10g-2009"))
        statistic = Statistic(scenario=f"{name}.py", expectation=near)
        claims.append(Claim(id=f"AB-{number}", statistics=(statistic,), **texts))
    Path("plain.py").write_text(SCENARIO.format(name="plain", platform="none"))
    monkeypatch.setattr(reproduction, "CLAIM_RUNS", 1)
    monkeypatch.setattr(reproduce, "PAPERS", {"tiny": tuple(claims)})
    return found


def interrupt_at(machine: Machine, runs: int) -> None:
    """Have the run behind `runs` others interrupted, once."""

    def before() -> None:
        if len(machine.made) == runs:
            machine.before = lambda: None
            raise KeyboardInterrupt

    machine.before = before


def stored(path: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(path).read_text())
    return document


KEPT = {"interrupt_to_handler": 6000.0, "handler_per_packet": 50.0}


def test_a_run_goes_on_with_the_costs_that_it_began_with(machine: Machine) -> None:
    interrupt_at(machine, 2)
    assert main(["run", "one.py", "--output", "r"]) == 3
    assert stored("r/run.json")["costs"] == KEPT
    machine.interrupt_ns, machine.packet_ns = 60_000.0, 500.0
    assert main(["run", "one.py", "--output", "r", "--resume"]) == 0
    assert machine.asked == 1
    assert machine.made == [(6.0, 6 * 774 - 50)] * 6
    whole = stored("r/run.json")
    assert whole["complete"]
    assert whole["costs"] == KEPT
    assert {point["time_dilation"] for point in whole["points"]} == {6.0}


@pytest.mark.nightly("each end", but=1)
@pytest.mark.parametrize("runs", [2, 8])
def test_a_reproduction_goes_on_with_the_costs_that_it_began_with(
    runs: int, machine: Machine
) -> None:
    interrupt_at(machine, runs)
    assert main(["reproduce", "--whole", "--output", "r"]) == 3
    assert stored("r/claims.json")["costs"] == KEPT
    machine.interrupt_ns, machine.packet_ns = 60_000.0, 500.0
    assert main(["reproduce", "--whole", "--output", "r", "--resume"]) == 0
    assert machine.asked == 1
    assert machine.made == [(6.0, 6 * 774 - 50)] * 12
    assert stored("r/claims.json")["costs"] == KEPT
    assert stored("r/two/run.json")["costs"] == KEPT
    # What is complete is judged again, nothing else.
    before = stored("r/claims.json")
    assert main(["reproduce", "--whole", "--output", "r", "--resume"]) == 0
    assert (machine.asked, len(machine.made)) == (1, 12)
    assert stored("r/claims.json") == before


def test_another_dilation_than_that_of_the_result_is_refused(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt_at(machine, 2)
    assert main(["run", "one.py", "--output", "r"]) == 3
    capsys.readouterr()
    arguments = ["run", "one.py", "--output", "r", "--resume", "--set", "time_dilation=7"]
    assert main(arguments) == 2
    assert "holds a result of other settings than asked for" in capsys.readouterr().err
    assert len(machine.made) == 2


def test_without_a_platform_no_costs_are_asked_for_or_kept(machine: Machine) -> None:
    assert main(["run", "plain.py", "--output", "r"]) == 0
    assert machine.asked == 0
    assert "costs" not in stored("r/run.json")
    assert machine.made == [(1.0, 0)] * 6


@pytest.mark.parametrize("command", [["run", "one.py"], ["reproduce", "AB-1"]])
def test_a_place_that_cannot_be_written_is_told_before_a_calibration(
    command: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other").mkdir()
    Path("other/file").touch()
    assert main([*command, "--output", "other"]) == 2
    assert "other holds other files" in capsys.readouterr().err
    assert machine.asked == 0


def test_damaged_costs_are_one_sentence(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "--output", "r"]) == 0
    for name, what in (("claims.json", "reproduction"), ("one/run.json", "result")):
        path = Path("r", name)
        whole = path.read_text()
        path.write_text(json.dumps({**json.loads(whole), "costs": {"interrupt_to_handler": "6"}}))
        capsys.readouterr()
        assert main(["reproduce", "--output", "r", "--resume"]) == 2
        assert_refused(capsys, f"{what} r/{name} damaged 'costs'")
        path.write_text(whole)
    assert machine.asked == 1
