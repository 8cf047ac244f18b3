"""Control and node segments without a name, for this process and its forks."""

from __future__ import annotations

from collections.abc import Sequence

from shrimpmx.native.segment import SEGMENT_CONTROL, SEGMENT_HEAP, SEGMENT_NODE, Segment
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node


def private_control(
    runners: Sequence[str],
    agents: Sequence[tuple[str, str, int]] = (),
    nodes: int = 1,
    clock: str = "tsc",
) -> Control:
    """A control segment for these processes and agents (name, kind and process of each)."""
    size_bytes = Control.size_bytes(len(runners), len(agents))
    segment = Segment.anonymous(size_bytes, SEGMENT_CONTROL)
    return Control.create(segment, list(runners), list(agents), nodes, clock)


def private_node(control: Control, layout: NodeLayout) -> Node:
    """A node, and its heap if the layout has one."""
    segment = Segment.anonymous(Node.size_bytes(layout), SEGMENT_NODE)
    heap = Segment.anonymous(layout.heap_segment_bytes, SEGMENT_HEAP) if layout.heap_bytes else None
    return Node.create(segment, control, layout, heap)
