"""Clusters whose simulation several processes share, and what must be equal then."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any
from unittest import mock

import numpy as np

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import CaptureRoom, ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.native.trace import CapturedFrame
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation import engine
from support.goldens import MODEL

STRATEGIES = ("spin", "sched", "block", "notify", "spin-block", "spin-notify")
COALESCING = ("disabled", "timeout", "open-mx", "stream")


def draw_grouped(seed: int) -> ClusterSpec:
    """A cluster of several nodes: pairs of ranks on different ones, drawn from a seed."""
    draw = random.Random(seed)
    nodes = draw.choice((4, 5, 6))
    faults = LinkFaults()
    if draw.random() < 0.4:
        rate = draw.choice((0.01, 0.03))
        faults = LinkFaults(
            loss=rate, duplicate=rate, reorder=rate, corrupt=draw.choice((0.0, rate)), seed=seed
        )
    return ClusterSpec(
        ranks=_pairs(draw, nodes),
        nodes=nodes,
        nic=NicParameters.model_validate(
            {
                "coalescing": draw.choice(COALESCING),
                "network": "fat-tree",
                "leaf_nodes": 2,
                "spine_switches": draw.choice((1, 3)),
                "link_delay_ns": draw.choice((100, 500, 5000)),
                "switch_when_full": draw.choice(("drop", "pause")),
                "switch_buffer_packets": draw.choice((3, 256)),
            }
        ),
        host=HostParameters(cores=2, interrupt_time_ns=draw.choice((0, 4000))),
        wait=WaitParameters(strategy=draw.choice(STRATEGIES)),
        model=MODEL.model_copy(update={"cost_jitter": (0.7, 1.0, 1.4)}),
        companions=(CompanionSpec(0),) if draw.random() < 0.2 else (),
        link_faults=faults,
        seed=seed,
        trace_entries=256,
        capture=CaptureRoom(end_bytes=1 << 14),
        deadline_s=300.0,
    )


def _pairs(draw: random.Random, nodes: int) -> tuple[RankSpec, ...]:
    """Ranks 2n and 2n + 1 are a pair; each node has two cores."""
    places = [(node, core) for core in (0, 1) for node in range(nodes)]
    ranks: list[RankSpec] = []
    for _ in range(draw.randint(1, nodes)):
        workload = draw.choice(("pingpong", "stream"))
        options = {
            "iterations": draw.choice((3, 10, 30)),
            "warmup": draw.choice((0, 2)),
            "size_bytes": draw.choice((0, 100, 5000, 40_000)),
        }
        for _ in range(2):
            node, core = places.pop(draw.randrange(len(places)))
            ranks.append(RankSpec(node, workload, core, options))
    return tuple(ranks)


def figures_of(result: ClusterResult) -> dict[str, Any]:
    """All that a run gives back, in its order, but for this machine's times."""
    return {name: _plain(value) for name, value in vars(result).items() if name != "placement"}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return [(key, _plain(each)) for key, each in value.items()]
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, CapturedFrame):
        return _plain(tuple(value._replace(data=b"")))  # a session's number is this machine's
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def run_grouped(spec: ClusterSpec, groups: int) -> tuple[dict[str, Any], list[str]]:
    """The figures of a run in so many groups, and why one process had to simulate it, if so."""
    alone: list[str] = []
    with mock.patch.object(engine.LOGGER, "info", lambda words, *rest: alone.append(words % rest)):
        result = engine.Simulated(groups=groups).run(spec)
    return figures_of(result), [words for words in alone if "by one process" in words]
