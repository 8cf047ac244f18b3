"""The benchmarks of several rx queues: `steering` and `queues`, for `shrimpmx bench`.

`steering.endpoint`, `.rss` and `.arfs` are what the NIC takes per packet to choose a queue.
`queues.receive_path_128B` is the receive path of one queue that is alone, and of one beside
seven others with a core and an idle rank each.
"""

from __future__ import annotations

from functools import partial

from shrimpmx.bench.benchmark import Benchmark, Sample
from shrimpmx.bench.interrupt_costs import per_packet
from shrimpmx.bench.receive_path import receive_path
from shrimpmx.cluster.engine.engine import Engine

STEERINGS = ("endpoint", "rss", "arfs")
QUEUES = (1, 8)


def queue_benchmarks(engine: Engine) -> list[Benchmark]:
    """Every benchmark of several rx queues."""
    found = [
        Benchmark(f"steering.{kind}", "ns", partial(_steering, kind), cpus=1) for kind in STEERINGS
    ]
    for queues in QUEUES:
        one = partial(receive_path, engine, coalescing="stream", wait="block", queues=queues)
        found.append(Benchmark(f"queues.receive_path_128B[{queues}]", "msg/s", one))
    return found


def _steering(kind: str, seconds: float) -> Sample:
    return Sample(per_packet(kind, seconds), "the NIC's CPU")
