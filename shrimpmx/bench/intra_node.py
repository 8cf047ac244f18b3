"""Messages between two ranks of one node, from Python: latency, rate and bandwidth.

Two processes on two CPUs, each with an endpoint of the same node; no NIC and no handler run.
The yardstick of the bandwidth is what the machine can do at all: the same bytes copied once
through shared memory between the same processes, in turns with the messages.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shrimpmx.bench.matching import mpi_exchanges, mpi_round_trips
from shrimpmx.errors import AgentError
from shrimpmx.mpi.joining import Joined
from shrimpmx.mpi.world import begin
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.mx import MemoryName, MxParameters
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.node import Node
from shrimpmx.shared.private import private_control, private_node
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

CONNECT_LIMIT_S = 10.0
# Between two looks whether the other rank is there.
LOOK_S = 0.0002
LATENCY_BYTES = 8
LARGE_BYTES = 4 << 20
WINDOW = 64
# Round trips, or windows, that make one figure.
BATCH = 200
WINDOWS = 50
LARGE_BATCH = 8
HEAP_BYTES = 16 << 20
# Words of the memory that both processes see, a cache line each for the two ranks.
TURN, PLACE, OPEN = 0, 16, 32
LINE_WORDS = 8

Figures = npt.NDArray[np.float64]
Data = npt.NDArray[np.uint8]
Work = Callable[["Side"], None]


@dataclass(frozen=True)
class Side:
    """What one of the two ranks has: its endpoint, the other as partner, and one large buffer.

    `heap` is the node's heap segment, `words` the memory by which both take turns.
    """

    number: int
    endpoint: Endpoint
    partner: Partner
    buffer: Data
    heap: Data
    words: npt.NDArray[np.uint64]

    def send(self, data: Data) -> None:
        self.endpoint.send(data, self.partner, 1)

    def receive(self, data: Data) -> None:
        self.endpoint.recv(data, 1)

    def others_buffer(self) -> Data:
        """The other rank's large buffer, as this process sees it."""
        place = int(self.words[PLACE + LINE_WORDS * (1 - self.number)])
        return self.heap[place : place + LARGE_BYTES]

    def copy_turn(self, first: bool, other: Data, turn: int) -> None:
        """One round trip of the yardstick: each copies the other's buffer in its turn."""
        mine, others = TURN + LINE_WORDS * self.number, TURN + LINE_WORDS * (1 - self.number)
        words = self.words
        if first:
            words[mine] = turn
        while words[others] != turn:
            pass
        np.copyto(self.buffer, other)
        if not first:
            words[mine] = turn


@contextmanager
def _side(
    node: Node,
    number: int,
    segment: Data,
    words: npt.NDArray[np.uint64],
    memory: MemoryName = "auto",
) -> Iterator[Side]:
    heap = Heap.of_process(node, number)
    buffer = np.frombuffer(heap.allocate(LARGE_BYTES), np.uint8)
    buffer[:] = number
    words[PLACE + LINE_WORDS * number] = buffer.ctypes.data - segment.ctypes.data
    with (
        Waiter(node.control, number, make_strategy("spin")) as waiter,
        Endpoint(
            node, number, number, waiter, agent=number, parameters=MxParameters(memory=memory)
        ) as endpoint,
    ):
        words[OPEN + LINE_WORDS * number] = 1
        until = time.monotonic() + CONNECT_LIMIT_S
        while words[OPEN + LINE_WORDS * (1 - number)] == 0:
            if time.monotonic() > until:
                raise AgentError(f"rank {1 - number} did not open its endpoint")
            time.sleep(LOOK_S)
        partner = endpoint.connect(0, 1 - number)
        yield Side(number, endpoint, partner, buffer, segment, words)


@contextmanager
def two_ranks(cpus: tuple[int, int], work: Work, memory: MemoryName = "auto") -> Iterator[Side]:
    """Rank 0 on the first CPU, in this process; rank 1, which does `work`, on the second."""
    layout = NodeLayout(endpoints=2, heap_bytes=HEAP_BYTES)
    agents = [("rank0", "rank", 0), ("rank1", "rank", 1)]
    node = private_node(private_control(["rank0", "rank1"], agents), layout)
    assert node.heap_segment is not None
    segment = np.frombuffer(node.heap_segment.view(), np.uint8)
    words = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.uint64)
    before = os.sched_getaffinity(0)
    child = os.fork()
    if child == 0:
        try:
            os.sched_setaffinity(0, {cpus[1]})
            with _side(node, 1, segment, words, memory) as side:
                work(side)
        finally:
            os._exit(1)
    try:
        os.sched_setaffinity(0, {cpus[0]})
        with _side(node, 0, segment, words, memory) as side:
            yield side
    finally:
        os.sched_setaffinity(0, before)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _batches(seconds: float, batch: Callable[[], float]) -> Figures:
    """Figures of as many batches as fit the time; the first warms up."""
    batch()
    figures: list[float] = []
    until = time.monotonic() + seconds
    while not figures or time.monotonic() < until:
        figures.append(batch())
    return np.array(figures)


