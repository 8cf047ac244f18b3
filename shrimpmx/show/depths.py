"""Frames in host memory that no poll has taken yet, by time, from a trace."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

from shrimpmx.cluster.engine.trace_text import BACKLOG, queue_of
from shrimpmx.show.timeline import Timeline

Depths = Sequence[tuple[int, int]]


def depths_of(timeline: Timeline) -> dict[tuple[int, int], Depths]:
    """By node and rx queue: pairs of time, ns, and number of frames from then on; only queues that
    were polled. The number at the beginning of the trace is such that none is below zero.

    What other cores' handlers hand on is taken twice, by the poll of the queue and by that of the
    backlog, which does not count here.
    """
    changes: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    polled: set[tuple[int, int]] = set()
    for record in timeline.records:
        node = timeline.node_of(record.agent)
        if record.kind == "dma_complete":
            changes[node, queue_of(record.b)].append((record.time_ns, 1))
        elif record.kind == "poll_end" and record.a != BACKLOG:
            polled.add((node, record.a))
            changes[node, record.a].append((record.time_ns, -record.b))
    return {place: _summed(changes[place]) for place in sorted(polled)}


def _summed(changes: Depths) -> Depths:
    depths = list(itertools.accumulate(change for _, change in changes))
    least = min(0, *depths)
    return [(time_ns, depth - least) for (time_ns, _), depth in zip(changes, depths, strict=True)]
