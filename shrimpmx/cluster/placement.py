"""Where everything runs: maps emulated nodes, cores and NICs to CPUs, with reasons.

On many CPUs each NIC and each emulated core has a CPU of its own. On few, the NICs share
one process, and on two CPUs that process shares CPU 0 with node 0 and preempts it, as
hardware would (real-time priority 80; interrupts have 50).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec
from shrimpmx.cluster.topology import Distance, Topology, format_cpu_list
from shrimpmx.errors import InputError
from shrimpmx.host.idle import AWAKE_BY, Idle, idle_rule
from shrimpmx.native.cores import time_slices_settable
from shrimpmx.params import WaitParameters

# Real-time priorities, ours: a NIC that shares a CPU acts beside it, so it preempts all; an
# interrupt preempts the ranks, and copies that are done beside them.
NIC_PRIORITY = 80
IRQ_PRIORITY = 50
DMA_PRIORITY = 40
# Columns of the printed map.
TABLE_WIDTH = 80


@dataclass(frozen=True)
class AgentPlan:
    """One agent. `number` is its core, rank or companion number, by kind.

    `role`: "nic", "generator", "irq", "dma", "rank", "hog" or "spinner"; `kind` is the kind of its
    counters.
    """

    name: str
    role: str
    node: int
    number: int = 0

    @property
    def kind(self) -> str:
        """The kind of its counters: a generator counts as the NIC that it is part of."""
        return {"generator": "nic", "spinner": "hog"}.get(self.role, self.role)


@dataclass(frozen=True)
class ProcessPlan:
    """One process: its agents, CPU, real-time priority (0: normal), waiting, and why so.

    `idle_class`: it runs only when nothing else wants its CPU.
    """

    name: str
    cpu: int
    agents: tuple[AgentPlan, ...]
    reason: str
    realtime: int = 0
    niceness: int = 0
    idle_class: bool = False
    wait: WaitParameters = field(default_factory=lambda: WaitParameters(strategy="block"))

    @property
    def role(self) -> str:
        """The role of its first agent."""
        return self.agents[0].role


@dataclass(frozen=True)
class Placement:
    """The map of a run. `notes` says what this machine cannot do, and what follows.

    `idle`: whether idle cores sleep, or what keeps them awake; `idle_why`: why that.
    """

    topology: Topology
    processes: tuple[ProcessPlan, ...]
    core_cpus: dict[tuple[int, int], int]
    nic_cpus: tuple[int, ...]
    nic_alone: bool
    oversubscribed: bool
    realtime: bool
    notes: tuple[str, ...] = ()
    idle: Idle = "sleep"
    idle_why: str = ""

    @property
    def degraded(self) -> bool:
        """Whether figures of this run are worth less than on a larger or freer machine."""
        return bool(self.notes)

    def agents(self) -> Iterator[tuple[AgentPlan, int]]:
        """Each agent and the index of its process; their order is that of the agent records."""
        for index, process in enumerate(self.processes):
            for agent in process.agents:
                yield agent, index

    def process_index(self, name: str) -> int:
        """The index of process `name`; InputError naming those there are."""
        names = [process.name for process in self.processes]
        if name not in names:
            raise InputError(f"there is no process {name!r}; there are {', '.join(names)}")
        return names.index(name)

    def distance(self, first: tuple[int, int], second: tuple[int, int]) -> Distance:
        """How far apart two emulated cores (node, core) run."""
        return self.topology.distance(self.core_cpus[first], self.core_cpus[second])

    def table(self) -> str:
        """The map as text: a line per process with its CPU, priority, waiting and reason."""
        head = ("process", "cpu", "priority", "waits", "why")
        rows = [head, *(_row(process) for process in self.processes)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head) - 1)]
        lines = [f"placement on {self.topology.describe()}"]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            lines.extend(_wrapped("  " + "  ".join([*cells, ""]), row[-1]))
        if self.idle != "sleep":
            by = AWAKE_BY[self.idle]
            lines.extend(_wrapped("  idle cores: ", f"kept awake by {by}; {self.idle_why}"))
        for note in self.notes:
            lines.extend(_wrapped("  note: ", note))
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The map as plain data, for results."""
        return {
            "topology": self.topology.describe(),
            "processes": [
                {
                    "name": process.name,
                    "cpu": process.cpu,
                    "realtime": process.realtime,
                    "wait": process.wait.strategy,
                    "agents": [agent.name for agent in process.agents],
                    "reason": process.reason,
                }
                for process in self.processes
            ],
            "nic_alone": self.nic_alone,
            "oversubscribed": self.oversubscribed,
            "realtime": self.realtime,
            "idle": self.idle,
            "notes": list(self.notes),
        }


