"""Where everything runs: maps emulated nodes, cores and NICs to CPUs, with reasons.

On many CPUs each NIC and each emulated core has a CPU of its own. On few, the NICs share
one process, and on two CPUs that process shares CPU 0 with node 0 and preempts it, as
hardware would (real-time priority 80; interrupts have 50). Which CPU a core gets: seats.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from shrimpmx.cluster.place.seats import ALONE, Seats, places_words
from shrimpmx.cluster.place.topology import LINE_COSTS, Distance, Topology
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec
from shrimpmx.costs.meter import LINES
from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.host.idle import AWAKE_BY, Idle, idle_rule
from shrimpmx.link.links import link_called
from shrimpmx.mx.binding import unfitting_file
from shrimpmx.native.cores import time_slices_settable
from shrimpmx.native.records import dataclass, field
from shrimpmx.settings.core_lists import format_core_list
from shrimpmx.settings.host import WaitParameters

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

    `role`: "nic", "generator", "mx", "irq", "dma", "rank", "hog", "spinner" or "switch"; `kind` is
    the kind of its counters.
    """

    name: str
    role: str
    node: int
    number: int = 0

    @property
    def kind(self) -> str:
        """The kind of its counters: a generator counts as the NIC that it is part of, and what
        native MX's firmware handles as a handler does.
        """
        kinds = {"generator": "nic", "mx": "irq", "spinner": "hog"}
        return kinds.get(self.role, self.role)


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

    `idle`: whether idle cores sleep, or what keeps them awake; `idle_why`: why that. `core_uses`:
    of each emulated core, whether it is "busy", and else whether something shares its CPU.
    `binding_note`: the one of `notes` that says that the binding file fits no NIC, or "". `lends`:
    senders carry out short updates of SHRIMP's NIC themselves (nic/lent.pyx).
    """

    topology: Topology
    processes: tuple[ProcessPlan, ...]
    core_cpus: dict[tuple[int, int], int]
    nic_cpus: tuple[int, ...]
    nic_alone: bool
    oversubscribed: bool
    realtime: bool
    notes: tuple[str, ...] = ()
    binding_note: str = ""
    idle: Idle = "sleep"
    idle_why: str = ""
    core_uses: dict[tuple[int, int], str] = field(default_factory=dict)
    lends: bool = False

    @property
    def degraded(self) -> bool:
        """Whether figures of this run are worth less than on a larger or freer machine."""
        return bool(self.notes)

    def agents(self) -> Iterator[tuple[AgentPlan, int]]:
        """Each agent and the index of its process; their order is that of the agent records."""
        for index, process in enumerate(self.processes):
            for agent in process.agents:
                yield agent, index

    @cached_property
    def records(self) -> dict[str, tuple[int, int]]:
        """Of each agent, by its name: the numbers of its record and of its process."""
        return {agent.name: (number, index) for number, (agent, index) in enumerate(self.agents())}

    def process_index(self, name: str) -> int:
        """The index of process `name`; InputError naming those there are."""
        names = [process.name for process in self.processes]
        if name not in names:
            hint = did_you_mean(name, names)
            raise InputError(f"there is no process {name!r}; there are {', '.join(names)}{hint}")
        return names.index(name)

    def distance(self, first: tuple[int, int], second: tuple[int, int]) -> Distance:
        """How far apart two emulated cores (node, core) run."""
        return self.topology.distance(self.core_cpus[first], self.core_cpus[second])

    def idle_core(self, node: int, core: int) -> bool:
        """Whether only interrupts of that core run on its CPU, so that it can sleep otherwise."""
        return self.core_uses[node, core] == ALONE

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
            "cores": {f"node{n}.core{c}": use for (n, c), use in self.core_uses.items()},
            "nic_alone": self.nic_alone,
            "oversubscribed": self.oversubscribed,
            "realtime": self.realtime,
            "idle": self.idle,
            "notes": list(self.notes),
            "binding_note": self.binding_note,
        }


def place(
    spec: ClusterSpec,
    topology: Topology,
    realtime: tuple[bool, str] = (True, ""),
    pm_qos: tuple[bool, str] = (False, "PM QoS was not tried"),
    *,
    seats: Seats | None = None,
) -> Placement:
    """Map `spec` to the CPUs of `topology`.

    `realtime`: whether real-time priority is permitted, and if not, why; `pm_qos`: whether PM
    QoS works, and why; `seats`: those of the cores, if they are known. Raises InputError when
    `spec.cpus` names a place or a CPU that there is not, PlacementError when there are no CPUs at
    the spec's distance.
    """
    seats = seats or Seats(spec, topology)
    permitted = realtime[0] and spec.realtime
    idle = idle_rule(spec.host.idle, pm_qos[0])
    processes = [
        *_nic_processes(spec, seats, permitted),
        *_irq_processes(spec, seats, permitted),
        *_dma_processes(spec, seats, permitted),
        *_rank_processes(spec, seats),
        *_companion_processes(spec, seats, idle),
        *_switch_processes(spec, seats),
    ]
    binding_note = unfitting_file(spec.binding, spec.full_nodes)
    notes = [*_notes(spec, seats, topology, realtime), binding_note]
    return Placement(
        topology=topology,
        processes=tuple(processes),
        core_cpus=dict(seats.core_cpus),
        nic_cpus=tuple(seats.nic_cpus),
        nic_alone=seats.nic_alone,
        oversubscribed=seats.oversubscribed,
        realtime=permitted,
        notes=tuple(filter(None, notes)),
        binding_note=binding_note,
        idle=idle,
        idle_why="" if idle == "sleep" else pm_qos[1],
        core_uses={core: seats.use_of(core) for core in seats.cores},
        lends=_senders_lend(spec, seats),
    )


def _nic_processes(spec: ClusterSpec, seats: Seats, realtime: bool) -> Iterator[ProcessPlan]:
    wait = spec.nic_wait or WaitParameters(strategy="spin" if seats.nic_alone else "block")
    priority = NIC_PRIORITY if realtime and not seats.nic_alone else 0
    why = "preempts, as hardware would" if realtime else "takes turns with other processes there"
    why = "alone on its CPU, so it spins" if seats.nic_alone else why
    if _senders_lend(spec, seats):
        why += "; senders do short updates themselves"
    reason = f"{seats.reason}; {why}"
    nics = [_nic_agents(spec, node) for node in range(spec.full_nodes)]
    if len(seats.nic_cpus) == 1:
        agents = [agent for each in nics for agent in each]
        if spec.mode == "generator":
            agents.append(AgentPlan("node1.generator", "generator", 1))
        yield ProcessPlan("nic", seats.nic_cpus[0], tuple(agents), reason, priority, wait=wait)
        return
    for each, cpu in zip(nics, seats.nic_cpus, strict=True):
        yield ProcessPlan(each[0].name, cpu, each, reason, priority, wait=wait)


def _senders_lend(spec: ClusterSpec, seats: Seats) -> bool:
    """Whether senders lend SHRIMP's NIC their CPU: NICs share one process, and that its CPU with
    ranks.

    Not with link faults or a tx gap, which are the NIC's business, nor where a rank has the NIC's
    watchdog time its interrupts.
    """
    return (
        spec.kind.vmmc
        and not seats.nic_alone
        and len(seats.nic_cpus) == 1
        and link_called(spec.link).maps_nodes
        and spec.link_faults is None
        and spec.nic.tx_gap_ns == 0
        and not any(spec.wait_of(number).nic_timer for number in range(len(spec.ranks)))
    )


def _nic_agents(spec: ClusterSpec, node: int) -> tuple[AgentPlan, ...]:
    """A node's NIC, and what has a record of its own in it."""
    return tuple(
        AgentPlan(f"node{node}.{role}", role, node)
        for role in (*spec.kind.roles, *spec.kind.records)
    )


