"""The memory of a simulated run."""

from __future__ import annotations

from pathlib import Path

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.nics.plan import check_options
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.link.ends import Ingress
from shrimpmx.link.line import EmulatedLine
from shrimpmx.native.segment import SEGMENT_HEAP, Segment
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.simulation.network import Network


class SimulatedMemory(RunMemory):
    """The segments of a run with a virtual clock, which processes of its ranks may map; `network`:
    the switches between its nodes, or None.
    """

    network: Network | None = None
    reuses_slots = True

    def _create(self, spec: ClusterSpec, placement: Placement, directory: Path) -> None:
        super()._create(spec, placement, directory)
        names = spec.nic.switches(spec.nodes)
        if names:
            numbers = [placement.records[name][0] for name in names]
            self.network = Network(spec, self.control, self.nodes, numbers)

    def links(self, spec: ClusterSpec, node: int) -> tuple[EmulatedLine, Ingress]:
        return self.network.links(node) if self.network else super().links(spec, node)

    def switch(self, number: int) -> Agent:
        assert self.network is not None
        return self.network.switches[number]

    def close(self) -> None:
        self.network = None
        super().close()

    def _clock(self, _spec: ClusterSpec) -> str:
        return "virtual"


class PrivateMemory(SimulatedMemory):
    """The same in this process alone."""

    def _segment(self, _what: str, size_bytes: int, kind: int, _reserve: bool = True) -> Segment:
        segment = Segment.anonymous(size_bytes, kind, self.identity, private=True)
        self.segments.append(segment)
        return segment

    def _heap(self, layout: NodeLayout) -> Segment:
        return self._segment("heap", layout.heap_segment_bytes, SEGMENT_HEAP)

    def _write_plan(self, spec: ClusterSpec, placement: Placement, directory: Path) -> None:
        """Ranks of this process are given their plan; only their options are checked."""
        for number, rank in enumerate(spec.ranks):
            check_options(f"rank{number}", rank.options)
