"""Runs a cluster on emulated hosts, under a virtual clock, in this process."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.agents import make_agents
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.logs import LOGGER
from shrimpmx.cluster.engine.plans import ranks_plan
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.place.placement import AgentPlan, Placement, ProcessPlan, place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec, check_workloads
from shrimpmx.errors import NotHereError, failure_of
from shrimpmx.native.perf import usage
from shrimpmx.native.segment import RunIdentity
from shrimpmx.settings.strategies import WAITING
from shrimpmx.shared.agent import Agent
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.memory import PrivateMemory
from shrimpmx.simulation.model import HostModel
from shrimpmx.simulation.rank import SimulatedRank
from shrimpmx.simulation.schedulers import schedulers_of
from shrimpmx.simulation.world import World

# Of one piece of a hog's computing, ns; it is no limit of anything.
HOG_NS = 1_000_000
# Hardware, which needs no CPU of a host.
HARDWARE = ("nic", "generator", "mx")
# The ranks are one application.
RANKS_GANG = 0
# Their work is a task's, not a step of an agent.
COMPUTING = ("hog", "spinner")


class Simulated(Engine):
    """An Engine: agents, library and workloads as they are, on hosts that `model` describes.

    What takes time is what the parameters of host, NIC and waiting say, and the model. A run gives
    the same figures each time and on every machine.
    """

    name = "simulated"
    is_real = False

    def __init__(self, model: HostModel | None = None) -> None:
        self.model = model or HostModel()

    def describe(self) -> dict[str, Any]:
        """Its name and its host model: figures are the same wherever these are."""
        return {"engine": self.name, "host_model": dataclasses.asdict(self.model)}

    def cpus(self) -> int | None:
        """As many as a run needs."""
        return None

    def place(self, spec: ClusterSpec) -> Placement:
        """Each emulated core and each NIC has a CPU of its own."""
        cores = spec.host.cores + 2  # those of NIC and dma agent, which need one of no host
        packages = spec.nodes * max(2, -(-cores // 4))
        hosts = Topology.from_synthetic(f"package:{packages} l2:2 core:2 pu:1")
        return place(spec, hosts, (True, ""), (True, ""))

    def run(self, spec: ClusterSpec) -> ClusterResult:
        """Run it to its end."""
        check_workloads(spec)
        check_simulated(spec)
        placement = self.place(spec)
        memory = PrivateMemory(spec, placement, RunIdentity.of_this_process(), Path(os.devnull))
        try:
            made = _Run(spec, placement, memory, self.model)
            try:
                return made.run()
            finally:
                memory.set_stop("abort")
                made.world.close()
        finally:
            memory.close()


def check_simulated(spec: ClusterSpec) -> None:
    """NotHereError if the simulated engine cannot run it yet."""
    problem = ""
    if any(rank.command for rank in spec.ranks):
        problem = "runs workloads, not programs"
    elif spec.kind.vmmc:
        problem = "has no vmmc NIC"
    elif spec.agent_faults:
        problem = "lets no process die or stop"
    elif any(_signals(spec, number) for number in range(len(spec.ranks))):
        problem = "has no signals, by which wait 'notify' and 'spin-notify' are told"
    elif not spec.realtime:
        problem = "lets handlers always preempt ranks, whatever realtime says"
    elif spec.cpus or spec.allowed_cpus:
        problem = "has CPUs of its own, none of this machine's, which cpus names"
    elif spec.hardware_counters:
        problem = "counts no cache misses"
    if problem:
        raise NotHereError(f"needs --engine forked: the simulated engine {problem}")


def _signals(spec: ClusterSpec, number: int) -> bool:
    wait = spec.wait_of(number).strategy
    return wait in WAITING and "notify" in wait


def _all(holds: Callable[[Any], bool], things: Iterable[Any]) -> Callable[[], bool]:
    """Tells whether `holds`, once it does so for good, does so of all things; each is asked about
    until then only.
    """
    left = list(things)

    def all_hold() -> bool:
        while left and holds(left[-1]):
            left.pop()
        return not left

    return all_hold


class _Run:
    """One run."""

    def __init__(
        self, spec: ClusterSpec, placement: Placement, memory: PrivateMemory, model: HostModel
    ) -> None:
        self.spec, self.placement, self.memory = spec, placement, memory
        agents: list[tuple[Agent, int, int | None]] = []
        self.process_of: list[str] = []  # of each agent, its process
        for plan in placement.processes:
            if plan.role not in ("rank", *COMPUTING):
                cpu = None if plan.role in HARDWARE else plan.cpu
                made = make_agents(spec, placement, plan, memory)
                self.process_of += [plan.name] * len(made)
                agents += [
                    (agent, wanted.node, cpu)
                    for agent, wanted in zip(made, self._machines(plan), strict=True)
                ]
        self.agent_numbers = {
            agent.name: number for number, (agent, _) in enumerate(placement.agents())
        }
        deadline_ns = round(spec.deadline_s * 1e9)
        schedulers = schedulers_of(spec.host, model)
        self.world = World(memory.control, agents, model, schedulers, deadline_ns, spec.nodes)
        self.ranks = self._make_ranks()

    def _machines(self, plan: ProcessPlan) -> list[AgentPlan]:
        """The agents of a process that make_agents() makes step machines of."""
        return [agent for agent in plan.agents if agent.role not in self.spec.kind.records]

    def _make_ranks(self) -> list[SimulatedRank]:
        spec = self.spec
        run = ranks_plan(spec, self.placement, Path(os.devnull))
        ranks = []
        for index, process in enumerate(self.placement.processes):
            if process.role == "rank":
                number = process.agents[0].number
                own = spec.waits.get(process.wait.strategy)
                rank = SimulatedRank(run, run.ranks[number], spec.ranks[number], own, self.memory)
                ranks.append(rank)
                self._add(process, self._life(rank, process.name))
            elif process.role in COMPUTING:
                self._add(process, self._hog(process.agents[0].name, index))
                self.memory.control.set_runner_state(index, "running")
        return ranks

    def _add(self, plan: ProcessPlan, work: Callable[[SimulatedHost], None]) -> None:
        self.world.add(
            plan.name,
            plan.cpu,
            work,
            plan.agents[0].node,
            nice=plan.niceness,
            policy="idle" if plan.idle_class else "normal",
            gang=RANKS_GANG if plan.role == "rank" else -1,
        )

    def _life(self, rank: SimulatedRank, name: str) -> Callable[[SimulatedHost], None]:
        def live(host: SimulatedHost) -> None:
            try:
                rank.live(host)
            except Exception as error:
                raise failure_of(name, error) from error

        return live

    def _hog(self, agent: str, runner: int) -> Callable[[SimulatedHost], None]:
        def burn(host: SimulatedHost) -> None:
            host.count_in(self.agent_numbers[agent], runner)
            while self.memory.control.stop_state() == "no":
                host.burn_round(HOG_NS)

        return burn

    def run(self) -> ClusterResult:
        control = self.memory.control
        runners = [
            index for index, plan in enumerate(self.placement.processes) if plan.role == "rank"
        ]

        def is_ready(runner: int) -> bool:
            return bool(control.runner_info(runner)["state"] != "starting")

        self.world.run(_all(is_ready, runners))
        control.start()
        self.world.run(_all(lambda rank: rank.report is not None, self.ranks))
        self.memory.set_stop("finish")
        self.world.run(_all(lambda task: task.state == "ended", self.world.tasks))
        LOGGER.info(
            "simulated %d processes on %d nodes: %.6f s",
            len(self.placement.processes),
            self.spec.nodes,
            control.now_ns() / 1e9,
        )
        return self._result()

    def _result(self) -> ClusterResult:
        result = ClusterResult(self.placement)
        result.read_memory(self.memory)
        for rank in self.ranks:
            assert rank.report is not None
            result.note_report(rank.report)
            name: str = rank.report["from"]
            result.samples[name] = rank.samples
            result.counters_before.update(rank.counters_before)
        used_ns = dict.fromkeys((plan.name for plan in self.placement.processes), 0)
        for name, worked_ns in zip(self.process_of, self.world.worked_ns(), strict=True):
            used_ns[name] += worked_ns
        used_ns |= {task.name: task.used_ns for task in self.world.tasks}
        none: dict[str, Any] = dict.fromkeys(usage(), 0)
        for name, each_ns in used_ns.items():
            result.usage.setdefault(name, {**none, "user_ns": each_ns, "task_clock_ns": each_ns})
        return result
