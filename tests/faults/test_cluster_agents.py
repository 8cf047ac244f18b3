"""Agents that are killed or stopped: the run ends, names them, and leaves nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from pathlib import Path

import pytest
from support import resends
from support.clusters import ENDLESS, generator_stream, pingpong_pair, run, run_until_killed
from support.conditions import patient

from shrimpmx.cluster.engine import diagnosis
from shrimpmx.cluster.engine import forked as supervisor
from shrimpmx.cluster.engine.children import Children
from shrimpmx.cluster.engine.output import RunOutput
from shrimpmx.cluster.nics.rank import Rank
from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.rank import session
from shrimpmx.cluster.spec import AgentFault, ClusterSpec, CompanionSpec
from shrimpmx.errors import AgentError, DeadlineError, InputError, NeverReportedError
from shrimpmx.nic.policy import Policy
from shrimpmx.settings.host import HostParameters, WaitParameters

BLOCK = WaitParameters(strategy="block")
PROCESSES = ["nic", "node0.irq0", "node1.irq0", "rank0", "rank1", "hog0", "nice1", "spinner2"]


# Each keeps a CPU busy as long as a run takes.
COMPANY = (CompanionSpec(0), CompanionSpec(1, kind="nice"), CompanionSpec(1, kind="spinner"))


def process_name(spec: ClusterSpec, wanted: str) -> str:
    """The process called so here: on many CPUs each NIC has one of its own."""
    names = [process.name for process in place(spec, Topology.of_this_machine()).processes]
    return wanted if wanted in names else f"node0.{wanted}"


def endless(action: str, process: str, company: tuple[CompanionSpec, ...] = COMPANY) -> ClusterSpec:
    """A ping-pong that only a fault ends."""
    name = process_name(pingpong_pair(companions=company), process)
    fault = AgentFault(name, action, after_s=0.05)
    return pingpong_pair(ENDLESS, wait=BLOCK, companions=company, agent_faults=(fault,))


def run_for(
    patch: pytest.MonkeyPatch, seconds: float, spec: ClusterSpec, directory: Path | None = None
) -> None:
    """Run it with a deadline so long behind its begin: the launch takes what it takes."""
    wait = supervisor.ForkedRun._wait

    def waits(this: supervisor.ForkedRun, what: str) -> None:
        if what == "done":
            this.until = time.monotonic() + patient(seconds)
        wait(this, what)

    patch.setattr(supervisor.ForkedRun, "_wait", waits)
    run(spec, directory=directory)


@pytest.mark.nightly("each process on each engine", but=4)
@pytest.mark.parametrize("process", PROCESSES)
def test_a_killed_agent_ends_the_run_and_is_named(process: str) -> None:
    spec = endless("kill", process)
    name = spec.agent_faults[0].process
    error, _ = run_until_killed(spec)
    assert re.match(rf"{name} \(pid \d+.*\) was killed by SIGKILL", str(error))
    assert error.agent == name
    assert error.exit_code == 3


def test_nice_company_is_let_run_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine whose CPUs are busy it would get too little of them to see the stop word."""
    hurried: dict[int, int] = {}
    patched = os.setpriority

    def noted(which: int, pid: int, niceness: int) -> None:
        patched(which, pid, niceness)
        hurried[pid] = os.getpriority(which, pid)

    monkeypatch.setattr(os, "setpriority", noted)
    result = run(pingpong_pair(20, wait=BLOCK, companions=(CompanionSpec(0, kind="nice"),)))
    assert [plan.niceness for plan in result.placement.processes if plan.niceness] == [19]
    assert list(hurried.values()) == [0]


@pytest.mark.parametrize("process", ["node0.dma", "node1.dma"])
def test_a_killed_dma_agent_ends_the_run_and_is_named(process: str) -> None:
    fault = AgentFault(process, "kill", after_s=0.05)
    host = HostParameters(copy_offload=True)
    error, _ = run_until_killed(
        pingpong_pair(ENDLESS, 200_000, wait=BLOCK, host=host, agent_faults=(fault,))
    )
    assert re.match(rf"{process} \(pid \d+.*\) was killed by SIGKILL", str(error))
    assert error.agent == process


def test_a_dma_agent_that_stops_for_a_while_does_no_harm() -> None:
    fault = AgentFault("node1.dma", "stop", after_s=0.0, stop_for_s=0.2)
    host = resends.HOST.model_copy(update={"copy_offload": True})
    more = {"host": host, "mx": resends.MX, "agent_faults": (fault,)}
    result = run(pingpong_pair(50, 200_000, wait=BLOCK, **more))
    assert result.counters["rank1"]["recv_messages"] == 55
    assert result.counters["node1.dma"]["copies"] == 55 * 136


@pytest.mark.nightly("each kind of agent", but=1)
@pytest.mark.parametrize("process", PROCESSES)
def test_a_stopped_agent_is_named_at_the_deadline(
    process: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "STACK_LIMIT_S", patient(20.0))
    company = COMPANY if re.match("hog|nice|spinner", process) else ()
    spec = endless("stop", process, company)
    name = spec.agent_faults[0].process
    with pytest.raises(
        AgentError, match=rf"did not end within [\d.]+ s because of {name} \(stopped\)"
    ):
        run_for(monkeypatch, 2.0, spec, tmp_path)
    dump = (tmp_path / "deadline.txt").read_text()
    assert f"stack of {name}:\n  (none: the process is stopped)" in dump
    for part in ("processes (stop word: no)", "non-zero counters", "non-empty rings"):
        assert part in dump
    # The others do answer, each with its Python stack; nice and idle ones, with the whole of it,
    # where the machine has CPU time for them.
    stacks = dump.split("stack of ")[1:]
    silent = {stack.partition(":")[0] for stack in stacks if "in process_main" not in stack}
    assert silent - {"nice1", "spinner2"} <= {name}


