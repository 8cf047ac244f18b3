"""Addresses of stream sockets: (host, port), where hosts are the nodes of the run."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shrimpmx.sockets.network import Network

_NODE = re.compile(r"node(\d+)$")
# Names of whichever node one is on.
_OWN = ("", "localhost", "127.0.0.1", "0.0.0.0")

Address = tuple[str, int]


def host_of(node: int) -> str:
    """The name of node `node`."""
    return f"node{node}"


def node_of(network: Network, host: str | int) -> int:
    """The node that `host` names: "node1", 1, or "" and "localhost" for one's own.

    socket.gaierror if there is no such node.
    """
    if isinstance(host, str):
        if host in _OWN:
            return network.node
        match = _NODE.match(host)
        node = int(match[1]) if match else -1
    else:
        node = host
    if not 0 <= node < network.nodes_count:
        last = network.nodes_count - 1
        raise socket.gaierror(
            socket.EAI_NONAME, f"there is no host {host!r}; hosts are node0 to node{last}"
        )
    return node


def parse(network: Network, address: Any) -> tuple[int, int]:
    """Node and port of an address; TypeError, OverflowError or gaierror if it is none."""
    if not isinstance(address, tuple) or len(address) < 2:
        raise TypeError(f"an address is a tuple of host and port, not {address!r}")
    host, port = address[:2]
    if not isinstance(host, str | int) or not isinstance(port, int):
        raise TypeError(
            f"an address is (host, port): a name or the number of a node, and an integer, "
            f"not {address!r}"
        )
    if not 0 <= port < 65536:
        raise OverflowError("port must be 0-65535.")
    return node_of(network, host), port
