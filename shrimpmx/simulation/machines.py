"""The agents of a simulated run on their CPUs, and what computes beside its ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shrimpmx.cluster.engine.agents import make_agents
from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.engine.switches import Switches, cpus_of, switches_of
from shrimpmx.cluster.nics.kind import Charges
from shrimpmx.cluster.place.placement import AgentPlan, Placement, ProcessPlan, lines_of
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.costs.meter import Prices, of_handlers, of_rank
from shrimpmx.native.perf import IDLE, SwitchLog, usage
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.simulation.group import Group
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.hosts import asleep_of, host_of
from shrimpmx.simulation.one_machine import OneMachine, driving, is_process
from shrimpmx.simulation.schedulers import schedulers_of
from shrimpmx.simulation.tally import AllOf
from shrimpmx.simulation.world import REST_NS, Task, World

# Of one piece of a hog's computing, ns; it is no limit of anything.
HOG_NS = 1_000_000
# Hardware, which needs no CPU of a host.
HARDWARE = ("nic", "generator", "mx", "dma", "switch")
# The ranks are one application.
RANKS_GANG = 0
# Their work is a task's, not a step of an agent.
COMPUTING = ("hog", "spinner")


class Machines:
    """The `world` of a run with its agents; add() puts ranks there, add_company() hogs.

    On `one` machine, processes that drive agents are tasks too, and all nodes are one.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        placement: Placement,
        memory: RunMemory,
        one: OneMachine | None = None,
    ) -> None:
        self._one = one
        if one is not None:
            spec = one.seated(spec)
        self._spec, self._placement, self._control = spec, placement, memory.control
        self._numbers = {agent.name: each for each, (agent, _) in enumerate(placement.agents())}
        self._indices = {plan.name: each for each, plan in enumerate(placement.processes)}
        self.model = model = _model_of(spec)
        self._prices: dict[int, Prices] = {}  # of handlers, by node
        agents: list[tuple[Agent, int, int | None]] = []
        self._process_of: list[str] = []  # of each agent, its process
        driven: list[tuple[int, list[Agent]]] = []  # by tasks
        for index, plan in enumerate(placement.processes):
            if plan.role not in ("rank", *COMPUTING):
                cpu = None if plan.role in HARDWARE else plan.cpu
                made = make_agents(spec, placement, plan, memory, self._charges(plan))
                if one is not None and is_process(placement, plan):
                    driven.append((index, made))
                    continue
                self._process_of += [plan.name] * len(made)
                agents += [
                    (agent, self._node(wanted.node), cpu)
                    for agent, wanted in zip(made, _machines(spec, plan), strict=True)
                ]
        self._note_cpus()
        deadline_ns = round(spec.deadline_s * 1e9)
        if one is None:
            cpus_per_host = max(host_of(spec).numbers) + 1
            schedulers = schedulers_of(spec.host, model, spec.seed, cpus_per_host)
        else:
            schedulers = one.schedulers(spec)
        nodes = 1 if one else spec.nodes + len(spec.nic.switches(spec.nodes))
        asleep = asleep_of(model, placement.topology)
        self._log = _log_of(spec, cpus_of(placement, () if one else HARDWARE))
        self.world = World(
            memory.control,
            agents,
            model,
            schedulers,
            deadline_ns,
            nodes,
            asleep,
            self._log,
            _rest_ns(spec),
            spec.seed,
        )
        for index, made in driven:
            plan = placement.processes[index]
            self.add(plan, driving(spec, plan, index, made, memory.control))

    def group(self, of_nodes: Sequence[int], count: int, ahead_ns: int) -> Group:
        """What joins `count` processes, by the group of each node and switch."""
        rest_ns, deadline_ns = _rest_ns(self._spec), round(self._spec.deadline_s * 1e9)
        return Group(self.world.agents, of_nodes, count, ahead_ns, rest_ns, deadline_ns)

    def _charges(self, plan: ProcessPlan) -> Charges:
        """What the handlers of a process pay, those of a node by the same prices."""
        node = plan.agents[0].node
        if node < self._spec.full_nodes and node not in self._prices:
            self._prices[node] = self._prices_of(node, self._spec.wait, of_handlers(node))
        prices = self._prices[node] if node in self._prices else Prices({})
        if self._one is not None:
            return Charges(prices, are_processes=True)
        return Charges(prices, self.model.interrupt_delivery_ns)

    def _prices_of(self, node: int, wait: WaitParameters, number: int) -> Prices:
        """Those of a node, where processes wait so; they draw as those of that number."""
        spec, model = self._spec, self.model
        costs = {**vars(model), **vars(spec.host), **vars(spec.mx), **vars(wait)}
        lines = lines_of(spec, self._placement, node)
        return Prices(costs, lines, model.keeps_copies, spec.seed, number)

    def _rank_prices(self, plan: ProcessPlan) -> Prices:
        first = plan.agents[0]
        return self._prices_of(first.node, plan.wait, of_rank(first.number))

    def _note_cpus(self) -> None:
        """NICs that are processes know by that the handlers that wait for their CPU, and handlers
        the ranks on theirs."""
        for index, plan in enumerate(self._placement.processes):
            if self._one is not None or plan.role not in HARDWARE:
                self._control.set_placement(index, plan.cpu, plan.realtime)

    def _node(self, node: int) -> int:
        return node if self._one is None else 0

    def add_company(self) -> None:
        """The processes that only compute."""
        for index, plan in enumerate(self._placement.processes):
            if plan.role in COMPUTING:
                self.add(plan, self._hog(plan.agents[0].name, index))
                self._control.set_runner_state(index, "running")

    def add(self, plan: ProcessPlan, work: Callable[[SimulatedHost], None]) -> Task:
        """A task that does the work of a process."""
        first = plan.agents[0]
        return self.world.add(
            plan.name,
            plan.cpu,
            work,
            self._node(first.node),
            nice=plan.niceness,
            policy="idle" if plan.idle_class else "normal",
            gang=RANKS_GANG if plan.role == "rank" else -1,
            realtime=plan.realtime if self._one is not None else 0,
            process=self._indices[plan.name],
            prices=self._rank_prices(plan) if plan.role == "rank" else None,
            agent=self._numbers[first.name],
        )

    def _hog(self, agent: str, runner: int) -> Callable[[SimulatedHost], None]:
        def burn(host: SimulatedHost) -> None:
            host.count_in(self._numbers[agent], runner)
            while self._control.stop_state() == "no":
                host.burn_round(HOG_NS)

        return burn

    def finish(self) -> None:
        """Let the tasks of a run that is done go on to their ends."""
        self.world.run(AllOf(lambda task: task.state == "ended", self.world.tasks))

    def switches(self) -> Switches:
        """Which process had which CPU, in a traced run; call it once, at its end."""
        if self._log is None:
            return Switches()
        now_ns = self._control.now_ns()
        for cpu in self._log.cpus:
            self.world.cpu(cpu).settle(now_ns)
        self._log.end(now_ns)
        names = {index + 1: name for name, index in self._indices.items()}
        return switches_of(self._log, self._placement, {IDLE: "idle", **names})

    def used_ns(self) -> dict[str, int]:
        """What each process has used of its CPU, in the order of the placement."""
        used_ns = dict.fromkeys((plan.name for plan in self._placement.processes), 0)
        for name, worked_ns in zip(self._process_of, self.world.agents.worked_ns(), strict=True):
            used_ns[name] += worked_ns
        return used_ns | {task.name: task.used_ns for task in self.world.tasks}

    def used(self) -> dict[str, dict[str, Any]]:
        """The same as shrimpmx.native.perf.usage has it."""
        none: dict[str, Any] = dict.fromkeys(usage(), 0)
        return {
            name: {**none, "user_ns": each_ns, "task_clock_ns": each_ns}
            for name, each_ns in self.used_ns().items()
        }


def _log_of(spec: ClusterSpec, cpus: Iterable[int]) -> SwitchLog | None:
    """Where a traced run logs which process has which CPU."""
    return SwitchLog(cpus, spec.trace_entries) if spec.trace_entries else None


def _model_of(spec: ClusterSpec) -> HostModelParameters:
    """The host model; cores that are kept awake take no time to wake up."""
    if spec.host.idle == "sleep":
        return spec.model
    awake: HostModelParameters = spec.model.model_copy(update={"idle_exit_ns": 0})
    return awake


def _machines(spec: ClusterSpec, plan: ProcessPlan) -> list[AgentPlan]:
    """The agents of a process that make_agents() makes step machines of."""
    return [agent for agent in plan.agents if agent.role not in spec.kind.records]


def _rest_ns(spec: ClusterSpec) -> int:
    """How long agents may do nothing before one of their timers ends, ns.

    Twice the longest, since a handler looks at the timers of pulls now and then only.
    """
    timers = (spec.host.pull_resend_delay_ns, spec.generator.resend_delay_ns)
    return max(REST_NS, 2 * max(timers))