def test_a_killed_process_that_the_kernel_keeps_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As one in a call to a disk that does not answer: here SIGKILL waits until that is told."""
    send, say = Children.signal, RunOutput.say
    held: list[tuple[Children, int, signal.Signals]] = []
    spec = endless("stop", "nic", ())
    name = spec.agent_faults[0].process
    names = [process.name for process in place(spec, Topology.of_this_machine()).processes]

    def late(children: Children, index: int, number: signal.Signals) -> None:
        if number == signal.SIGKILL and index == names.index(name):
            held.append((children, index, number))
        else:
            send(children, index, number)

    def says(output: RunOutput, words: str) -> None:
        say(output, words)
        while words.startswith("killed, but held by the kernel") and held:
            send(*held.pop())

    monkeypatch.setattr(RunOutput, "say", says)
    monkeypatch.setattr(Children, "signal", late)
    monkeypatch.setattr(supervisor, "KILLED_LIMIT_S", 0.1)
    with pytest.raises(AgentError, match="did not end within"):
        run_for(monkeypatch, 0.5, spec)
    told = capfd.readouterr().err
    assert re.search(
        rf"killed, but held by the kernel: .*\b{name} \(pid \d+, \w+\).*; the run ends", told
    )


def test_an_agent_that_stops_for_a_while_does_no_harm() -> None:
    name = process_name(pingpong_pair(), "nic")
    fault = AgentFault(name, "stop", after_s=0.0, stop_for_s=0.2)
    result = run(pingpong_pair(200, wait=BLOCK, agent_faults=(fault,)))
    assert result.counters["rank0"]["recv_messages"] == 205


@pytest.mark.parametrize("process", ["nic", "rank0", "node0.irq0"])
def test_a_killed_agent_beside_the_generator(process: str) -> None:
    fault = AgentFault(process, "kill", after_s=0.05)
    error, _ = run_until_killed(generator_stream(ENDLESS, wait=BLOCK, agent_faults=(fault,)))
    assert re.match(rf"{process} \(pid \d+.*\) was killed by SIGKILL", str(error))


def test_a_run_without_end_meets_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = pingpong_pair(ENDLESS, wait=BLOCK, trace_entries=64)
    with pytest.raises(AgentError, match=r"within [\d.]+ s because of rank0 .*, rank1 ") as caught:
        run_for(monkeypatch, 0.2, spec, tmp_path)
    assert "rank0: pid" in caught.value.traceback
    assert "last trace records" in caught.value.traceback


@pytest.mark.nightly("seconds of a deadline")
def test_packets_that_a_policy_never_reports_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never(Policy):
        def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
            return False

    spec = pingpong_pair(1, warmup=0, wait=BLOCK, policy=lambda _node: Never(), policy_name="never")
    with pytest.raises(NeverReportedError) as caught:
        run_for(monkeypatch, 2.0, spec)
    assert re.search(
        r"(1 packet of node 1 waits|\d packets?( of node 0 and \d packets?)? of node 1 wait) "
        r"in host memory for an interrupt that policy "
        r"'never' never asked for: let on_dma_complete return True, or set self\.deadline_ns$",
        str(caught.value),
    )


def test_a_stopped_handler_is_not_the_policys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Each(Policy):
        def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
            return True

    stop = AgentFault("node1.irq0", "stop", after_s=0.05)
    spec = pingpong_pair(ENDLESS, wait=BLOCK, policy=lambda _node: Each(), agent_faults=(stop,))
    with pytest.raises(DeadlineError, match=r"node1\.irq0 \(stopped\)") as caught:
        run_for(monkeypatch, 0.5, spec)
    assert not isinstance(caught.value, NeverReportedError)


def test_ranks_that_are_done_just_in_time_may_end_in_peace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collect = supervisor.ForkedRun._collect

    def at_the_last_moment(this: supervisor.ForkedRun) -> None:
        this.until = time.monotonic() + 0.0005
        collect(this)

    monkeypatch.setattr(supervisor.ForkedRun, "_collect", at_the_last_moment)
    assert run(pingpong_pair(wait=BLOCK)).counters["rank0"]["recv_messages"] == 55


@pytest.mark.nightly("seconds of a deadline")
def test_only_those_that_do_not_end_are_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    linger = session.linger

    def for_ever(rank: Rank) -> None:
        linger(rank)
        while multiprocessing.current_process().name == "rank1":
            time.sleep(1)

    monkeypatch.setattr(session, "linger", for_ever)
    monkeypatch.setattr(supervisor, "END_LIMIT_S", patient(2.0))
    said = r"the run was done, but did not end within [\d.]+ s more because of rank1 \(sleeping at "
    with pytest.raises(AgentError, match=said) as caught:
        run(pingpong_pair(wait=BLOCK))
    assert caught.value.agent == "rank1"


def test_a_fault_for_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="no process 'rank7'; there are"):
        run(pingpong_pair(agent_faults=(AgentFault("rank7"),)))
