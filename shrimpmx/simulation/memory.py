"""The memory of a simulated run: of this process alone."""

from __future__ import annotations

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.native.segment import SEGMENT_HEAP, Segment
from shrimpmx.shared.geometry import NodeLayout


class PrivateMemory(RunMemory):
    """The segments of a run in this process alone, with a virtual clock."""

    def _clock(self, _spec: ClusterSpec) -> str:
        return "virtual"

    def _segment(self, _what: str, size_bytes: int, kind: int) -> Segment:
        return self._kept(Segment.anonymous(size_bytes, kind))

    def _heap(self, layout: NodeLayout) -> Segment:
        return self._kept(Segment.anonymous(layout.heap_segment_bytes, SEGMENT_HEAP))

    def _kept(self, segment: Segment) -> Segment:
        self.segments.append(segment)
        return segment