def _irq_processes(spec: ClusterSpec, seats: Seats, realtime: bool) -> Iterator[ProcessPlan]:
    wait = spec.irq_wait or WaitParameters(strategy="block")
    priority = IRQ_PRIORITY if realtime else 0
    homes = ((spec.ranks[each].node, spec.home_cores(each)) for each in range(len(spec.ranks)))
    with_ranks = {(node, core) for node, cores in homes for core in cores} | seats.visited
    for (node, core), cpu in seats.core_cpus.items() if spec.kind.interrupts else ():
        agent = AgentPlan(f"node{node}.irq{core}", "irq", node, core)
        why = f"interrupts of node {node}, core {core}: "
        if (node, core) not in with_ranks:
            why += "no rank is there"
        else:
            why += "they preempt its ranks" if realtime else "they take turns with its ranks"
        yield ProcessPlan(agent.name, cpu, (agent,), why, priority, wait=wait)


def _dma_processes(spec: ClusterSpec, seats: Seats, realtime: bool) -> Iterator[ProcessPlan]:
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
            why += "behind the interrupts" if realtime else "takes turns with other processes there"
        priority = DMA_PRIORITY if realtime else 0
        yield ProcessPlan(agent.name, cpu, (agent,), why, priority, wait=wait)


def _switch_processes(spec: ClusterSpec, seats: Seats) -> Iterator[ProcessPlan]:
    """Of simulated networks: a switch is no part of a node, and is numbered on behind them."""
    for number, name in enumerate(spec.nic.switches(spec.nodes)):
        agent = AgentPlan(name, "switch", spec.nodes + number, number)
        yield ProcessPlan(name, seats.nic_cpus[0], (agent,), "between the nodes, without a CPU")