def place(
    spec: ClusterSpec,
    topology: Topology,
    realtime: tuple[bool, str] = (True, ""),
    pm_qos: tuple[bool, str] = (False, "PM QoS was not tried"),
) -> Placement:
    """Map `spec` to the CPUs of `topology`.

    `realtime`: whether real-time priority is permitted, and if not, why; `pm_qos`: whether PM
    QoS works, and why. Raises InputError when `spec.cpus` names a place or a CPU that there is
    not.
    """
    seats = _Seats(spec, topology)
    permitted = realtime[0] and spec.realtime
    idle = idle_rule(spec.host.idle, pm_qos[0])
    processes = [
        *_nic_processes(spec, seats, permitted),
        *_irq_processes(spec, seats, permitted),
        *_dma_processes(spec, seats, permitted),
        *_rank_processes(spec, seats),
        *_companion_processes(spec, seats, idle),
    ]
    return Placement(
        topology=topology,
        processes=tuple(processes),
        core_cpus=dict(seats.core_cpus),
        nic_cpus=tuple(seats.nic_cpus),
        nic_alone=seats.nic_alone,
        oversubscribed=seats.oversubscribed,
        realtime=permitted,
        notes=tuple(_notes(spec, seats, topology, realtime)),
        idle=idle,
        idle_why="" if idle == "sleep" else pm_qos[1],
    )


class _Seats:
    """Which CPU each emulated core and each NIC process gets."""

    def __init__(self, spec: ClusterSpec, topology: Topology) -> None:
        self.cores = [
            (node, core) for node in range(spec.full_nodes) for core in range(spec.host.cores)
        ]
        self.cpus = list(topology.by_preference())
        self.nics_count = 1 if spec.mode == "generator" else spec.nodes
        self.core_cpus: dict[tuple[int, int], int] = {}
        self.nic_cpus: list[int] = []
        self.dma_cpus: dict[int, int] = {}
        self.reason = ""
        self._assign(spec)
        self._seat_dma(spec)
        self._apply_wishes(spec, topology)
        used = list(self.core_cpus.values())
        self.nic_alone = not set(self.nic_cpus) & set(used)
        self.oversubscribed = len(set(used)) < len(used)

    def _assign(self, spec: ClusterSpec) -> None:
        count, cores = len(self.cpus), self.cores
        if count >= len(cores) + self.nics_count:
            self.reason = "each NIC and each core has a CPU of its own"
            free = iter(self.cpus)
            for node in range(spec.full_nodes):
                self.nic_cpus.append(next(free))
                self.core_cpus.update({(node, c): next(free) for c in range(spec.host.cores)})
        elif count > len(cores) or (spec.mode == "generator" and count > 1):
            self.reason = "all NICs share one CPU, which nothing else uses"
            self.nic_cpus = [self.cpus[0]]
            self._share_out(self.cpus[1:])
        else:
            self.reason = f"only {count} CPU{'s' if count > 1 else ''}: the NICs share CPU "
            self.reason += f"{self.cpus[0]} with a core"
            self.nic_cpus = [self.cpus[0]]
            self._share_out(self.cpus)

    def _share_out(self, cpus: list[int]) -> None:
        # In turn, so that nodes 0 and 1 are on different CPUs, and a node's cores too.
        for position, core in enumerate(self.cores):
            self.core_cpus[core] = cpus[position % len(cpus)]

    def _seat_dma(self, spec: ClusterSpec) -> None:
        """The dma agents: on CPUs that are left over, else with their nodes' core 0."""
        if not spec.host.copy_offload:
            return
        used = {*self.core_cpus.values(), *self.nic_cpus}
        free = [cpu for cpu in self.cpus if cpu not in used]
        for node in range(spec.full_nodes):
            self.dma_cpus[node] = free.pop(0) if free else self.core_cpus[node, 0]

    def dma_alone(self, node: int) -> bool:
        """Whether nothing else uses the CPU of the node's dma agent."""
        cpu = self.dma_cpus[node]
        others = [*self.core_cpus.values(), *self.nic_cpus, *self.dma_cpus.values()]
        return others.count(cpu) == 1

    def _apply_wishes(self, spec: ClusterSpec, topology: Topology) -> None:
        names = {f"node{node}.core{core}": (node, core) for node, core in self.cores}
        dma_names = {f"node{node}.dma": node for node in self.dma_cpus}
        for name, wished in spec.cpus.items():
            cpu = topology.cpu(wished).number
            if name in names:
                self.core_cpus[names[name]] = cpu
            elif name in dma_names:
                self.dma_cpus[dma_names[name]] = cpu
            elif name == "nic":
                self.nic_cpus = [cpu]
            elif name.endswith(".nic") and name[4:-4].isdigit() and self._has_nic(name):
                self._part_nics()
                self.nic_cpus[int(name[4:-4])] = cpu
            else:
                nics = [f"node{node}.nic" for node in range(self.nics_count)]
                places = ", ".join(["nic", *nics, *names, *dma_names])
                raise InputError(f"there is no place {name!r} to put on a CPU; places: {places}")

    def _has_nic(self, name: str) -> bool:
        return name.startswith("node") and int(name[4:-4]) < self.nics_count

    def _part_nics(self) -> None:
        """One NIC process per node, also where one for all was chosen."""
        if len(self.nic_cpus) < self.nics_count:
            self.nic_cpus = self.nic_cpus * self.nics_count


