"""The file service's benchmark: one node reads and writes a file that the other's cache holds.

Waiting paper, section 5.2: "the file system process on one node accesses a sequence of file blocks
that are initially cached in the memory of the file system process on the other node". Each process
has client threads, with a connection each, and a server thread for each connection of the other:
when all of them wait, the process waits for twice as many sockets as it has clients.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shrimpmx.errors import VmmcError
from shrimpmx.shared.host import Host
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.socket import Socket
from shrimpmx.sockets.threads import Condition, Scheduler, Thread
from shrimpmx.vmmc.presence import has_gone
from shrimpmx.vmmc.process import Tally
from shrimpmx.workloads.file_service.connection import Connection
from shrimpmx.workloads.file_service.contents import Contents
from shrimpmx.workloads.file_service.messages import Kind
from shrimpmx.workloads.file_service.plan import HOLDER, Access, Plan
from shrimpmx.workloads.file_service.service import FileService

# Rank 0's port; each rank has the one of its number behind it (ours: that of NFS).
FIRST_PORT = 2049
# The side whose accesses are the measured window.
LEADER = 1 - HOLDER
# The other process may not listen yet: how often a client tries, and for how long.
CONNECT_LOOK_NS = 1_000_000
CONNECT_LIMIT_NS = 20_000_000_000
# A peer that failed closes its connections first and tells why later: let its error come first.
BLAME_NS = 50_000_000


@dataclass(frozen=True)
class Pairing:
    """A process's rank, and the rank, node and endpoint of its peer."""

    rank: int
    peer_rank: int
    peer_node: int
    peer_endpoint: int

    @property
    def side(self) -> int:
        """The node that it is in the protocol: 0, or 1."""
        return int(self.rank > self.peer_rank)


@dataclass
class Measured:
    """What a process measures: its accesses behind the warm-up, and what `host` says that it uses
    in the window.

    The window is the same for both processes: from the end of side 0's warm-up to its last access.
    """

    host: Host
    block_ns: array[int] = field(default_factory=lambda: array("q"))
    began_ns: int = 0
    wall_ns: int = 0
    usage_before: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """The window begins."""
        self.began_ns, self.usage_before = self.host.now_ns(), self.host.usage()

    def end(self) -> None:
        """It ends."""
        self.wall_ns = self.host.now_ns() - self.began_ns
        self.used = self.host.usage_since(self.usage_before)


