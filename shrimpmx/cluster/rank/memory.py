"""A run's segments as one of its ranks maps them, by their names."""

from __future__ import annotations

from collections.abc import Iterable

from shrimpmx.cluster.nics.plan import RanksPlan, plan_of
from shrimpmx.native.segment import (
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
from shrimpmx.settings.strategies import COALESCING
from shrimpmx.shared.control import Control
from shrimpmx.shared.node import Node


class RankMemory:
    """The control segment of a run, its plan, and the nodes that a rank looks at.

    SegmentError if the run has ended, or another version of this package made it.
    """

    def __init__(self, run: RunIdentity) -> None:
        self.run = run
        self._segments: list[Segment] = []
        self.control = Control.attach(self._attach("control", SEGMENT_CONTROL))
        text = bytes(self._attach("plan", SEGMENT_PLAN).payload())
        self.plan: RanksPlan = plan_of(text.rstrip(b"\0"))

    def map_nodes(self, indexes: Iterable[int]) -> dict[int, Node]:
        """Nodes with their ranks' memory, by index."""
        return {
            index: Node.attach(
                self._attach(f"node{index}", SEGMENT_NODE),
                self.control,
                self._attach(f"heap{index}", SEGMENT_HEAP),
            )
            for index in indexes
        }

    def map_trace(self) -> Trace | None:
        """The run's trace; None if it is not traced."""
        return Trace.attach(self._attach("trace", SEGMENT_TRACE)) if self.plan.traced else None

    def map_capture(self) -> Capture | None:
        """What keeps the run's frames; None if it is not captured."""
        captured = self.plan.captured
        return Capture.attach(self._attach("capture", SEGMENT_CAPTURE)) if captured else None

    def populate(self, node: Node, endpoint: int) -> None:
        """Fault in what the rank of that `endpoint` touches of the control segment and of its
        `node`, so that no page faults later. On a virtual clock a fault takes no time, and many
        nodes have no room for what they do not use.
        """
        if self.control.is_virtual:
            return
        self.control.populate()
        slots = any(rank.spare and rank.node == node.index for rank in self.plan.ranks)
        acts = self.plan.lends or COALESCING[self.plan.nic.coalescing].ranks_poll
        if acts and not slots:
            node.populate()  # it acts for the NIC, or polls its rings
        else:
            alone = self.plan.nodes == 1 and not self.plan.mx.disable_shared
            sends_frames = acts or not alone or self.plan.mx.disable_self
            node.populate_rank(endpoint, sends_frames=sends_frames)

    def close(self) -> None:
        """Unmap what nothing uses any more."""
        for segment in self._segments:
            segment.close()

    def _attach(self, what: str, kind: int) -> Segment:
        segment = Segment.attach(self.run.segment_name(what), kind)
        self._segments.append(segment)
        return segment
