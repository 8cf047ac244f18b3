"""A run's shared memory: the control segment, a segment per node, trace and capture."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from shrimpmx.cluster.nics.plan import RankPlan, RanksPlan, plan_bytes
from shrimpmx.cluster.place.placement import AgentPlan, Placement, lines_of
from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.costs.table import COST_JITTER, MODEL_COSTS
from shrimpmx.errors import AgentError
from shrimpmx.host.raw import rouse_reader
from shrimpmx.link.ends import Ingress
from shrimpmx.link.line import EmulatedLine
from shrimpmx.link.links import links_of
from shrimpmx.native.records import dataclass
from shrimpmx.native.segment import (
    HEADER_BYTES,
    SEGMENT_CAPTURE,
    SEGMENT_CONTROL,
    SEGMENT_HEAP,
    SEGMENT_NODE,
    SEGMENT_PLAN,
    SEGMENT_TRACE,
    RunIdentity,
    Segment,
)
from shrimpmx.native.trace import Capture, Trace
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.user_code import OwnClass
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node
from shrimpmx.shared.sizes import NO_RUNNER


class RunMemory:
    """Every segment of a run. The supervisor makes them; the processes of agents inherit the
    mappings, ranks map them by name. `directory` is where ranks leave their samples. `position`: of
    the run in its sweep, in words for onlookers.
    """

    # Whether its rings reuse slots: see NodeLayout.
    reuses_slots: ClassVar[bool] = False

    def __init__(
        self,
        spec: ClusterSpec,
        placement: Placement,
        identity: RunIdentity,
        directory: Path,
        position: str = "",
    ) -> None:
        self.segments: list[Segment] = []
        self.nodes: list[Node] = []
        self._with_slots: set[int] = set()
        self.trace: Trace | None = None
        self.capture: Capture | None = None
        self.link_ends, self._position = spec.link_ends, position
        self.identity = identity
        try:
            self._create(spec, placement, directory)
        except BaseException:
            self.close()
            raise

    def _create(self, spec: ClusterSpec, placement: Placement, directory: Path) -> None:
        runners = [process.name for process in placement.processes]
        agents = [(agent.name, agent.kind, index) for agent, index in placement.agents()]
        size_bytes = Control.size_bytes(len(runners), len(agents))
        self.control = Control.create(
            self._segment("control", size_bytes, SEGMENT_CONTROL),
            runners,
            agents,
            nodes_count=spec.nodes,
            clock=self._clock(spec),
        )
        self._made = self._records(len(runners), len(agents))
        with_spares = {rank.node for rank in spec.ranks if rank.spare}
        for index in range(spec.nodes):
            layout = node_layout(spec, placement, index)
            layout.reuses_slots = self.reuses_slots
            # Slots take no memory before ranks come into them, which make sure of theirs.
            if index in with_spares:
                self._with_slots.add(index)
            size_bytes, reserve = Node.size_bytes(layout), index not in self._with_slots
            segment = self._segment(f"node{index}", size_bytes, SEGMENT_NODE, reserve)
            heap = self._heap(layout) if index < spec.full_nodes else None
            self.nodes.append(Node.create(segment, self.control, layout, heap))
        self._write_plan(spec, placement, directory)
        if spec.trace_entries:
            size_bytes = Trace.size_bytes(len(agents), spec.trace_entries)
            segment = self._segment("trace", size_bytes, SEGMENT_TRACE)
            self.trace = Trace.create(segment, len(agents), spec.trace_entries)
        if spec.capture:
            snap_bytes = min(spec.capture.snap_bytes or spec.nic.mtu, spec.nic.mtu)
            sizes = (len(self.link_ends), spec.capture.end_bytes, snap_bytes)
            segment = self._segment("capture", Capture.size_bytes(*sizes), SEGMENT_CAPTURE)
            self.capture = Capture.create(segment, *sizes)

    def check_records(self) -> None:
        """AgentError if a program of the run has overwritten which processes and agents there are:
        results and sentences would be of others.
        """
        counts = self.control.runners_count, self.control.agents_count
        made = len(self._made[0]), len(self._made[1])
        if counts != made or self._records(*made) != self._made:
            raise AgentError(
                "the run's memory is damaged: a program of the run has changed the records of "
                "processes or agents"
            )

    def _records(self, runners: int, agents: int) -> tuple[list[str], list[dict[str, Any]]]:
        """What stays of the records of processes and agents."""
        control = self.control
        return (
            [control.runner_info(number)["name"] for number in range(runners)],
            [control.agent_info(number) for number in range(agents)],
        )

    def _write_plan(self, spec: ClusterSpec, placement: Placement, directory: Path) -> None:
        data = plan_bytes(ranks_plan(spec, placement, directory, self._position))
        segment = self._segment("plan", HEADER_BYTES + len(data), SEGMENT_PLAN)
        segment.payload()[: len(data)] = data

    def _clock(self, spec: ClusterSpec) -> str:
        return spec.clock

    def _segment(self, what: str, size_bytes: int, kind: int, reserve: bool = True) -> Segment:
        segment = Segment.create(self.identity, what, size_bytes, kind, reserve=reserve)
        self.segments.append(segment)
        return segment

    def _heap(self, layout: NodeLayout) -> Segment:
        """The memory of a node's ranks: address space only, until they use it."""
        segment = Segment.create(
            self.identity,
            f"heap{layout.index}",
            layout.heap_segment_bytes,
            SEGMENT_HEAP,
            reserve=False,
        )
        self.segments.append(segment)
        return segment

    def links(self, spec: ClusterSpec, node: int) -> tuple[EmulatedLine, Ingress]:
        """The ends of a node's links."""
        return links_of(spec.link, self.nodes, node, spec.nic, spec.link_faults)

    def switch(self, number: int) -> Agent:
        """The switch of that number, an agent."""
        raise ValueError(f"real processes have no switch {number}")

    def populate(self, agents: Collection[AgentPlan], role: str, lends: bool) -> None:
        """Fault in, for the calling process, what its `agents` touch of the control segment and of
        their nodes, if these have no slots for spawned ranks; NICs and generators with all links
        that begin or end there. `lends`: others than NICs act for these.
        """
        self.control.populate()
        if len(self.nodes) == 1:  # its ranks need no NIC
            return
        nodes = {agent.node for agent in agents}
        if role == "irq" and not lends:
            for agent in agents:
                if agent.node not in self._with_slots:
                    self.nodes[agent.node].populate_handler(agent.number)
            return
        for index in nodes - self._with_slots:
            self.nodes[index].populate()
        if role not in ("nic", "generator"):
            return
        for source, target in itertools.product(range(len(self.nodes)), repeat=2):
            if source in nodes or target in nodes:
                self.nodes[target].populate_link(source)

    def set_stop(self, state: str) -> None:
        """Tell every process to end ("finish") or to give up ("abort"); sleepers are woken."""
        self.control.set_stop(state)
        for node in self.nodes:
            rouse_reader(node)

    def close(self) -> None:
        """Remove and unmap every segment; nothing may use the nodes or the control after."""
        self.nodes.clear()
        self.trace = self.capture = None
        for segment in self.segments:
            with contextlib.suppress(OSError):
                segment.unlink()
            segment.close()


