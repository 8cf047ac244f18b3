"""Two nodes that share no memory: frames travel as datagrams over a socket pair.

Each side has a control segment and a node segment of its own, with a clock that began at another
time. A datagram says how long its frame still travels; the far end stamps it by its own clock.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

from shrimpmx.link.line import PythonEgress, PythonIngress
from shrimpmx.link.links import LINKS, Link
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.nic.firmware import Firmware
from shrimpmx.nic.mx import MxFirmware
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node
from shrimpmx.shared.private import private_node
from support.agents import make_irq
from support.memory import make_control

HEAP_BYTES = 16 << 20
ROOM = 32  # frames that wait for the socket
RETRY_NS = 5_000
LOOK_EVERY_NS = 20_000
IRQ, NIC = 0, 1  # agents
HOST, RANK = 0, 1  # runners
HEAD = struct.Struct("<q?")  # ns that the frame still travels, whether its check sequence is bad


class SocketEgress(PythonEgress):
    """Sends to node `peer` through `end`, a non-blocking socket."""

    def __init__(
        self,
        node: Node,
        peer: int,
        end: socket.socket,
        parameters: NicParameters,
        faults: LinkFaults | None = None,
    ) -> None:
        super().__init__(node, parameters.link_bits_per_second, parameters.link_delay_ns, faults)
        self.peer, self.end = peer, end
        self.waiting: list[tuple[int, bool, bytes]] = []

    def reaches(self, node: int) -> bool:
        return node == self.peer

    def room(self, destination: int) -> int:
        return ROOM - len(self.waiting)

    def carry(self, destination: int, frame: bytes, arrival_ns: int, bad_fcs: bool) -> None:
        self.waiting.append((arrival_ns, bad_fcs, frame))

    def deliver(self, now_ns: int) -> int | None:
        while self.waiting:
            arrival_ns, bad_fcs, frame = self.waiting[0]
            try:
                self.end.send(HEAD.pack(max(0, arrival_ns - now_ns), bad_fcs) + frame)
            except BlockingIOError:
                return now_ns + RETRY_NS
            del self.waiting[0]
        return None


class SocketIngress(PythonIngress):
    """Receives from node `peer`. Nothing wakes its NIC."""

    def __init__(self, peer: int, end: socket.socket) -> None:
        self.peer, self.end = peer, end

    def arrivals(self, now_ns: int) -> Iterator[tuple[int, int, bytes, bool]]:
        while True:
            try:
                datagram = self.end.recv(65536)
            except BlockingIOError:
                return
            if not datagram:
                return  # the far end is closed
            flight_ns, bad_fcs = HEAD.unpack_from(datagram)
            yield now_ns + flight_ns, self.peer, datagram[HEAD.size :], bad_fcs


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """The two ends of a link, which keep datagrams apart and in order."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in pair:
        end.setblocking(False)
    return pair


# The ends of the link that runs have; their processes inherit them.
ENDS: list[socket.socket] = []


def socket_links(
    nodes: list[Node], index: int, parameters: NicParameters, faults: LinkFaults | None
) -> tuple[SocketEgress, SocketIngress]:
    """The two ends of node `index` of two."""
    egress = SocketEgress(nodes[index], 1 - index, ENDS[index], parameters, faults)
    return egress, SocketIngress(1 - index, ENDS[index])


@contextlib.contextmanager
def socket_link() -> Iterator[str]:
    """The name of a link for runs of two nodes, which there is meanwhile."""
    ENDS[:] = socket_pair()
    LINKS["socket"] = Link(
        "support.socket_link:socket_links", maps_nodes=False, look_every_ns=LOOK_EVERY_NS
    )
    try:
        yield "socket"
    finally:
        del LINKS["socket"]
        for end in ENDS:
            end.close()


class Side:
    """Node `index` of two, its agents and an endpoint, in memory that the other side has not."""

    def __init__(
        self,
        index: int,
        end: socket.socket,
        parameters: NicParameters,
        faults: LinkFaults | None = None,
        clock: str = "virtual",
        look_every_ns: int = 0,
        **layout: Any,
    ) -> None:
        agents = [(f"node{index}.irq0", "irq", HOST), (f"node{index}.nic", "nic", HOST)]
        self.control = make_control(["host", "rank"], agents, 2, clock)
        place = NodeLayout(
            index=index, nodes_count=2, mtu=parameters.mtu, heap_bytes=HEAP_BYTES,
            core_runners=[HOST], core_agents=[IRQ], nic_agent=NIC, **layout,
        )  # fmt: skip
        self.node = private_node(self.control, place)
        peer = 1 - index
        links = (
            SocketEgress(self.node, peer, end, parameters, faults),
            SocketIngress(peer, end),
        )
        links[1].look_every_ns = look_every_ns
        self.agents: list[Agent]
        if parameters.nic_kind == "mx":
            self.agents = [MxFirmware(self.node, *links, parameters)]
        else:
            handler = make_irq(self.node, 0, IRQ)
            self.agents = [Firmware(self.node, *links, parameters), handler]
        self.endpoint = Endpoint(self.node, 0, RANK)

    @property
    def nic(self) -> Agent:
        return self.agents[0]

    def counters(self) -> dict[str, int]:
        """The NIC's."""
        return self.control.agent_counters(NIC)

    def step(self) -> bool:
        """One step of everything on this side; True if anything happened."""
        happened = self.endpoint.progress() > 0
        for agent in self.agents:
            happened |= agent.step_at(self.control.now_ns()) > 0
        return happened

    def due_ns(self) -> int | None:
        due = [self.endpoint.next_timer_ns, *(agent.due_ns for agent in self.agents)]
        return min((ns for ns in due if ns is not None), default=None)
