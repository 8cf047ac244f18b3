"""A result goes on under the conditions that it began with only: machine, version, own code."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import assert_refused
from support.exploring import Program, exploration, scenario_of

from shrimpmx.cli import main, reproduce
from shrimpmx.errors import InputError
from shrimpmx.experiment import execute, own_code
from shrimpmx.experiment import sweep as sweeps
from shrimpmx.experiment.loading import load_scenario, read_scenario
from shrimpmx.experiment.own_code import digests_of_command
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.papers import reproduction
from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.results import environment as environments
from shrimpmx.results.disturbance import QUIET
from shrimpmx.results.expectation_kinds import Near
from shrimpmx.results.metrics import Outcome

ENVIRONMENT: dict[str, Any] = environments.environment()
METRIC = "interrupts_per_message"
SCENARIO = f"""\
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(
    name="a", title="a title", metrics=("{METRIC}",), repeats=2, sweep={{"size_bytes": (0, 32)}},
)
"""
OWN = """\
from shrimpmx.nic.policy import Policy
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.wait.waiting_strategy import WaitingStrategy
class Mine(Policy):
    def on_dma_complete(self, now_ns, marked, dma_pending):
        from rule import decide
        return decide(marked)
class Look(WaitingStrategy):
    pass
scenario = Scenario(
    name="a", title="a title", metrics=("interrupts_per_message",), repeats=2,
    policies={"mine": Mine}, waits={"look": Look}, parameters=PARAMETERS,
)
"""
RULE = "from parts.limits import LIMIT\ndef decide(marked): return LIMIT\n"
CLAIM = Claim(
    id="AB-1",
    kind="count",
    source="table I",
    setup="What?",
    paper="many",
    statistics=(
        Statistic(
            scenario="a.py",
            expectation=Near(text="interrupts", metric=METRIC, of={"size_bytes": 0}, value=10),
        ),
    ),
)


class Machine:
    """A machine whose environment may be changed, and whose runs end by Ctrl-C where told."""

    def __init__(self) -> None:
        self.environment = ENVIRONMENT
        self.runs = 0
        self.interrupted_at = 1
        self.before: Callable[[], None] = lambda: None

    def change(self, **changes: Any) -> None:
        self.environment = {**ENVIRONMENT, "time": "later", **changes}

    def execute(self, _point: Point, _seed: int = 1, _limit_s: float = 0) -> Outcome:
        self.runs += 1
        self.before()
        if self.runs == self.interrupted_at + 1:
            raise KeyboardInterrupt
        counters = {"node0.nic": {"irq_raised": 1000}, "rank0": {"recv_messages": 100}}
        return Outcome(np.full(10, 20_000.0), counters, placement={})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    found = Machine()
    monkeypatch.chdir(tmp_path)
    for module in (sweeps, reproduction):
        monkeypatch.setattr(module, "environment", lambda: found.environment)
    monkeypatch.setattr(reproduction, "CLAIM_RUNS", 1)
    monkeypatch.setattr(reproduce, "PAPERS", {"tiny": (CLAIM,)})
    monkeypatch.setattr(execute.ClusterExecutor, "__call__", lambda _self, *a: found.execute(*a))
    monkeypatch.setattr(execute, "check_points", lambda *_arguments: None)
    steady = functools.partial(Sweep, prober=lambda _cpus: ("near", 100.0), figures=QUIET)
    monkeypatch.setattr(execute, "Sweep", steady)
    Path("a.py").write_text(SCENARIO)
    return found


def kept() -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(Path("r").rglob("*")) if p.is_file()}


def refused(
    capsys: pytest.CaptureFixture[str], machine: Machine, command: list[str], words: str
) -> None:
    """The command, interrupted before, cannot go on: one sentence, and nothing changes."""
    before, runs = kept(), machine.runs
    capsys.readouterr()
    assert main([*command, "--output", "r", "--resume"]) == 2
    assert_refused(capsys, words)
    assert (kept(), machine.runs) == (before, runs)


TOPOLOGY = {**ENVIRONMENT["topology"], "cpus": [0, 1, 2]}
VERSIONS = {**ENVIRONMENT["versions"], "numpy": "0.1"}
REALTIME = {**ENVIRONMENT["realtime"], "permitted": "no"}


@pytest.mark.nightly("each condition", but=3)
@pytest.mark.parametrize("command", [["run", "a.py"], ["reproduce"]])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cpu_model": "Z80"}, "CPU model 'Z80'"),
        ({"system": "Linux 2.6.26"}, "system 'Linux 2.6.26'"),
        ({"kernel": "#0"}, "kernel '#0'"),
        ({"topology": TOPOLOGY}, "cpus [0, 1, 2]"),
        ({"versions": VERSIONS, "machine": "vax"}, "numpy '0.1' 'vax'"),
        ({"code": "0123"}, "code shrimpmx '0123'"),
        ({"realtime": REALTIME}, "realtime permitted 'no'"),
    ],
)
def test_what_was_begun_elsewhere_does_not_go_on(
    command: list[str],
    changes: dict[str, Any],
    words: str,
    machine: Machine,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*command, "--output", "r"]) == 3
    machine.change(**changes)
    refused(capsys, machine, command, words)
    machine.change()
    assert main([*command, "--output", "r", "--resume"]) == 0


def test_what_is_complete_another_version_may_judge_but_no_other_machine(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.interrupted_at = -1
    assert main(["reproduce", "--output", "r"]) == 0
    before = kept()
    machine.change(topology=TOPOLOGY)
    refused(capsys, machine, ["reproduce"], "cpus [0, 1, 2]")
    machine.change(code="0123", versions=VERSIONS)
    assert main(["reproduce", "--output", "r", "--resume"]) == 0
    assert (kept(), machine.runs) == (before, 2)
    # Claims of a version that did not keep the environment with them.
    claims = json.loads(Path("r/claims.json").read_text())
    del claims["environment"]
    Path("r/claims.json").write_text(json.dumps(claims))
    assert main(["reproduce", "--output", "r", "--resume"]) == 0
    assert kept() == before


def test_a_reproduction_that_has_run_nothing_has_costs_of_this_machine(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.interrupted_at = 0
    assert main(["reproduce", "--output", "r"]) == 3
    for path in Path("r/a").rglob("*.json"):
        path.unlink()
    machine.change(kernel="#0")
    refused(capsys, machine, ["reproduce"], "kernel '#0'")


def write_own(parameters: str) -> None:
    Path("a.py").write_text(OWN.replace("PARAMETERS", parameters))
    Path("rule.py").write_text(RULE)
    Path("parts").mkdir()
    Path("parts/__init__.py").write_text("")
    Path("parts/limits.py").write_text("LIMIT = True\n")
    Path("parts/apart.py").write_text("")


def append(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("# edited\n")


@pytest.mark.parametrize("own", ['{"coalescing": "mine"}', '{"wait": "look"}'])
def test_code_of_ones_own_that_was_edited_does_not_go_on(
    own: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    write_own(own)
    assert main(["run", "a.py", "--output", "r"]) == 3
    append("parts/apart.py")  # is not imported
    for edited in ("a.py", "rule.py", "parts/limits.py"):
        whole = Path(edited).read_text()
        append(edited)
        refused(capsys, machine, ["run", "a.py"], f"{edited} code")
        Path(edited).write_text(whole)
    assert main(["run", "a.py", "--output", "r", "--resume"]) == 0


@pytest.mark.parametrize("parameters", ['{"coalescing": "stream"}', "{}"])
def test_code_that_is_not_run_may_be_edited(parameters: str, machine: Machine) -> None:
    write_own(parameters)
    assert main(["run", "a.py", "--output", "r"]) == 3
    append("a.py")
    assert main(["run", "a.py", "--output", "r", "--resume"]) == 0
    assert machine.runs == 3


def test_a_program_that_was_edited_does_not_go_on(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    write_own("{}")
    Path("prog.py").write_text("import rule\n")
    command = ["run", "a.py", "workload=program", "program=prog.py"]
    assert main([*command, "--output", "r"]) == 3
    append("rule.py")
    refused(capsys, machine, command, "rule.py code")


def test_a_run_of_a_program_that_was_edited_meanwhile_is_not_kept(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    write_own("{}")
    Path("prog.py").write_text("import rule\n")
    machine.before = lambda: append("rule.py") if machine.runs == 2 else None
    machine.interrupted_at = -1
    command = ["run", "a.py", "repeats=3", "workload=program", "program=prog.py", "--output", "r"]
    assert main(command) == 2
    assert_refused(capsys, "rule.py code")
    assert machine.runs == 2
    assert [path.name for path in Path("r/points").iterdir()] == ["0000.json"]


def test_nor_is_one_of_a_program_that_may_have_loaded_another_shrimpmx(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def edit_shrimpmx() -> None:
        monkeypatch.setattr(own_code, "installed_digest", lambda: "another")

    machine.before = lambda: edit_shrimpmx() if machine.runs == 2 else None
    machine.interrupted_at = -1
    Path("b.py").write_text(SCENARIO.replace("repeats=2", "repeats=3"))
    command = ["run", "b.py", "workload=program", "program=python", "arguments=-m this"]
    assert main([*command, "--output", "r"]) == 2
    assert_refused(capsys, "package shrimpmx code")
    assert machine.runs == 2
    assert len(list(Path("r/points").iterdir())) == 1


def test_a_file_of_shrimpmx_that_is_edited_makes_another_digest(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    module = tmp_path / "part/module.py"
    (tmp_path / "part/.#module.py").symlink_to("a lock of an editor")
    digests = []
    for text in ("a = 1", "a = 2", "a = 33", "a = 1"):
        module.write_text(text)
        os.utime(module, ns=(len(digests), len(digests)))
        digests.append(environments.installed_digest(tmp_path))
    assert digests[0] == digests[3]
    assert len(set(digests)) == 3


def test_adjusted_points_that_were_changed_do_not_go_on(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    adjusted = SCENARIO.replace("repeats=2", 'repeats=2, adjusted=(({"size_bytes": (0, 32)}, %s),)')
    Path("a.py").write_text(adjusted % '{"iterations": 50, "deadline_s": 5}')
    assert main(["run", "a.py", "--output", "r"]) == 3
    Path("a.py").write_text(adjusted % '{"iterations": 60, "deadline_s": 5}')
    refused(capsys, machine, ["run", "a.py"], "settings")
    Path("a.py").write_text(adjusted % '{"iterations": 50, "deadline_s": 9}')
    assert main(["run", "a.py", "--output", "r", "--resume"]) == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda machine: machine.change(kernel="#0"),
        lambda _machine: append("prog.py"),
    ],
)
def test_an_exploration_does_not_go_on_either(
    change: Callable[[Machine], None], machine: Machine
) -> None:
    Path("prog.py").write_text("import mpi4py\n")
    scenario = scenario_of().changed(["program=python", "arguments=prog.py"])
    output = Path("r").resolve()
    with pytest.raises(KeyboardInterrupt):
        exploration(
            Program(lambda _shown: (1.0, 1.0, 1)), scenario, execute=machine.execute, output=output
        ).run()
    before = kept()
    change(machine)
    with pytest.raises(InputError, match=r"#0|prog\.py has other code"):
        exploration(
            Program(lambda _shown: (1.0, 1.0, 1)), scenario, output=output, resume=True
        ).run()
    assert kept() == before


def test_of_a_command_what_is_the_users_own_counts(tmp_path: Path) -> None:
    (tmp_path / "prog").write_bytes(b"\x7fELF")
    (tmp_path / "mine.py").write_text("from . import other\nimport numpy, json, shrimpmx, none\n")
    (tmp_path / "other.py").write_text("def f(: broken")
    (tmp_path / "data.txt").write_text("")
    place = str(tmp_path)
    assert list(digests_of_command(["./prog", "data.txt", "absent.py"], place)) == ["prog"]
    assert list(digests_of_command(["python", "mine.py"], place)) == ["mine.py", "other.py"]
    assert list(digests_of_command(["python", "-m", "mine"], place)) == ["mine.py", "other.py"]
    assert digests_of_command(["python", "-m", "shrimpmx.applications.imb", "PingPong"]) == {}


@pytest.mark.parametrize(
    "text",
    [f"from {'.' * 99} import x", f"x = {'-' * 100_000}1"],
    ids=["import from above everything", "deep"],
)
def test_a_file_that_python_does_not_run_has_a_digest_too(text: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(text)
    assert list(digests_of_command(["python", "mine.py"], str(tmp_path))) == ["mine.py"]


def test_what_a_file_is_made_of_is_known_once_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SCENARIO)
    scenario = load_scenario(read_scenario(tmp_path / "a.py"))
    assert list(scenario.code) == ["a.py"]
    assert scenario.changed(["repeats=3"]).code == scenario.code
    assert json.loads(json.dumps(scenario.code)) == scenario.code
