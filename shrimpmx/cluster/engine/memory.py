"""A run's shared memory: the control segment, a segment per node, and the trace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.native.segment import RunIdentity, Segment
from shrimpmx.native.trace import SEGMENT_TRACE, Trace
from shrimpmx.settings.parameters import HostParameters
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NO_RUNNER, NodeLayout
from shrimpmx.shared.node import Node

SEGMENT_CONTROL, SEGMENT_NODE, SEGMENT_HEAP = 1, 2, 4


class RunMemory:
    """Every segment of a run. Made by the supervisor; processes inherit the mappings by fork."""

    def __init__(self, spec: ClusterSpec, placement: Placement, identity: RunIdentity) -> None:
        self.segments: list[Segment] = []
        self.nodes: list[Node] = []
        self.trace: Trace | None = None
        self.identity = identity
        try:
            self._create(spec, placement)
        except BaseException:
            self.close()
            raise

    def _create(self, spec: ClusterSpec, placement: Placement) -> None:
        runners = [process.name for process in placement.processes]
        agents = [(agent.name, agent.kind, index) for agent, index in placement.agents()]
        size_bytes = Control.size_bytes(len(runners), len(agents))
        self.control = Control.create(
            self._segment("control", size_bytes, SEGMENT_CONTROL),
            runners,
            agents,
            nodes_count=spec.nodes,
            clock=spec.clock,
        )
        for index in range(spec.nodes):
            layout = node_layout(spec, placement, index)
            segment = self._segment(f"node{index}", Node.size_bytes(layout), SEGMENT_NODE)
            heap = self._heap(layout) if index < spec.full_nodes else None
            self.nodes.append(Node.create(segment, self.control, layout, heap))
        if spec.trace_entries:
            size_bytes = Trace.size_bytes(len(agents), spec.trace_entries)
            segment = self._segment("trace", size_bytes, SEGMENT_TRACE)
            self.trace = Trace.create(segment, len(agents), spec.trace_entries)

    def _segment(self, what: str, size_bytes: int, kind: int) -> Segment:
        segment = Segment.create(self.identity, what, size_bytes, kind)
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

    def populate(self, nodes: Iterable[int]) -> None:
        """Fault in, for the calling process, the control segment and those of `nodes`."""
        self.control.segment.populate()
        for index in set(nodes):
            self.nodes[index].segment.populate()

    def close(self) -> None:
        """Remove and unmap every segment; nothing may use the nodes or the control after."""
        self.nodes.clear()
        self.trace = None
        for segment in self.segments:
            with contextlib.suppress(OSError):
                segment.unlink()
            segment.close()


def node_layout(spec: ClusterSpec, placement: Placement, index: int) -> NodeLayout:
    """The layout of node `index`, its cores and NIC bound to the processes of `placement`."""
    agents = list(placement.agents())
    places = {agent.name: (number, runner) for number, (agent, runner) in enumerate(agents)}
    # A generator's node has one core and one endpoint, which only its NIC looks at.
    played = index >= spec.full_nodes
    host = HostParameters(event_ring_entries=16) if played else spec.host
    nic_agent, nic_runner = places[f"node{index}.generator" if played else f"node{index}.nic"]
    if played:
        cores = [(nic_agent, nic_runner)]
    elif spec.nic.nic_kind == "mx":
        # The NIC is the handler of every core; its counters have a record of their own.
        cores = [places[f"node{index}.mx"]] * host.cores
    else:
        cores = [places[f"node{index}.irq{core}"] for core in range(host.cores)]
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
        **({"vectors": 1, "steering": "endpoint"} if played else {}),
    )