def _rank_processes(spec: ClusterSpec, seats: Seats) -> Iterator[ProcessPlan]:
    for number, rank in enumerate(spec.ranks):
        agent = AgentPlan(f"rank{number}", "rank", rank.node, number)
        why = f"node {rank.node}, core {rank.core}{_binding_words(spec, seats, number)}"
        cpu = seats.core_cpus[rank.node, rank.core]
        yield ProcessPlan(
            agent.name, cpu, (agent,), why, niceness=rank.niceness, wait=spec.wait_of(number)
        )


def _binding_words(spec: ClusterSpec, seats: Seats, number: int) -> str:
    """Where a rank goes when it opens its endpoint, and how far its interrupts are from there."""
    node, home = spec.ranks[number].node, spec.home_core(number)
    words = "" if home == spec.ranks[number].core else f", then core {home}"
    cpus = sorted({seats.core_cpus[node, core] for core in spec.interrupt_cores(number)})
    if not cpus:
        return words
    far = [seats.topology.distance(seats.core_cpus[node, home], cpu).value for cpu in cpus]
    listed = f"CPU{'s' if len(cpus) > 1 else ''} {format_core_list(cpus)}"
    return f"{words}; interrupts on {listed} ({', '.join(dict.fromkeys(far))})"


def _spinners(seats: Seats) -> Iterator[CompanionSpec]:
    """One for each CPU that runs emulated cores."""
    first = {cpu: core for core, cpu in reversed(seats.core_cpus.items())}
    for node, core in sorted(first.values()):
        yield CompanionSpec(node, core, "spinner")


def _companion_processes(spec: ClusterSpec, seats: Seats, idle: Idle) -> Iterator[ProcessPlan]:
    spinners = _spinners(seats) if idle == "spinner" else ()
    for number, companion in enumerate((*spec.companions, *spinners)):
        spins = companion.kind == "spinner"
        role = "spinner" if spins else "hog"
        agent = AgentPlan(f"{companion.kind}{number}", role, companion.node, number)
        why = "keeps the CPU awake" if spins else "burns CPU"
        why += f" next to node {companion.node}, core {companion.core}"
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
    spec: ClusterSpec, seats: Seats, topology: Topology, realtime: tuple[bool, str]
) -> Iterator[str]:
    used = {*seats.core_cpus.values(), *seats.nic_cpus}
    if len(topology.cpus) == 1:
        yield "degraded: everything shares one CPU, so nothing runs in parallel"
    elif seats.oversubscribed:
        cpus = format_core_list(seats.core_cpus.values())
        yield (
            f"oversubscribed: {len(seats.cores)} emulated cores on CPUs {cpus}; "
            "message and packet counts hold, interrupt counts depend on the scheduler, and times "
            "cannot be measured"
        )
    elif guests := list(seats.guests()):
        verb = "preempt" if realtime[0] and spec.realtime else "take turns with"
        yield (
            f"fewer CPUs than cores: interrupts of {places_words(guests)} {verb} other "
            "processes there"
        )
    if seats.otherwise:
        yield f"distance {spec.distance} needs another placement: {seats.otherwise}"
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
        yield f"CPUs {format_core_list(crowded)} share physical cores (SMT) and slow each other"


def _wrapped(head: str, text: str) -> list[str]:
    """`text` behind `head`, in lines that a terminal shows whole."""
    import textwrap  # few runs print their map

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


# -- How far cache lines travel between the cores of a host.


def lines_of(spec: ClusterSpec, placement: Placement, node: int) -> list[list[int]]:
    """The lines of a node, as Prices have them; empty if nothing that moves by them costs
    anything.
    """
    if not any(getattr(spec.model, name) for name in (*LINES, "tx_handover_ns")):
        return []
    places = {far: 1 + LINES.index(name) for far, name in LINE_COSTS.items()}
    cores = range(spec.host.cores)
    return [
        [places.get(placement.distance((node, to), (node, source)), 0) for source in cores]
        for to in cores
    ]