def _nic_processes(spec: ClusterSpec, seats: _Seats, realtime: bool) -> Iterator[ProcessPlan]:
    wait = spec.nic_wait or WaitParameters(strategy="spin" if seats.nic_alone else "block")
    priority = NIC_PRIORITY if realtime and not seats.nic_alone else 0
    why = "preempts, as hardware would" if realtime else "takes turns with what runs there"
    why = "alone on its CPU, so it spins" if seats.nic_alone else why
    if spec.nic.nic_kind == "vmmc" and not seats.nic_alone and len(seats.nic_cpus) == 1:
        why += "; senders do short updates themselves"
    agents = [AgentPlan(f"node{node}.nic", "nic", node) for node in range(spec.full_nodes)]
    if spec.mode == "generator":
        agents.append(AgentPlan("node1.generator", "generator", 1))
    if len(seats.nic_cpus) == 1:
        yield ProcessPlan(
            "nic", seats.nic_cpus[0], tuple(agents), f"{seats.reason}; {why}", priority, wait=wait
        )
        return
    for agent, cpu in zip(agents, seats.nic_cpus, strict=True):
        reason = f"{seats.reason}; {why}"
        yield ProcessPlan(agent.name, cpu, (agent,), reason, priority, wait=wait)


def _irq_processes(spec: ClusterSpec, seats: _Seats, realtime: bool) -> Iterator[ProcessPlan]:
    wait = spec.irq_wait or WaitParameters(strategy="block")
    priority = IRQ_PRIORITY if realtime else 0
    for (node, core), cpu in seats.core_cpus.items():
        agent = AgentPlan(f"node{node}.irq{core}", "irq", node, core)
        why = f"interrupts of node {node}, core {core}: they "
        why += "preempt its ranks" if realtime else "take turns with its ranks"
        yield ProcessPlan(agent.name, cpu, (agent,), why, priority, wait=wait)


