"""A machine that makes runs executes the texts that it was sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shrimpmx.errors import InputError
from shrimpmx.experiment.loading import load_scenario, read_scenario
from shrimpmx.experiment.remote.messages import Job
from shrimpmx.experiment.remote.point_process import Machine
from shrimpmx.experiment.workers import job_of
from shrimpmx.simulation.engine import Simulated

SCENARIO = """
import {module}
from shrimpmx.nic.policy import Policy
from shrimpmx.experiment.scenario import Scenario

class Own(Policy):
    word = {module}.WORD

    def on_dma_complete(self, now_ns, marked, dma_pending):
        return True

scenario = Scenario(
    name="own", title="A policy of one's own",
    parameters={{"workload": "pingpong", "coalescing": "own"}},
    metrics=("half_round_trip",), policies={{"own": Own}},
)
"""


def job_with(path: Path, module: str) -> Job:
    """The job of a scenario, written into `path`, that imports a module."""
    path.resolve().write_text(SCENARIO.format(module=module))
    file = read_scenario(path)
    return job_of(Simulated(), load_scenario(file), file)


def word_of(job: Job, scratch: Path) -> str:
    """What the policy of a job says on the machine that runs it."""
    scenario = Machine(job, scratch)._scenario
    assert scenario is not None
    word: str = scenario.policies["own"].word
    return word


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


@pytest.mark.parametrize("module", ["beside", "package.beside"])
@pytest.mark.parametrize("meanwhile", ["same", "changed", "gone", "linked"])
def test_the_texts_of_the_job_are_executed(
    meanwhile: str, module: str, scratch: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    helper = home / f"{module.replace('.', '/')}.py"
    helper.parent.mkdir(parents=True)
    helper.write_text("WORD = 'sent'")
    path = home / "own.py"
    if meanwhile == "linked":
        (tmp_path / "link.py").symlink_to(path)
        path = tmp_path / "link.py"
    job = job_with(path, module)
    assert job.scenario is not None
    assert set(job.scenario.modules) == {str(helper.relative_to(home))}
    if meanwhile == "changed":
        helper.write_text("WORD = 'here'")
        path.write_text("raise SystemExit")
    elif meanwhile == "gone":
        helper.unlink()
        path.unlink()
    assert word_of(job, scratch) == "sent"


def test_a_module_from_elsewhere_is_the_same_everywhere(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("home", "lib"):
        (tmp_path / name).mkdir()
    monkeypatch.syspath_prepend(tmp_path / "lib")
    helper = tmp_path / "lib" / "helper_of_remote.py"
    helper.write_text("WORD = 'same'")
    job = job_with(tmp_path / "home" / "own.py", "helper_of_remote")
    assert word_of(job, scratch) == "same"
    assert job.scenario is not None
    assert set(job.scenario.code) == {"own.py", os.path.join("..", "lib", helper.name)}
    helper.write_text("WORD = 'other'")
    with pytest.raises(InputError, match=r"helper_of_remote\.py is missing here or has changed"):
        word_of(job, scratch)
