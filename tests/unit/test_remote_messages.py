"""What travels to other machines arrives as it was."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from shrimpmx.errors import AgentError
from shrimpmx.experiment.loading import (
    list_scenarios,
    load_scenario,
    read_scenario,
    scenario_directories,
)
from shrimpmx.experiment.remote import messages
from shrimpmx.experiment.remote.messages import Job, OwnFile, Task, run_of
from shrimpmx.experiment.remote.point_process import LOCKED, cpus_of_runs, machine_turn

SCENARIOS = dict(list_scenarios(scenario_directories()))


@pytest.mark.nightly("each scenario", but=12)
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_point_of_a_scenario_arrives_as_it_was(name: str) -> None:
    for point in load_scenario(read_scenario(Path(SCENARIOS[name]))).points():
        sent = Task.of(point, 7, {}, None)
        found = Task.model_validate_json(sent.text()).point
        assert found.parameters == point.parameters
        assert found.parameters.workload.model_fields_set == (
            point.parameters.workload.model_fields_set
        )
        assert (found.index, found.policy, found.wait) == (point.index, point.policy, point.wait)


def test_a_job_is_one_line() -> None:
    job = Job(
        engine="simulated",
        metrics=("half_round_trip",),
        directory="/",
        needed_costs=(),
        scenario=OwnFile(file="/own.py", source="a\nb\n", code={"own.py": "0"}, modules={}),
    )
    assert "\n" not in job.text()
    assert Job.model_validate_json(job.text()) == job


def test_one_run_at_a_time_has_its_turn() -> None:
    with machine_turn():
        other = os.open(LOCKED, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


@pytest.mark.parametrize(
    ("allowed", "used"), [({0}, {0}), ({2, 3}, {2, 3}), ({0, 1, 2}, {1, 2}), ({4, 5, 6}, {5, 6})]
)
def test_a_worker_keeps_a_cpu_where_there_are_enough(allowed: set[int], used: set[int]) -> None:
    assert cpus_of_runs(allowed) == used


class _DeepError(Exception):
    """Its own words cannot be had."""

    def __repr__(self) -> str:
        raise RecursionError


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "x" * 1000,
        '{"run": 1}',
        ["x"] * 1000,
        _DeepError(_DeepError()),
        _DeepError("x" * 1000),
    ],
)
def test_a_reply_that_is_none_is_told_in_few_words(reply: object) -> None:
    with pytest.raises(AgentError, match="worker w sent an invalid reply") as raised:
        run_of(reply, "w", real=False)
    assert len(str(raised.value)) < 300


def test_a_reply_beyond_measure_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LARGEST_BYTES", 1 << 20)
    for size, words in ((1 << 20, "invalid reply"), ((1 << 20) + 1, "more than 1 MiB")):
        with pytest.raises(AgentError, match=words):
            run_of(" " * size, "w", real=False)
