"""Two processes' sockets in one process, under a virtual clock: nothing moves unless told to."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any, Self

import pytest

from shrimpmx.shared.host import VirtualHost
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.socket import Socket
from shrimpmx.vmmc.process import VmmcProcess, close_dead
from support.vmmc import VmmcNodes

# Longer than anything travels here, shorter than anything is repeated.
SETTLE_NS = 1_000_000
PORT = 80


class VirtualSockets:
    """A process on each of `nodes` nodes, with its Network; all sockets are non-blocking.

    `waits`: a process may wait for room in its tx ring, which nothing makes.
    """

    def __init__(
        self,
        nodes: int = 2,
        heap_bytes: int = 1 << 22,
        endpoints: int = 1,
        *,
        waits: bool = False,
    ) -> None:
        self.waits = waits
        self.cluster = VmmcNodes(nodes=nodes, heap_bytes=heap_bytes, endpoints=endpoints)
        self.processes = [self._process(node) for node in range(nodes)]
        self.networks = [Network(process) for process in self.processes]
        self.sockets: list[Socket] = []

    def _process(self, node: int, endpoint: int = 0) -> VmmcProcess:
        cluster = self.cluster
        process = VmmcProcess(
            cluster.nodes[node],
            endpoint,
            cluster.rank_runner(node, endpoint),
            agent=cluster.rank_agent(node, endpoint),
            host=VirtualHost(cluster.control, lambda _until_ns: None) if self.waits else None,
        )
        process.open()
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number, one in enumerate(self.sockets):
            one.close()
            if number % 50 == 49:  # nothing else makes room in the tx rings
                self.settle()
        for process in self.processes:
            process.close()
        self.settle()

    def settle(self, ns: int = SETTLE_NS) -> None:
        """Let what is under way arrive."""
        self.cluster.advance(ns)

    def socket(self, node: int, buffer_bytes: int = 4096) -> Socket:
        made = Socket(self.networks[node])
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.sockets.append(made)
        return made

    def listener(self, node: int = 1, port: int = PORT, backlog: int = 8, **more: Any) -> Socket:
        made = self.socket(node, **more)
        made.bind(("", port))
        made.listen(backlog)
        return made

    def accept(self, listener: Socket) -> Socket:
        accepted, _ = listener.accept()
        accepted.setblocking(False)
        self.sockets.append(accepted)
        return accepted

    def connect(self, node: int = 0, port: int = PORT, to: int = 1, **more: Any) -> Socket:
        """A socket whose letter is on its way."""
        made = self.socket(node, **more)
        with pytest.raises(BlockingIOError):
            made.connect((to, port))
        return made

    def pair(self, buffer_bytes: int = 4096) -> tuple[Socket, Socket]:
        """Connected sockets of node 0 and node 1."""
        listener = self.listener(buffer_bytes=buffer_bytes)
        first = self.connect(buffer_bytes=buffer_bytes)
        self.settle()
        second = self.accept(listener)
        listener.close()
        self.settle()
        assert first.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        self.settle()
        return first, second

    def kill(self, node: int) -> None:
        """As if the process of `node` had died: it does nothing more."""
        close_dead(self.cluster.nodes[node], 0)
        self.settle()

    def count(self, node: int, name: str) -> int:
        """A counter of the node's process."""
        return self.cluster.control.agent_counters(self.cluster.rank_agent(node)).get(name, 0)


@pytest.fixture
def virtual() -> Iterator[VirtualSockets]:
    with VirtualSockets() as sockets:
        yield sockets


def received(from_socket: Socket) -> bytes:
    """All that can be read at once."""
    found = bytearray()
    while True:
        try:
            part = from_socket.recv(1 << 20)
        except BlockingIOError:
            return bytes(found)
        if not part:
            return bytes(found)
        found += part
