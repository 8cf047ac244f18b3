"""What this machine's own work costs, for points that emulate a platform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np

from shrimpmx.bench import calibration
from shrimpmx.bench.calibration import metric
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.experiment.clusters import cluster_spec, needed_costs
from shrimpmx.experiment.engines import check_real_hosts
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.point import Point, PointParameters
from shrimpmx.results.environment import unavailable
from shrimpmx.results.metrics import total

# Messages that a handler's cost is taken over: many polls, well below a second.
HANDLER_MESSAGES = 100_000
HANDLER, HANDLERS_PROCESS = "handler_per_packet", "node0.irq0"


def costs_for(
    points: Iterable[Point], kept: Mapping[str, float] | None, engine: Engine
) -> Costs | None:
    """The costs to emulate platforms with: those that an interrupted result has `kept`, ns by
    name, else this machine's, or of emulated hosts none beside the platform's; None if no point
    emulates a platform.
    """
    if not engine.is_real:
        return {name: {"median": 0.0} for name in needed_costs(points)} or None
    points = list(points)
    check_real_hosts(points)
    if kept is None:
        return costs_named(needed_costs(points), engine)
    return {name: {"median": ns} for name, ns in kept.items()}


def costs_to_keep(costs: Costs | None) -> dict[str, Any]:
    """What the head of a result says of the costs: {"costs": {name: median, ns}}, or nothing."""
    kept = {name: each["median"] for name, each in (costs or {}).items() if each.get("median")}
    return {"costs": kept} if kept else {}


def costs_named(used: Set[str], engine: Engine) -> Costs | None:
    """This machine's costs of these names; None without names.

    They come from the calibration; this takes one if there is none.
    """
    if not used:
        return None
    known = calibration.for_platforms(partial(path_costs, engine))
    return {name: known[name] for name in sorted(used & known.keys())}


def path_costs(engine: Engine, seconds: float) -> dict[str, dict[str, Any]]:
    """What the receive path takes of the CPU in a stream of 128 B messages: that of the interrupt
    handler per packet, ns, by its name in the calibration.

    One node under test, the traffic generator as its peer, no link limit, Stream coalescing.
    """
    parameters = PointParameters.model_validate(
        {
            "cluster": {"mode": "generator", "deadline_s": 20 + 100 * seconds},
            "workload": {"kind": "stream", "size_bytes": 128, "iterations": HANDLER_MESSAGES},
            "nic": {"coalescing": "stream", "link_bits_per_second": 0},
            "wait": {"strategy": "block"},
        }
    )
    results = [engine.run(cluster_spec(parameters, seed)) for seed in range(1, 6)]
    meaning = "CPU time of the receive handler per packet, in a stream"
    return {HANDLER: _per_packet(results, meaning)}


def _per_packet(results: Sequence[ClusterResult], meaning: str) -> dict[str, Any]:
    """What the handler has used of its CPU for each packet."""
    costs = []
    for result in results:
        packets = total({"irq": result.counters["node0.irq0"]}, "recv_packets")
        used_ns = result.usage.get(HANDLERS_PROCESS, {}).get("task_clock_ns")
        if not packets or used_ns is None:
            return {**unavailable("the kernel reported no CPU time of it"), "meaning": meaning}
        costs.append(used_ns / packets)
    return metric(np.array(costs), meaning)
