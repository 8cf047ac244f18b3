"""Run in a process of its own with count_calls preloaded: what a stream of messages allocates.

Prints a JSON list: for each number of messages given on the command line the allocations and
the takings of the GIL while a rank received them. PYTHONMALLOC=malloc makes objects count too.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import threading

from shrimpmx.cluster.runner import Runner
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.nic.generator import TrafficGenerator
from shrimpmx.params import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.stream import receive_stream
from support.virtual_cluster import NicCluster

SIZE_BYTES = 128


def counted() -> tuple[int, int]:
    process = ctypes.CDLL(None)
    return tuple(
        ctypes.c_long.in_dll(process, name).value for name in ("allocations", "gil_takings")
    )


def receive(coalescing: str, wait: str, counts: list[int]) -> list[tuple[int, int]]:
    """Allocations and takings of the GIL for each stream of `counts` messages, one by one."""
    parameters = NicParameters(coalescing=coalescing, rx_usecs=20)
    cluster = NicCluster(parameters, clock="monotonic", rx_ring_entries=1024)
    generator = TrafficGenerator(cluster.nodes, 1, parameters, size=SIZE_BYTES, window=256)
    agents: list[Agent] = [generator, cluster.nics[0], cluster.interrupts[0]]
    host = Waiter(cluster.control, 0, make_strategy("spin-block", 1000))
    driver = threading.Thread(target=Runner(agents, host).run)
    waiter = Waiter(cluster.control, 1, make_strategy(wait, 1000))
    rank: Endpoint = cluster.open(0, waiter=waiter)
    driver.start()
    try:
        with waiter:
            rank.connect(1, 0)
            gc.disable()
            found = []
            for count in counts:
                before = counted()
                receive_stream(rank, SIZE_BYTES, count, 64, verify=False)
                found.append(tuple(b - a for a, b in zip(before, counted(), strict=True)))
            return found
    finally:
        cluster.control.set_stop("finish")
        driver.join()


if __name__ == "__main__":
    print(json.dumps(receive(sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3:]])))
