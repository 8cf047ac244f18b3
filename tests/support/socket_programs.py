"""Programs on the ranks of a small cluster of real processes with SHRIMP's NIC."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.nics.vmmc import VmmcRank
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.sockets.api import create_connection
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.socket import Socket
from support.clusters import DEADLINE_S, run
from support.conditions import patient

PORT = 7
CONNECT_LIMIT_S = patient(30.0)
Program = Callable[[Network], Any]


def cluster(
    *programs: Program,
    strategy: str = "spin-block",
    nodes_of: tuple[int, ...] = (0, 1),
    **more: Any,
) -> ClusterSpec:
    """Program k runs on node `nodes_of[k]`, with a Network that is closed at its end."""
    ranks = tuple(
        RankSpec(node, "function", function=with_network(program))
        for node, program in zip(nodes_of, programs, strict=True)
    )
    wait = WaitParameters(strategy=strategy)
    return ClusterSpec(ranks=ranks, nic=NicParameters(nic_kind="vmmc"), wait=wait, **more)


def with_network(program: Program) -> Callable[[VmmcRank], Any]:
    def function(context: VmmcRank) -> Any:
        with Network(context.process) as network:
            return program(network)

    return function


def run_programs(*programs: Program, deadline_s: float = DEADLINE_S, **more: Any) -> ClusterResult:
    return run(cluster(*programs, **more), deadline_s)


def reach(network: Network, port: int = PORT, host: str = "node0") -> Socket:
    """A connection, as soon as the other program listens."""
    until = time.monotonic() + CONNECT_LIMIT_S
    while True:
        try:
            return create_connection(network, (host, port))
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.001)


def recv_exactly(from_socket: Socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = from_socket.recv(count - len(found))
        assert part, f"the stream ended after {len(found)} of {count} bytes"
        found += part
    return bytes(found)
