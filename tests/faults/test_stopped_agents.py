"""A process of a run is stopped: the supervisor names it, and the run goes on when it does."""

from __future__ import annotations

import os
import re
import signal

import pytest
from support.clusters import pingpong_pair, run

from shrimpmx.cluster.engine.output import RunOutput
from shrimpmx.cluster.engine.standstill import LOOK_S, StoppedProcesses
from shrimpmx.cluster.spec import AgentFault
from shrimpmx.settings.host import WaitParameters

BLOCK = WaitParameters(strategy="block")


@pytest.mark.nightly("each kind of process", but=1)
@pytest.mark.parametrize("process", ["rank0", "node1.irq0"])
def test_a_stopped_process_is_named_and_the_run_goes_on_when_it_is_continued(
    process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def say(_output: RunOutput, text: str) -> None:
        name, pid = re.findall(r"(\S+) \(pid (\d+)\) is stopped", text)[0]
        told.append(name)
        os.kill(int(pid), signal.SIGCONT)

    monkeypatch.setattr(RunOutput, "say", say)
    # It stops before the first message, for ever.
    result = run(pingpong_pair(50, wait=BLOCK, agent_faults=(AgentFault(process, "stop", 0.0),)))
    assert told == [process]
    assert result.counters["rank0"]["recv_messages"] == 55


class Looks(StoppedProcesses):
    """Looks, each at its time, that find what a test says."""

    def __init__(self) -> None:
        self.said: list[str] = []
        super().__init__(None, self.said.append)  # type: ignore[arg-type]
        self.now_s = 0.0
        self.found: dict[str, int] = {}

    def _find(self, _pids: object, _pidfds: object) -> dict[str, int]:
        return self.found

    def find(self, **found: int) -> None:
        self.found = found
        self.now_s = self.look(self.now_s, [], [])


def test_each_stop_is_told_once_at_its_second_look() -> None:
    looks = Looks()
    looks.find(rank0=7)
    looks.find()
    looks.find(rank0=7)
    assert not looks.said
    looks.find(rank0=7, rank1=8)
    assert len(looks.said) == 1
    assert "rank0 (pid 7) is stopped" in looks.said.pop()
    looks.find(rank0=7, rank1=8)
    assert "rank1 (pid 8) is stopped" in looks.said.pop()
    looks.find(rank0=7, rank1=8)
    looks.find(rank1=8)
    looks.find(rank0=7, rank1=8)
    assert not looks.said
    looks.find(rank0=7)
    assert "rank0" in looks.said.pop()


def test_there_is_one_look_at_a_time_and_two_within_two_seconds() -> None:
    looks = Looks()
    due_s = looks.look(5.0, [], [])
    looks.found = {"rank0": 7}
    assert looks.look(due_s - 0.001, [], []) == due_s
    assert looks._stopped == {}
    assert looks.look(due_s, [], []) == due_s + LOOK_S
    assert 2 * LOOK_S < 2.0
