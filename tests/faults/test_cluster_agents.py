"""Agents that are killed or stopped: the run ends, names them, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clusters import ENDLESS, generator_stream, pingpong_pair, run

from shrimpmx.cluster.placement import place
from shrimpmx.cluster.spec import AgentFault, ClusterSpec, CompanionSpec
from shrimpmx.cluster.topology import Topology
from shrimpmx.errors import AgentError, InputError
from shrimpmx.params import WaitParameters

BLOCK = WaitParameters(strategy="block")
PROCESSES = ["nic", "node0.irq0", "node1.irq0", "rank0", "rank1", "hog0"]


def process_name(spec: ClusterSpec, wanted: str) -> str:
    """The process called so here: on many CPUs each NIC has one of its own."""
    names = [process.name for process in place(spec, Topology.of_this_machine()).processes]
    return wanted if wanted in names else f"node0.{wanted}"


def endless(action: str, process: str, stop_for_s: float = 0.0) -> ClusterSpec:
    """A ping-pong that only a fault ends."""
    company = (CompanionSpec(0),)
    name = process_name(pingpong_pair(companions=company), process)
    fault = AgentFault(name, action, after_s=0.05, stop_for_s=stop_for_s)
    return pingpong_pair(ENDLESS, wait=BLOCK, companions=company, agent_faults=(fault,))


@pytest.mark.parametrize("process", PROCESSES)
def test_a_killed_agent_ends_the_run_and_is_named(process: str) -> None:
    spec = endless("kill", process)
    name = spec.agent_faults[0].process
    with pytest.raises(
        AgentError, match=rf"^{name} \(pid \d+, .*\) was killed by SIGKILL"
    ) as caught:
        run(spec)
    assert caught.value.agent == name
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("process", PROCESSES)
def test_a_stopped_agent_is_named_at_the_deadline(process: str, tmp_path: Path) -> None:
    spec = endless("stop", process)
    name = spec.agent_faults[0].process
    with pytest.raises(AgentError, match=rf"did not end within 1 s because of {name} \(stopped\)"):
        run(spec, deadline_s=1.0, directory=tmp_path)
    dump = (tmp_path / "deadline.txt").read_text()
    assert f"stack of {name}:\n  (none: the process is stopped)" in dump
    for part in ("processes (stop word: no)", "counters that are not zero", "rings that are not"):
        assert part in dump
    # The others do answer, each with its Python stack.
    assert dump.count("in process_main") == dump.count("stack of ") - 1


def test_an_agent_that_stops_for_a_while_does_no_harm() -> None:
    name = process_name(pingpong_pair(), "nic")
    fault = AgentFault(name, "stop", after_s=0.0, stop_for_s=0.2)
    result = run(pingpong_pair(200, wait=BLOCK, agent_faults=(fault,)))
    assert result.counters["rank0"]["recv_messages"] == 205


@pytest.mark.parametrize("process", ["nic", "rank0", "node0.irq0"])
def test_a_killed_agent_beside_the_generator(process: str) -> None:
    fault = AgentFault(process, "kill", after_s=0.05)
    spec = generator_stream(ENDLESS, wait=BLOCK, agent_faults=(fault,))
    with pytest.raises(AgentError, match=rf"^{process} \(pid"):
        run(spec)


def test_a_run_without_end_meets_its_deadline(tmp_path: Path) -> None:
    spec = pingpong_pair(ENDLESS, wait=BLOCK, trace_entries=64)
    with pytest.raises(AgentError, match=r"within 0\.5 s because of rank0 .*, rank1 ") as caught:
        run(spec, deadline_s=0.5, directory=tmp_path)
    assert "rank0: pid" in caught.value.traceback
    assert "last trace records" in caught.value.traceback


def test_a_fault_for_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="no process 'rank7'; there are"):
        run(pingpong_pair(agent_faults=(AgentFault("rank7"),)))