def _dma_processes(spec: ClusterSpec, seats: _Seats, realtime: bool) -> Iterator[ProcessPlan]:
    for node, cpu in seats.dma_cpus.items():
        agent = AgentPlan(f"node{node}.dma", "dma", node)
        why = f"copies for node {node}, "
        if seats.dma_alone(node):
            # It may look for work a while: there is nothing to keep from running.
            wait = WaitParameters(strategy="spin-block")
            why += "alone on its CPU"
        else:
            wait = WaitParameters(strategy="block")
            why += "without a CPU of its own: "
            why += "behind the interrupts" if realtime else "takes turns with what runs there"
        priority = DMA_PRIORITY if realtime else 0
        yield ProcessPlan(agent.name, cpu, (agent,), why, priority, wait=wait)


def _rank_processes(spec: ClusterSpec, seats: _Seats) -> Iterator[ProcessPlan]:
    for number, rank in enumerate(spec.ranks):
        agent = AgentPlan(f"rank{number}", "rank", rank.node, number)
        why = f"node {rank.node}, core {rank.core}"
        cpu = seats.core_cpus[rank.node, rank.core]
        yield ProcessPlan(agent.name, cpu, (agent,), why, wait=spec.wait_of(number))


def _spinners(seats: _Seats) -> Iterator[CompanionSpec]:
    """One for each CPU that runs emulated cores."""
    first = {cpu: core for core, cpu in reversed(seats.core_cpus.items())}
    for node, core in sorted(first.values()):
        yield CompanionSpec(node, core, "spinner")


def _companion_processes(spec: ClusterSpec, seats: _Seats, idle: Idle) -> Iterator[ProcessPlan]:
    spinners = _spinners(seats) if idle == "spinner" else ()
    for number, companion in enumerate((*spec.companions, *spinners)):
        spins = companion.kind == "spinner"
        role = "spinner" if spins else "hog"
        agent = AgentPlan(f"{companion.kind}{number}", role, companion.node, number)
        why = "keeps the CPU awake" if spins else "burns CPU"
        why += f" beside node {companion.node}, core {companion.core}"
        yield ProcessPlan(
            agent.name,
            seats.core_cpus[companion.node, companion.core],
            (agent,),
            why,
            niceness=19 if companion.kind == "nice" else 0,
            idle_class=spins,
            wait=WaitParameters(strategy="sched" if spins else "spin"),
        )


def _notes(
    spec: ClusterSpec, seats: _Seats, topology: Topology, realtime: tuple[bool, str]
) -> Iterator[str]:
    used = {*seats.core_cpus.values(), *seats.nic_cpus}
    if len(topology.cpus) == 1:
        yield "degraded: everything shares one CPU, so nothing runs in parallel"
    elif seats.oversubscribed:
        cpus = format_cpu_list(seats.core_cpus.values())
        yield (
            f"oversubscribed: {len(seats.cores)} emulated cores on CPUs {cpus}; "
            "counts of messages and packets hold, those of interrupts depend on who runs when, "
            "and times are not measurable here"
        )
    if not realtime[0]:
        yield f"normal priority everywhere, so interrupts do not preempt: {realtime[1]}"
    elif not spec.realtime:
        yield "normal priority everywhere, as asked, so interrupts do not preempt"
    if spec.host.time_slice_ns and not time_slices_settable():
        yield (
            "time_slice_ns has no effect: this kernel gives every process the same time slice "
            "(Linux 6.12 and newer do not)"
        )
    crowded = [cpu for cpu in sorted(used) if len(set(topology.siblings(cpu)) & used) > 1]
    if crowded:
        yield f"CPUs {format_cpu_list(crowded)} share physical cores (SMT) and slow each other"


def _wrapped(head: str, text: str) -> list[str]:
    """`text` behind `head`, in lines that a terminal shows whole."""
    return textwrap.wrap(
        text,
        TABLE_WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )


def _row(process: ProcessPlan) -> tuple[str, str, str, str, str]:
    priority = f"fifo {process.realtime}" if process.realtime else "normal"
    if process.niceness:
        priority = f"nice {process.niceness}"
    if process.idle_class:
        priority = "idle"
    return (process.name, str(process.cpu), priority, process.wait.strategy, process.reason)
