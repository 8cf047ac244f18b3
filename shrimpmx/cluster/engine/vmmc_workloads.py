"""The workloads of SHRIMP's ranks, by the names that scenarios use."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shrimpmx.cluster.engine.workloads import CONNECT_LIMIT_NS, Samples
from shrimpmx.errors import InputError, VmmcError
from shrimpmx.shared.control import Control
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.stream import Stream, open_stream
from shrimpmx.vmmc.presence import has_gone
from shrimpmx.vmmc.process import VmmcProcess
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.arrivals import await_arrivals, send_arrivals
from shrimpmx.workloads.file_service.benchmark import Benchmark, Place
from shrimpmx.workloads.file_service.limits import BLOCK_BYTES
from shrimpmx.workloads.file_service.plan import Plan
from shrimpmx.workloads.flags import FLAGS_BYTES, any_of_flags, flag_offsets
from shrimpmx.workloads.ttcp import receive_messages, send_messages
from shrimpmx.workloads.vmmc_peer import Peer
from shrimpmx.workloads.vmmc_pingpong import pingpong

# The port of a rank that listens, less its number.
PORT = 5001
# Between two tries to connect to a rank that does not listen yet.
ASK_AGAIN_S = 0.0002
# Between two looks whether a rank that is to connect is still there.
PRESENCE_LOOK_NS = 100_000_000


@dataclass
class VmmcContext:
    """What a workload gets: its rank, and its open process of VMMC.

    `places`: node and endpoint of each rank. `node` and `core` are where this one lives,
    `options` its own. `begin` is to be called when all is prepared: what the rank uses and how
    long it takes counts from then on.
    """

    number: int
    ranks_count: int
    process: VmmcProcess
    waiter: Waiter
    control: Control
    options: Mapping[str, Any]
    seed: int
    node: int
    core: int
    places: Sequence[tuple[int, int]]
    begin: Callable[[], None] = lambda: None

    @property
    def peer(self) -> int:
        """The rank it talks to: option `peer`, or its neighbour in pairs 0-1, 2-3, ...

        InputError if there is no such rank.
        """
        peer = int(self.options.get("peer", self.number ^ 1))
        if not 0 <= peer < self.ranks_count:
            raise InputError(
                f"rank {self.number} has no peer {peer}; ranks are 0 to {self.ranks_count - 1}"
            )
        return peer

    @property
    def peer_node(self) -> int:
        """The node of that rank."""
        return self.places[self.peer][0]

    @property
    def peer_endpoint(self) -> int:
        """The endpoint of that rank on its node."""
        return self.places[self.peer][1]


VmmcWorkload = Callable[[VmmcContext], Samples]


def _idle(context: VmmcContext) -> Samples:
    """Does nothing; for the cost of launching and ending."""
    return {}


def _program(context: VmmcContext) -> Samples:
    """Option: function, called with the context; its dict of arrays, or None, is the result.

    The function is inherited by the fork, so that a closure will do.
    """
    function = context.options.get("function")
    if not callable(function):
        raise InputError(f"option 'function' must be a function, not {function!r}")
    samples = function(context) or {}
    return {name: np.atleast_1d(np.asarray(values)) for name, values in samples.items()}


def _peer(context: VmmcContext, *layout: Any) -> Peer:
    """The rank's peer, mapped; the work begins here. `layout` as that of Peer."""
    peer = Peer(context.process, context.peer_node, context.peer_endpoint, *layout)
    context.begin()
    return peer


def _pingpong(context: VmmcContext) -> Samples:
    """Options: iterations 1000, warmup 100, delay_ns 0, delay_max_ns 0; the lower rank begins."""
    options = context.options
    half_ns = pingpong(
        _peer(context),
        context.number < context.peer,
        options.get("iterations", 1000),
        options.get("warmup", 100),
        options.get("delay_ns", 0),
        options.get("delay_max_ns", 0),
        _seed(context, context.number),
    )
    return {"half_round_trip_ns": half_ns}


def _flags(context: VmmcContext) -> Samples:
    """Options: flags 8, iterations 1000, warmup 100, delay_ns 0; the lower rank writes them."""
    options = context.options
    count, first = options.get("flags", 8), context.number < context.peer
    return any_of_flags(
        _peer(context) if first else _peer(context, FLAGS_BYTES, flag_offsets(count)),
        first,
        count,
        options.get("iterations", 1000),
        options.get("warmup", 100),
        options.get("delay_ns", 0),
        _seed(context, min(context.number, context.peer)),
    )