class Benchmark:
    """One process's part; `delay_ns` is computed with each block.

    `begin` is called when the measured window begins.
    """

    def __init__(
        self,
        network: Network,
        pairing: Pairing,
        plan: Plan,
        delay_ns: int = 0,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin = begin
        self._network, self._pairing, self._plan = network, pairing, plan
        self._delay_ns = delay_ns
        self._host = network.process.host
        self._tally = Tally(network.process, "recv_messages")
        self._scheduler = Scheduler(network)
        contents = Contents(plan.block_bytes, plan.seed)
        shape = plan.shape(pairing.side)
        self.service = FileService(pairing.side, shape, contents, self._scheduler, self._marked)
        self._accesses = iter(plan.accesses(pairing.side))
        self._read_back = iter(plan.read_back())
        self._seen = [0] * plan.blocks
        self._measured = Measured(self._host)
        self._begun = Condition(self._scheduler, "the end of the warm-up")
        self._made = 0

    def run(self) -> dict[str, NDArray[np.int64]]:
        """Access, answer, compare both caches with the plan; what was measured.

        block_ns: of each of its own accesses behind its warm-up; blocks: how many; wall_ns,
        user_ns and system_ns: of the window, see Measured; versions: of each block that may be read
        here at the end, else 0.
        VmmcError ("corrupted") if a block is not what it must be, "remote-closed" if the other
        process has gone.
        """
        listener = Socket(self._network)
        try:
            listener.bind(("", FIRST_PORT + self._pairing.rank))
            listener.listen(self._plan.threads)
            acceptor = self._scheduler.spawn(self._accept, listener)
            for _ in range(self._plan.threads):
                self._scheduler.spawn(self._client, acceptor)
            self._scheduler.run()
        except OSError as error:
            self._host.sleep(BLAME_NS)
            raise VmmcError(
                f"the file service lost its connection to node {self._pairing.peer_node} "
                f"(rank {self._pairing.peer_rank}): {error}",
                "remote-closed",
            ) from error
        finally:
            listener.close()
        return self._samples(self._compare())

    # -- threads

    def _accept(self, listener: Socket) -> list[Thread]:
        """Starts a server thread for each of the other side's clients."""
        return [
            self._scheduler.spawn(self._server, listener.accept()[0])
            for _ in range(self._plan.threads)
        ]

    def _server(self, socket: Socket) -> None:
        with socket:
            self.service.serve(self._connection(socket))

    def _client(self, acceptor: Thread) -> None:
        with self._connect() as socket:
            connection = self._connection(socket)
            if self._plan.is_active(self._pairing.side):
                self._access_all(connection)
            else:
                # The other node's clients have closed when nothing is left to be answered.
                for server in acceptor.join():
                    server.join()
                for block in self._read_back:
                    self._expect(block, self.service.access(connection, block, write=False))

    def _access_all(self, connection: Connection) -> None:
        """Accesses until all threads together have made all."""
        now_ns: Callable[[], int] = self._host.now_ns
        for access in self._accesses:
            if self._pairing.side == LEADER and access.number >= self._plan.warmup:
                self._await_window(connection, access.number)
            began_ns = now_ns()
            self._access(connection, access)
            if self._delay_ns:
                self._host.burn(self._delay_ns)
            if access.number >= self._plan.warmup:
                self._measured.block_ns.append(now_ns() - began_ns)
            self._made += 1
            if self._pairing.side == LEADER and self._made == self._plan.accesses_count:
                self._marked(Kind.END)
                self.service.mark(connection, Kind.END)

    def _await_window(self, connection: Connection, number: int) -> None:
        """The first access behind the warm-up lets the window begin; others wait for that."""
        if number == self._plan.warmup:
            self.service.mark(connection, Kind.BEGIN)
            self._marked(Kind.BEGIN)
            self._begun.notify_all()
        while not self._measured.began_ns:
            self._begun.wait()

    def _marked(self, kind: Kind) -> None:
        """The window begins or ends here; the other side's word if this one does not lead."""
        if kind is Kind.BEGIN:
            self._begin()
            self._measured.begin()
        else:
            self._measured.end()

    def _access(self, connection: Connection, access: Access) -> None:
        version = self.service.access(connection, access.block, access.write)
        if not self._plan.mixed_blocks:
            self._expect(access.block, version)
        elif version < self._seen[access.block]:
            raise self._stale(access.block, version, self._seen[access.block])
        self._seen[access.block] = version

    def _expect(self, block: int, version: int) -> None:
        if version != self._plan.version(block):
            raise self._stale(block, version, self._plan.version(block))

    def _stale(self, block: int, version: int, wanted: int) -> VmmcError:
        return VmmcError(
            f"node {self._pairing.side} found block {block} in version {version}, but {wanted} has "
            "been written",
            "corrupted",
        )

    # -- connections

    def _connection(self, socket: Socket) -> Connection:
        return Connection(socket, self._plan.block_bytes, lambda: self._tally.add(1))

    def _connect(self) -> Socket:
        address = (self._pairing.peer_node, FIRST_PORT + self._pairing.peer_rank)
        until_ns = self._host.now_ns() + CONNECT_LIMIT_NS
        while True:
            socket = Socket(self._network)
            try:
                socket.connect(address)
                return socket
            except ConnectionRefusedError:
                socket.close()
                if self._peer_has_gone() or self._host.now_ns() > until_ns:
                    raise
                self._scheduler.sleep(CONNECT_LOOK_NS)

    def _peer_has_gone(self) -> bool:
        peer = self._pairing
        return has_gone(self._network.process, peer.peer_node, peer.peer_endpoint)

    # -- the end

    def _compare(self) -> NDArray[np.int64]:
        """Check every block that may be read here; their versions."""
        versions = np.zeros(self._plan.blocks, np.int64)
        for block in range(self._plan.blocks):
            if self.service.consistency.may(block, write=False):
                self.service.check(block)
                versions[block] = self.service.consistency.version[block]
                if not self._plan.mixed_blocks:
                    self._expect(block, int(versions[block]))
        return versions

    def _samples(self, versions: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        measured = self._measured
        figures: dict[str, Any] = {
            "block_ns": np.frombuffer(measured.block_ns, np.int64).copy(),
            "blocks": [len(measured.block_ns)],
            "versions": versions,
        }
        if measured.used:
            figures["wall_ns"] = [measured.wall_ns]
            figures["user_ns"] = [measured.used["user_ns"]]
            figures["system_ns"] = [measured.used["system_ns"]]
        return {name: np.asarray(values, np.int64) for name, values in figures.items()}