def latency(cpus: tuple[int, int], seconds: float) -> Figures:
    """Half round trips of 8 bytes, us."""

    def answer(side: Side) -> None:
        data = np.zeros(LATENCY_BYTES, np.uint8)
        while True:
            side.receive(data)
            side.send(data)

    with two_ranks(cpus, answer) as side:
        data = np.zeros(LATENCY_BYTES, np.uint8)

        def batch() -> float:
            begin_ns = time.perf_counter_ns()
            for _ in range(BATCH):
                side.send(data)
                side.receive(data)
            return (time.perf_counter_ns() - begin_ns) / (2000 * BATCH)

        return _batches(seconds, batch)


def mpi_latency(cpus: tuple[int, int], seconds: float, at_once: bool) -> Figures:
    """Half round trips of 8 bytes by MPI's Send and Recv, called from compiled code, us.

    `at_once`: exchanges instead, by Irecv, Isend and Wait.
    """
    exchange = mpi_exchanges if at_once else mpi_round_trips

    def world_of(side: Side) -> Joined:
        own = side.endpoint.connect(0, side.number)
        partners = [side.partner, side.partner]
        partners[side.number] = own
        return Joined(side.number, side.endpoint, partners, [0, 0], side.endpoint.control)

    def answer(side: Side) -> None:
        joined = world_of(side)
        table = begin(joined)
        while True:
            exchange(table, 0, False, BATCH, LATENCY_BYTES)

    with two_ranks(cpus, answer) as side:
        joined = world_of(side)
        table = begin(joined)

        def batch() -> float:
            begin_ns = time.perf_counter_ns()
            exchange(table, 1, True, BATCH, LATENCY_BYTES)
            return (time.perf_counter_ns() - begin_ns) / (2000 * BATCH)

        return _batches(seconds, batch)


def rate(cpus: tuple[int, int], seconds: float) -> Figures:
    """Messages of 8 bytes a second, 64 in flight."""

    def window(side: Side, data: Data, sends: bool) -> None:
        endpoint, partner = side.endpoint, side.partner
        if sends:
            requests = [endpoint.isend(data, partner, 1) for _ in range(WINDOW)]
        else:
            requests = [endpoint.irecv(data, 1) for _ in range(WINDOW)]
        for request in requests:
            endpoint.wait(request)
        side.receive(data) if sends else side.send(data)

    def take(side: Side) -> None:
        data = np.zeros(LATENCY_BYTES, np.uint8)
        while True:
            window(side, data, sends=False)

    with two_ranks(cpus, take) as side:
        data = np.zeros(LATENCY_BYTES, np.uint8)

        def batch() -> float:
            begin_ns = time.perf_counter_ns()
            for _ in range(WINDOWS):
                window(side, data, sends=True)
            return WINDOWS * WINDOW * 1e9 / (time.perf_counter_ns() - begin_ns)

        return _batches(seconds, batch)


def bandwidth(
    cpus: tuple[int, int], seconds: float, memory: MemoryName = "auto"
) -> tuple[Figures, Figures]:
    """Messages of 4 MiB to and fro, and the same bytes copied once each way: MiB/s both.

    `memory`: how the ranks reach each other's buffers, as `MxParameters.memory`.
    """

    def both(side: Side, first: bool) -> Iterator[tuple[float, float]]:
        other, turn = side.others_buffer(), 0
        calls = (side.send, side.receive) if first else (side.receive, side.send)
        while True:
            begin_ns = time.perf_counter_ns()
            for _ in range(LARGE_BATCH):
                for call in calls:
                    call(side.buffer)
            middle_ns = time.perf_counter_ns()
            for _ in range(LARGE_BATCH):
                turn += 1
                side.copy_turn(first, other, turn)
            end_ns = time.perf_counter_ns()
            bytes_count = 2 * LARGE_BATCH * LARGE_BYTES / (1 << 20) * 1e9
            yield bytes_count / (middle_ns - begin_ns), bytes_count / (end_ns - middle_ns)

    def answer(side: Side) -> None:
        for _ in both(side, first=False):
            pass

    with two_ranks(cpus, answer, memory) as side:
        figures = both(side, first=True)
        next(figures)
        found: list[tuple[float, float]] = []
        until = time.monotonic() + seconds
        while not found or time.monotonic() < until:
            found.append(next(figures))
    pairs = np.array(found)
    return pairs[:, 0], pairs[:, 1]