def _arrivals(context: VmmcContext) -> Samples:
    """Options: arrivals "uniform", iterations 1000, warmup 100, delay_ns 0: their mean, spin_ns
    300000: what an adversary goes beyond; the lower rank sends.
    """
    options = context.options
    iterations, warmup = options.get("iterations", 1000), options.get("warmup", 100)
    peer = _peer(context)
    if context.number > context.peer:
        return await_arrivals(peer, iterations, warmup)
    send_arrivals(
        peer,
        options.get("arrivals", "uniform"),
        options.get("delay_ns", 0),
        options.get("spin_ns", 300_000),
        iterations + warmup,
        _seed(context, context.number),
    )
    return {}


def _ttcp(context: VmmcContext) -> Samples:
    """Options: size_bytes 1024, count 10000; the lower rank sends."""
    size_bytes = context.options.get("size_bytes", 1024)
    count = context.options.get("count", 10_000)
    with Network(context.process) as network:
        if context.number < context.peer:
            stream = _connected(context, network)
            context.begin()
            send_messages(stream, size_bytes, count)
            return {}
        listener = open_stream(network)
        listener.bind(PORT + context.number)
        listener.listen(1)
        stream = _accepted(context, listener)
        context.begin()
        return receive_messages(stream, size_bytes, count)


def _file_service(context: VmmcContext) -> Samples:
    """Options: iterations 1000 (blocks), warmup 100, size_bytes of a block (0: 4096), threads 4,
    delay_ns 0 computed with each block; mixed_blocks 0: as many that both ranks read and write.
    """
    options = context.options
    plan = Plan(
        options.get("iterations", 1000),
        options.get("warmup", 100),
        options.get("threads", 4),
        options.get("size_bytes", 0) or BLOCK_BYTES,
        options.get("mixed_blocks", 0),
        _seed(context, min(context.number, context.peer)),
    )
    with Network(context.process) as network:
        place = Place(context.number, context.peer, context.peer_node, context.peer_endpoint)
        delay_ns = options.get("delay_ns", 0)
        return Benchmark(network, place, plan, delay_ns, context.begin).run()


def _connected(context: VmmcContext, network: Network) -> Stream:
    """A socket of the rank's peer, as soon as that listens."""
    until_ns = context.control.now_ns() + CONNECT_LIMIT_NS
    while True:
        stream = open_stream(network)
        try:
            stream.connect(context.peer_node, PORT + context.peer, until_ns)
            return stream
        except ConnectionRefusedError:
            stream.close()
            _check_peer(context, until_ns)
        time.sleep(ASK_AGAIN_S)


def _accepted(context: VmmcContext, listener: Stream) -> Stream:
    """The peer's connection, as soon as it makes it."""
    until_ns = context.control.now_ns() + CONNECT_LIMIT_NS
    while True:
        try:
            return listener.accept(context.control.now_ns() + PRESENCE_LOOK_NS)
        except TimeoutError:
            _check_peer(context, until_ns)


def _check_peer(context: VmmcContext, until_ns: int) -> None:
    """VmmcError if a connection with the rank's peer need not be waited for."""
    where = f"rank {context.peer} (node {context.peer_node})"
    if has_gone(context.process, context.peer_node, context.peer_endpoint):
        raise VmmcError(f"{where} has closed or died before it was connected", "remote-closed")
    if context.control.now_ns() > until_ns:
        raise VmmcError(
            f"no connection with {where} came about within {CONNECT_LIMIT_NS / 1e9:g} s", "timeout"
        )


def _seed(context: VmmcContext, number: int) -> int:
    """What to draw from, another for each `number` of each run."""
    return ((context.seed - context.number) * 1000 + number) % 2**64


VMMC_WORKLOADS: dict[str, VmmcWorkload] = {
    "pingpong": _pingpong,
    "flags": _flags,
    "arrivals": _arrivals,
    "ttcp": _ttcp,
    "file-service": _file_service,
    "idle": _idle,
    "program": _program,
}
