"""What this machine's own work costs, for points that emulate a platform."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import partial
from typing import Any

import numpy as np

from shrimpmx.bench import calibration
from shrimpmx.bench.calibration import metric
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.experiment.clusters import cluster_spec, needed_costs
from shrimpmx.experiment.platform import Costs
from shrimpmx.experiment.point import Point, PointParameters
from shrimpmx.results.environment import unavailable
from shrimpmx.results.metrics import total

# Messages that a handler's cost is taken over: many polls, well below a second.
HANDLER_MESSAGES = 100_000
HANDLER, HANDLERS_PROCESS = "handler_per_packet", "node0.irq0"


def machine_costs(points: Iterable[Point], engine: Engine) -> Costs | None:
    """The costs that points need; None if they need none."""
    return costs_named(needed_costs(points), engine)


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
            return {**unavailable("the kernel gave no CPU time of it"), "meaning": meaning}
        costs.append(used_ns / packets)
    return metric(np.array(costs), meaning)
