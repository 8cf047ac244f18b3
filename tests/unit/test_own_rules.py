"""Rules of a user's own that settings name as FILE.py:CLASS, and modules beside a user's file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shrimpmx.errors import InputError
from shrimpmx.experiment.doubts import unheeded
from shrimpmx.experiment.explore.grid import distinct
from shrimpmx.experiment.loading import load_scenario as load_file
from shrimpmx.experiment.loading import read_scenario
from shrimpmx.experiment.own_code import code_of
from shrimpmx.experiment.remote.messages import Job
from shrimpmx.experiment.remote.point_process import Machine
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.experiment.workers import job_of
from shrimpmx.simulation.engine import Simulated

RULES = """
from least_of_rules import LEAST
from shrimpmx.nic.policy import Policy
from shrimpmx.wait.waiting_strategy import WaitingStrategy

class Several(Policy):
    waiting = 0

    def on_dma_complete(self, now_ns, marked, dma_pending):
        self.waiting += 1
        return self.waiting % LEAST == 0

class Sleeper(WaitingStrategy):
    def idle(self, waited_ns):
        return "sleep"

class Demanding(WaitingStrategy):
    def __init__(self, limit):
        self.limit = limit

NUMBER = 3
"""
SCENARIO = """
from shrimpmx.experiment.scenario import Scenario
from words import TITLE
import own.metric

scenario = Scenario(name="mine", title=TITLE, metrics=(own.metric.NAME,), POLICIES)
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "least_of_rules.py").write_text("LEAST = 2")
    return tmp_path


def scenario_of(*settings: str) -> Scenario:
    declared = Scenario(name="x", title="x", metrics=("half_round_trip",))
    return declared.changed(settings)


@pytest.mark.usefixtures("files")
def test_settings_name_classes_by_their_file() -> None:
    changed = scenario_of("coalescing=rules.py:Several,stream", "wait=rules.py:Sleeper")
    own, other = changed.points()
    assert (own.policy, own.wait) == ("rules.py:Several", "rules.py:Sleeper")
    assert (other.policy, other.wait) == ("", "rules.py:Sleeper")
    assert type(changed.policies[own.policy]()).__name__ == "Several"
    assert type(changed.waits[own.wait]()).__name__ == "Sleeper"
    assert {"rules.py", "least_of_rules.py"} <= set(code_of(changed.code, [own]))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("setting", ["coalescing=three", "wait=three", "wait=rules.py"])
def test_a_name_that_nothing_has_leads_to_the_class_of_a_file(setting: str) -> None:
    with pytest.raises(InputError, match=r"FILE\.py:CLASS"):
        scenario_of(setting).points()


@pytest.mark.usefixtures("files")
def test_a_class_of_ones_own_heeds_no_parameter() -> None:
    own = ("coalescing=rules.py:Several", "wait=rules.py:Sleeper")
    none = ("rx_usecs=0", "rx_frames=32", "mark_resets_timer=false", "spin_ns=5")
    told = unheeded(points := scenario_of(*own, *none).points(), none)
    names = [name.partition("=")[0] for name in none]
    assert [each.partition(" ")[0] for each in told] == names
    assert all("rules.py:Several" in each for each in told[:3])
    assert "rules.py:Sleeper" in told[3]
    assert [point.untimed_frames for point in points] == [0]
    # Beside a strategy that heeds them they have an effect.
    beside = scenario_of("coalescing=rules.py:Several,timeout", "wait=rules.py:Sleeper", *none)
    assert unheeded(beside.points(), none[:2]) == []