def node_layout(spec: ClusterSpec, placement: Placement, index: int) -> NodeLayout:
    """The layout of node `index`, its cores and NIC bound to the processes of `placement`."""
    places = placement.records
    # A generator's node has one core and one endpoint, which only its NIC looks at.
    played = index >= spec.full_nodes
    host = HostParameters(event_ring_entries=16) if played else spec.host
    nic_agent, nic_runner = places[f"node{index}.generator" if played else f"node{index}.nic"]
    if played:
        cores = [(nic_agent, nic_runner)]
    else:
        cores = [places[spec.kind.handler_name(index, core)] for core in range(host.cores)]
    # None if copies are not offloaded, and for a generator's node.
    dma_agent, dma_runner = places.get(f"node{index}.dma", (0, NO_RUNNER))
    return NodeLayout.from_parameters(
        spec.nic,
        host,
        spec.mx,
        index=index,
        nodes_count=spec.nodes,
        endpoints=spec.endpoints_on(index),
        nic_agent=nic_agent,
        nic_runner=nic_runner,
        dma_agent=dma_agent,
        dma_runner=dma_runner,
        core_agents=[agent for agent, _ in cores],
        core_runners=[runner for _, runner in cores],
        vmmc=spec.kind.vmmc,
        **({"rx_queues": 1, "steering": "endpoint"} if played else {}),
    )


# -- The plan that a run's ranks read, from its spec and its placement.


def ranks_plan(
    spec: ClusterSpec, placement: Placement, directory: Path, position: str = ""
) -> RanksPlan:
    """What the ranks of `spec` are told, and onlookers: the run's `position` in a sweep."""
    lines = [lines_of(spec, placement, node) for node in range(spec.full_nodes)]
    return RanksPlan(
        ranks=tuple(rank_plans(spec, placement)),
        nodes=spec.nodes,
        cpus=tuple(
            tuple(placement.core_cpus[node, core] for core in range(spec.host.cores))
            for node in range(spec.full_nodes)
        ),
        nic=spec.nic,
        host=spec.host,
        mx=spec.mx,
        directory=str(directory),
        deadline_s=spec.deadline_s,
        seed=spec.seed,
        traced=spec.trace_entries > 0,
        captured=spec.capture is not None,
        position=position,
        link=spec.link,
        lends=placement.lends,
        generated=spec.mode == "generator",
        hardware_counters=spec.hardware_counters,
        survive=spec.survive,
        model={
            COST_JITTER: list(spec.model.cost_jitter),
            **{name: vars(spec.model)[name] for name in MODEL_COSTS},
        },
        lines=lines if any(lines) else [],
        keeps_copies=spec.model.keeps_copies,
        compute=spec.compute,
        compute_factor=spec.compute_factor,
        own_waits={
            name: vars(own) for name, own in spec.waits.items() if isinstance(own, OwnClass)
        },
    )


def rank_plans(spec: ClusterSpec, placement: Placement) -> list[RankPlan]:
    """A plan for each rank."""
    plans = []
    for number, rank in enumerate(spec.ranks):
        name = f"rank{number}"
        agent, runner = placement.records[name]
        plans.append(
            RankPlan(
                number=number,
                name=name,
                runner=runner,
                agent=agent,
                node=rank.node,
                endpoint=spec.endpoints[number],
                core=rank.core,
                cpu=placement.processes[runner].cpu,
                home_cores=spec.home_cores(number),
                workload=rank.workload,
                wait=placement.processes[runner].wait,
                options=rank.options,
                niceness=rank.niceness,
                spare=rank.spare,
            )
        )
    return plans


def program_processes(spec: ClusterSpec, placement: Placement) -> dict[int, str]:
    """The names of the processes that become programs, by their index."""
    return {
        index: plan.name
        for index, plan in enumerate(placement.processes)
        if plan.role == "rank" and spec.ranks[plan.agents[0].number].command
    }


# -- What the supervisor of a run and the processes of its agents share.


@dataclass
class RunParts:
    """A run's plan, its memory, its channel and its scratch directory."""

    spec: ClusterSpec
    placement: Placement
    memory: RunMemory
    channel: ControlChannel
    directory: Path
    supervisor_pid: int
