"""The workloads of SHRIMP's ranks, by the names that scenarios use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shrimpmx.cluster.nics.rank import CONNECT_LIMIT_NS, RankSamples
from shrimpmx.cluster.nics.vmmc import VmmcRank
from shrimpmx.errors import VmmcError
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.stream import Stream, open_stream
from shrimpmx.vmmc.presence import has_gone
from shrimpmx.workloads.arrivals import await_arrivals, send_arrivals
from shrimpmx.workloads.file_service.benchmark import Benchmark, Pairing
from shrimpmx.workloads.file_service.limits import BLOCK_BYTES
from shrimpmx.workloads.file_service.plan import Plan
from shrimpmx.workloads.flags import FLAGS_BYTES, any_of_flags, flag_offsets
from shrimpmx.workloads.ttcp import receive_messages, send_messages
from shrimpmx.workloads.vmmc_pingpong import Peer, pingpong

# The port of a rank that listens, less its number.
PORT = 5001
# Between two tries to connect to a rank that does not listen yet, ns (ours).
ASK_AGAIN_NS = 200_000
# Between two looks whether a rank that is to connect is still there.
PRESENCE_LOOK_NS = 100_000_000


Workload = Callable[[VmmcRank], RankSamples]


def _idle(rank: VmmcRank) -> RankSamples:
    """Does nothing; for the cost of launching and ending."""
    return {}


def _peer(rank: VmmcRank, *layout: Any) -> Peer:
    """The rank's peer, mapped; the work begins here. `layout` as that of Peer."""
    peer = Peer(rank.process, rank.peer_node, rank.peer_endpoint, *layout)
    rank.begin()
    return peer


def _pingpong(rank: VmmcRank) -> RankSamples:
    """Options: iterations, warmup, delay_ns, delay_max_ns; the lower rank begins."""
    options = rank.options
    half_ns = pingpong(
        _peer(rank),
        rank.number < rank.peer,
        options["iterations"],
        options["warmup"],
        options["delay_ns"],
        options["delay_max_ns"],
        rank.seed_of("computing", rank.number),
    )
    return {"half_round_trip_ns": half_ns}


def _flags(rank: VmmcRank) -> RankSamples:
    """Options: flags, iterations, warmup, delay_ns; the lower rank writes them."""
    options = rank.options
    count, first = options["flags"], rank.number < rank.peer
    return any_of_flags(
        _peer(rank) if first else _peer(rank, FLAGS_BYTES, flag_offsets(count)),
        first,
        count,
        options["iterations"],
        options["warmup"],
        options["delay_ns"],
        rank.seed_of("flags", min(rank.number, rank.peer)),
    )


def _arrivals(rank: VmmcRank) -> RankSamples:
    """Options: arrivals, iterations, warmup, delay_ns: their mean; the lower rank sends.

    An adversary goes beyond the spin limit.
    """
    options = rank.options
    iterations, warmup = options["iterations"], options["warmup"]
    peer = _peer(rank)
    if rank.number > rank.peer:
        return await_arrivals(peer, iterations, warmup)
    send_arrivals(
        peer,
        options["arrivals"],
        options["delay_ns"],
        rank.seat.plan.wait.spin_ns,
        iterations + warmup,
        rank.seed_of("arrivals", rank.number),
    )
    return {}


def _ttcp(rank: VmmcRank) -> RankSamples:
    """Options: size_bytes, iterations and warmup (messages); the lower rank sends."""
    size_bytes = rank.options["size_bytes"]
    count = rank.options["iterations"] + rank.options["warmup"]
    with Network(rank.process) as network:
        if rank.number < rank.peer:
            stream = _connected(rank, network)
            rank.begin()
            send_messages(stream, size_bytes, count)
            return {}
        listener = open_stream(network)
        listener.bind(PORT + rank.number)
        listener.listen(1)
        stream = _accepted(rank, listener)
        rank.begin()
        return receive_messages(stream, size_bytes, count)


def _file_service(rank: VmmcRank) -> RankSamples:
    """Options: iterations (blocks), warmup, size_bytes of a block (0: 4096), threads,
    delay_ns computed with each block; mixed_blocks 0: as many that both ranks read and write.
    """
    options = rank.options
    plan = Plan(
        options["iterations"],
        options["warmup"],
        options["threads"],
        options["size_bytes"] or BLOCK_BYTES,
        options.get("mixed_blocks", 0),
        rank.seed_of("blocks", min(rank.number, rank.peer)),
    )
    with Network(rank.process) as network:
        pairing = Pairing(rank.number, rank.peer, rank.peer_node, rank.peer_endpoint)
        delay_ns = options["delay_ns"]
        return Benchmark(network, pairing, plan, delay_ns, rank.begin).run()


def _connected(rank: VmmcRank, network: Network) -> Stream:
    """A socket of the rank's peer, as soon as that listens."""
    until_ns = rank.now_ns() + CONNECT_LIMIT_NS
    while True:
        stream = open_stream(network)
        try:
            stream.connect(rank.peer_node, PORT + rank.peer, until_ns)
            return stream
        except ConnectionRefusedError:
            stream.close()
            _check_peer(rank, until_ns)
        rank.host.sleep(ASK_AGAIN_NS)


def _accepted(rank: VmmcRank, listener: Stream) -> Stream:
    """The peer's connection, as soon as it makes it."""
    until_ns = rank.now_ns() + CONNECT_LIMIT_NS
    while True:
        try:
            return listener.accept(rank.now_ns() + PRESENCE_LOOK_NS)
        except TimeoutError:
            _check_peer(rank, until_ns)


def _check_peer(rank: VmmcRank, until_ns: int) -> None:
    """VmmcError if a connection with the rank's peer need not be waited for."""
    where = f"rank {rank.peer} (node {rank.peer_node})"
    if has_gone(rank.process, rank.peer_node, rank.peer_endpoint):
        raise VmmcError(f"{where} has closed or died before it was connected", "remote-closed")
    if rank.now_ns() > until_ns:
        raise VmmcError(
            f"no connection with {where} came about within {CONNECT_LIMIT_NS / 1e9:g} s", "timeout"
        )


WORKLOADS: dict[str, Workload] = {
    "pingpong": _pingpong,
    "flags": _flags,
    "arrivals": _arrivals,
    "ttcp": _ttcp,
    "file-service": _file_service,
    "idle": _idle,
}
