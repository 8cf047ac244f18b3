"""The benchmarks of several rx queues: `steering` and `queues`, for `shrimpmx bench`.

`steering.endpoint`, `.rss` and `.arfs` are what the NIC takes per packet to choose a queue.
`queues.receive_path_128B` is the receive path of one queue that is alone, and of one beside
seven others with a core and an idle rank each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shrimpmx.bench.receive_path import receive_path
from shrimpmx.bench.steering_costs import per_packet
from shrimpmx.cluster.engine.engine import Engine

Figures = npt.NDArray[np.float64]

STEERINGS = ("endpoint", "rss", "arfs")
QUEUES = (1, 8)


@dataclass(frozen=True)
class QueueBenchmark:
    """A benchmark: `measure(seconds)` takes one of its `turns`, in `unit`, with `cpus` CPUs, and
    says what bound it.
    """

    name: str
    unit: str
    measure: Callable[[float], tuple[Figures, str]]
    turns: int
    cpus: int


def queue_benchmarks(engine: Engine) -> list[QueueBenchmark]:
    """Every benchmark of several rx queues."""
    found = [QueueBenchmark(f"steering.{kind}", "ns", _steering(kind), 5, 1) for kind in STEERINGS]
    for queues in QUEUES:
        name = f"queues.receive_path_128B[{queues}]"
        found.append(QueueBenchmark(name, "msg/s", _receive_path(engine, queues), 5, 2))
    return found


def _steering(kind: str) -> Callable[[float], tuple[Figures, str]]:
    return lambda seconds: (per_packet(kind, seconds), "the NIC's CPU")


def _receive_path(engine: Engine, queues: int) -> Callable[[float], tuple[Figures, str]]:
    def measure(seconds: float) -> tuple[Figures, str]:
        found = receive_path(engine, seconds, "stream", "block", queues=queues)
        return np.array([found.messages_per_second]), found.bound_by

    return measure