@pytest.mark.usefixtures("files")
def test_what_a_class_does_not_heed_makes_no_setting() -> None:
    axes = ("coalescing=rules.py:Several,timeout", "rx_usecs=20,75", "rx_queues=1", "irq_binding=0")
    found = distinct(scenario_of(*axes, "wait=block,spin")).points()
    assert [point.policy for point in found] == 2 * ["rules.py:Several"] + 4 * [""]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("wait=rules.py:Sleper", ("'Sleper'", "did you mean 'Sleeper'")),
        ("wait=rules.py:NUMBER", ("'NUMBER'", "Sleeper")),
        ("wait=rules.py:Several", ("WaitingStrategy", "Several")),
        ("coalescing=rules.py:Sleeper", ("Policy", "Sleeper")),
        ("wait=rules.py:Demanding", ("without arguments", "limit")),
        ("wait=nothing.py:Sleeper", ("nothing.py", "cannot be read")),
        ("wait=bad.py:X", ("bad.py", "parse")),
        ("wait=fails.py:X", ("fails.py", "line 2", "ZeroDivisionError")),
        ("wait=lonely.py:X", ("lonely.py", "not_there")),
    ],
)
def test_a_class_that_cannot_be_used_is_one_sentence(
    files: Path, setting: str, words: tuple[str, ...]
) -> None:
    (files / "bad.py").write_text("class")
    (files / "fails.py").write_text("\n1 / 0")
    (files / "lonely.py").write_text("import not_there")
    with pytest.raises(InputError) as refused:
        scenario_of(setting)
    assert all(word in str(refused.value) for word in words)
    assert "\n" not in str(refused.value)


def test_a_file_that_others_may_write_is_not_executed(files: Path) -> None:
    (files / "rules.py").chmod(0o666)
    with pytest.raises(InputError, match="not executed"):
        scenario_of("wait=rules.py:Sleeper")
    assert scenario_of(f"wait={files}/rules.py:Sleeper").waits


def test_an_own_class_travels_as_text(files: Path) -> None:
    (files / "own").mkdir()
    for name in ("rules.py", "least_of_rules.py"):
        (files / name).rename(files / "own" / name)
    changed = scenario_of("wait=own/rules.py:Sleeper", "coalescing=own/rules.py:Several")
    job = job_of(Simulated(), changed, read_scenario(files / "own" / "rules.py"))
    again = Job.model_validate_json(job.text())
    assert not again.scenario
    # What lies on the machine that makes the runs is not what is executed there.
    (files / "own" / "least_of_rules.py").write_text("LEAST = 7")
    rules = Machine(again, files / "scratch")._rules
    assert {name: type(rule()).__name__ for name, rule in rules.items()} == {
        "own/rules.py:Sleeper": "Sleeper",
        "own/rules.py:Several": "Several",
    }
    policy = rules["own/rules.py:Several"]()
    assert [policy.on_dma_complete(0, False, 0) for _ in range(4)] == [False, True] * 2


def load_scenario(path: Path) -> Scenario:
    return load_file(read_scenario(path))


def write_scenario(directory: Path, title: str, policies: str = "") -> Path:
    (directory / "own").mkdir(parents=True)
    (directory / "own" / "__init__.py").touch()
    (directory / "own" / "metric.py").write_text("NAME = 'half_round_trip'")
    (directory / "words.py").write_text(f"TITLE = {title!r}")
    path = directory / "mine.py"
    path.write_text(SCENARIO.replace("POLICIES", policies))
    return path


def test_a_scenario_imports_what_lies_beside_it(tmp_path: Path) -> None:
    """Of two files with modules of one name each has its own."""
    paths = [write_scenario(tmp_path / name, name) for name in ("a", "b")]
    before = list(sys.path)
    for path in (*paths, *paths):
        assert load_scenario(path).title == path.parent.name
    assert sys.path == before


def test_an_installed_module_is_not_that_beside_the_file(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "a", "a")
    (path.parent / "numpy.py").write_text("raise ValueError")
    path.write_text("import numpy, random\n" + path.read_text())
    (path.parent / "random.py").write_text("raise ValueError")
    assert load_scenario(path).title == "a"


def test_modules_beside_a_scenario_travel_with_it(tmp_path: Path) -> None:
    own = "policies={'two': __import__('words').Two}, sweep={'coalescing': ('two',)}"
    path = write_scenario(tmp_path / "here", "there", own)
    policy = "\nfrom shrimpmx.nic.policy import Policy\nclass Two(Policy):\n"
    policy += "    def on_dma_complete(self, now_ns, marked, dma_pending):\n        return True\n"
    words = path.parent / "words.py"
    words.write_text(words.read_text() + policy)
    job = job_of(Simulated(), load_scenario(path), read_scenario(path))
    (tmp_path / "here").rename(tmp_path / "gone")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = Machine(Job.model_validate_json(job.text()), scratch)._scenario
    assert found is not None
    assert found.title == "there"
    assert list(found.policies) == ["two"]
