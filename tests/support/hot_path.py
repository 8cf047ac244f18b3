"""Run in a process of its own with count_calls preloaded: what messages allocate on their way.

Arguments: "stream" or a size in bytes for a ping-pong, coalescing, waiting, numbers of messages.
Prints a JSON list: for each number the allocations and the takings of the GIL that it took.
PYTHONMALLOC=malloc makes objects count too.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import threading

from shrimpmx.cluster.engine.runner import Runner
from shrimpmx.link.rings import ring_links
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.messages import pingpong, receive_stream
from support.agents import make_generator
from support.virtual_cluster import NicCluster

SIZE_BYTES = 128


def since(before: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(before, counted(), strict=True))


def counted() -> tuple[int, ...]:
    process = ctypes.CDLL(None)
    return tuple(
        ctypes.c_long.in_dll(process, name).value for name in ("allocations", "gil_takings")
    )


class Threads:
    """A cluster whose NICs and handlers run on a thread of their own, on the real clock."""

    def __init__(self, coalescing: str, wait: str, generated: bool) -> None:
        self.parameters = NicParameters(coalescing=coalescing, rx_usecs=20)
        self.wait = wait
        self.cluster = NicCluster(self.parameters, clock="monotonic", rx_ring_entries=1024)
        agents: list[Agent] = [*self.cluster.nics, *self.cluster.interrupts]
        if generated:
            agents[1] = make_generator(
                self.cluster.nodes[1],
                *ring_links(self.cluster.nodes, 1, self.parameters),
                size=SIZE_BYTES,
                window=256,
            )
        host = Waiter(self.cluster.control, 0, make_strategy("spin-block", 1000))
        self.driver = threading.Thread(target=Runner(agents, host).run)
        gc.disable()

    def rank(self, node: int) -> Endpoint:
        waiter = Waiter(self.cluster.control, 1 + node, make_strategy(self.wait, 1000))
        waiter.begin()
        return self.cluster.open(node, waiter=waiter)

    def __enter__(self) -> Threads:
        self.driver.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.cluster.control.set_stop("finish")
        self.driver.join()


def streams(coalescing: str, wait: str, counts: list[int]) -> list[tuple[int, ...]]:
    """What receiving each of the streams of `counts` messages took, one stream after another."""
    with Threads(coalescing, wait, generated=True) as threads:
        rank = threads.rank(0)
        rank.connect(1, 0)
        found = []
        for count in counts:
            before = counted()
            receive_stream(rank, SIZE_BYTES, count, 64, verify=False)
            found.append(since(before))
        return found


def pingpongs(
    coalescing: str, wait: str, counts: list[int], size_bytes: int
) -> list[tuple[int, ...]]:
    """The same for ping-pongs of `counts` round trips, both ranks counted."""
    with Threads(coalescing, wait, generated=False) as threads:
        ranks = [threads.rank(0), threads.rank(1)]
        answers = threading.Thread(target=lambda: partners.append(ranks[1].connect(0, 0)))
        partners: list[Partner] = []
        answers.start()
        partner = ranks[0].connect(1, 0)
        while answers.is_alive():
            ranks[0].progress()
        answers.join()
        found = []
        for count in counts:
            before = counted()
            other = threading.Thread(
                target=pingpong, args=(ranks[1], partners[0], False, size_bytes, count, 0)
            )
            other.start()
            pingpong(ranks[0], partner, True, size_bytes, count, 0)
            other.join()
            found.append(since(before))
        return found


def main(what: str, coalescing: str, wait: str, *counts: str) -> None:
    numbers = [int(count) for count in counts]
    if what == "stream":
        print(json.dumps(streams(coalescing, wait, numbers)))
    else:
        print(json.dumps(pingpongs(coalescing, wait, numbers, int(what))))


if __name__ == "__main__":
    main(*sys.argv[1:])
