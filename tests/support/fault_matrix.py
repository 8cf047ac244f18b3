"""Every packet type under every fault of the link: what was sent, what arrived, what it took.

A cell is one packet type, one fault and one rate. Two endpoints of two nodes, with the real
firmware, links, handlers and library under a virtual clock, send each other messages of all
size classes while the link has that fault for that type alone. Beside them a second pair makes
the packets that healthy traffic lacks: it connects anew, and its ends close in mid-transfer.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from shrimpmx.host import pull
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request, Status
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from support.virtual_cluster import MILLISECOND, NicCluster

TYPES = (
    "connect", "tiny", "small", "medium_frag", "rndv", "pull_request", "pull_reply", "notify",
    "truc", "nack_lib", "nack_mcp",
)  # fmt: skip
FAULTS: dict[str, dict[str, float]] = {
    "lost": {"loss": 1},
    "doubled": {"duplicate": 1},
    "reordered by 1": {"reorder": 1, "reorder_degree": 1},
    "reordered by 3": {"reorder": 1, "reorder_degree": 3},
    "reordered by 40": {"reorder": 1, "reorder_degree": 40},
    "corrupted": {"corrupt": 1},
}
COUNTED_AS = {"lost": "lost", "doubled": "duplicated", "corrupted": "corrupted"}
RATES = (0.01, 0.1, 0.3)
SIZES = (0, 32, 128, 129, 1452, 4096, 32768, 32769, 65536, 234880)
# What each type is in; the mix of a cell has more of these, or a fault of 1 % would not happen.
SIZES_WITH = {
    "tiny": (0, 32), "small": (128,), "medium_frag": (4096, 32768), "rndv": (32769,),
    "pull_request": (65536, 234880), "pull_reply": (65536,), "notify": (32769,),
    "truc": (0, 129),
}  # fmt: skip
# Conversations of the second pair, from connect to close, make these types.
EPISODES_FOR = ("connect", "nack_lib", "nack_mcp")
MX = MxParameters(
    resend_delay_ns=5 * MILLISECOND, ack_delay_ns=MILLISECOND, resends_max=200
)  # fmt: skip
WINDOW = 16
POSTED = 8
# A message that needs longer, in virtual time, counts as lost.
LIMIT_NS = 20_000 * MILLISECOND
ENDED_CODES = ("endpoint-closed", "remote-endpoint-unreachable", "bad-session", "bad-endpoint")
# Any two messages of one length differ from each other, and anywhere.
_NOISE = random.Random(4).randbytes(max(SIZES) + 8192)


def content(number: int, length: int) -> memoryview:
    """The bytes of message `number`."""
    start = number * 61 % 8191
    return memoryview(_NOISE)[start : start + length]


@dataclass
class Cell:
    """What happened to the messages of one type, fault and rate."""

    ptype: str
    fault: str
    rate: float
    sent: int = 0
    received: int = 0
    resent: int = 0
    faults: int = 0
    lost: int = 0
    doubled: int = 0
    damaged: int = 0
    disordered: int = 0
    wrong_ends: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        """Messages that did not arrive once, intact and in order, or whose sender was misled."""
        return self.lost + self.doubled + self.damaged + self.disordered + len(self.wrong_ends)


class Direction:
    """Messages from one endpoint to another, numbered; receives take any, so order shows."""

    def __init__(self, cell: Cell, sender: Endpoint, receiver: Endpoint, partner: Partner) -> None:
        self.cell = cell
        self.sender, self.receiver, self.partner = sender, receiver, partner
        self.lengths: list[int] = []
        self.sends: list[tuple[int, Request]] = []
        self.receives: list[tuple[Request, bytearray]] = []
        self.received = 0

    def fill(self, lengths: list[int]) -> None:
        """Keep the window of sends full; `lengths` are those still to be sent."""
        while lengths and len(self.sends) < WINDOW:
            number = len(self.lengths)
            self.lengths.append(lengths.pop())
            buffer = content(number, self.lengths[-1])
            # A synchronous one now and then: it takes the rndv path whatever its size.
            send = self.sender.issend if number % 16 == 15 else self.sender.isend
            self.sends.append((number, send(buffer, self.partner, number)))
            self.cell.sent += 1

    def post(self) -> None:
        """Some receives wait for their message, some messages for their receive."""
        while len(self.receives) < POSTED and self.received + len(self.receives) < len(
            self.lengths
        ):
            buffer = bytearray(max(SIZES))
            self.receives.append((self.receiver.irecv(buffer, 0, 0), buffer))

    def take(self) -> bool:
        """Check what has arrived; True if anything completed."""
        before = self.received + len(self.sends)
        while self.receives:
            status = self.receiver.test(self.receives[0][0])
            if status is None:
                break
            _, buffer = self.receives.pop(0)
            self._check(status, buffer)
            self.received += 1
        still = []
        for number, request in self.sends:
            status = self.sender.test(request)
            if status is None:
                still.append((number, request))
            elif status.code != "success":
                self.cell.wrong_ends.append(f"send {number}: {status.code}")
        self.sends = still
        return before != self.received + len(self.sends)

    def _check(self, status: Status, buffer: bytearray) -> None:
        cell, number = self.cell, status.match
        if status.code != "success":
            cell.wrong_ends.append(f"receive {self.received}: {status.code}")
            return
        if number != self.received:
            cell.disordered += 1
            return
        length = self.lengths[number]
        if status.length != length or buffer[:length] != content(number, length):
            cell.damaged += 1
        cell.received += 1

    @property
    def done(self) -> bool:
        return not self.sends and self.received == len(self.lengths)

    def finish(self) -> None:
        """What is missing is lost; what comes now came twice."""
        self.cell.lost += len(self.lengths) - self.received
        for request, _ in self.receives:
            self.receiver.cancel(request)
        while self.receiver.iprobe(0, 0) is not None:
            self.receiver.recv(bytearray(max(SIZES)), 0, 0)
            self.cell.doubled += 1


class Matrix:
    """Makes cells; `messages` of each direction and cell, more if a fault did not happen."""

    def __init__(self, seed: int, messages: int, wanted_faults: int = 1) -> None:
        self.seed = seed
        self.messages = messages
        self.wanted_faults = wanted_faults

    def cell(self, ptype: str, fault: str, rate: float) -> Cell:
        """Run one cell to its end."""
        cell = Cell(ptype, fault, rate)
        settings = {name: rate if value == 1 and name != "reorder_degree" else value
                    for name, value in FAULTS[fault].items()}  # fmt: skip
        draw = random.Random(f"{self.seed} {ptype} {fault} {rate}")
        faults = LinkFaults(**settings, only=(ptype,), seed=draw.getrandbits(32))
        run = _CellRun(cell, faults, draw)
        # A small rate may spare few packets: then it goes on until the fault has happened.
        for _ in range(20):
            run.traffic(self.messages)
            cell.faults = run.faults_counted()
            if cell.bad or cell.faults >= self.wanted_faults:
                break
        run.finish()
        return cell


class _CellRun:
    def __init__(self, cell: Cell, faults: LinkFaults, draw: random.Random) -> None:
        self.cell = cell
        self.draw = draw
        parameters = NicParameters(coalescing=draw.choice(("disabled", "timeout", "stream")))
        self.cluster = NicCluster(
            parameters, faults, endpoints=2, seed=draw.getrandbits(32),
            pull_resend_delay_ns=5 * MILLISECOND, resends_max=200,
        )  # fmt: skip
        one, other = (self.cluster.open(node, 0, MX) for node in (0, 1))
        there = self.cluster.connect(one, 1)
        back = self.cluster.connect(other, 0)
        self.ways = [Direction(cell, one, other, there), Direction(cell, other, one, back)]

    def traffic(self, messages: int) -> None:
        lengths = [self._lengths(messages) for _ in self.ways]
        episodes = messages // 4 if self.cell.ptype in EPISODES_FOR else 0
        end_ns = self.cluster.now_ns + LIMIT_NS
        while any(lengths) or not all(way.done for way in self.ways):
            for way, left in zip(self.ways, lengths, strict=True):
                way.fill(left)
            if episodes:
                episodes -= 1
                self._episode()
            moved = self._step()
            if self.cluster.now_ns > end_ns:
                return
            if not moved and not self._pass_time():
                return

    def _lengths(self, messages: int) -> list[int]:
        common = SIZES_WITH.get(self.cell.ptype, SIZES)
        lengths = list(SIZES)
        lengths += [
            self.draw.choice(common if number % 3 else SIZES[:6]) for number in range(messages)
        ][: max(0, messages - len(SIZES))]
        self.draw.shuffle(lengths)
        return lengths

    def _step(self) -> bool:
        moved = self.cluster.step()
        for way in self.ways:
            moved |= way.take()
            way.post()
        return moved

    def _pass_time(self) -> bool:
        due_ns = self.cluster.next_due_ns()
        if due_ns is not None:
            self.cluster.control.set_virtual_ns(max(due_ns, self.cluster.now_ns + 1))
        return due_ns is not None

    # -- the second pair ---------------------------------------------------------

    def _episode(self) -> None:
        """A conversation of endpoints 1 that ends in the way that makes the cell's type."""
        sender, receiver = (self.cluster.open(node, 1, MX) for node in (0, 1))
        connected = self._ended(sender, sender.iconnect(1, 1))
        if connected is None or connected.source is None:
            self.cell.wrong_ends.append(f"connect: {connected and connected.code}")
        elif self.cell.ptype == "connect":
            self._small_talk(sender, receiver, connected.source)
        elif self.cell.ptype == "nack_lib":
            self.cluster.close(receiver)
            self._must_fail(sender, sender.issend(content(1, 100), connected.source))
        else:
            receive = receiver.irecv(bytearray(max(SIZES)), 1)
            sender.isend(content(2, max(SIZES)), connected.source, 1)
            node = self.cluster.nodes[1]
            self._until(lambda: pull.active(node, 1))
            self.cluster.close(sender)
            self._must_fail(receiver, receive)
        for endpoint in (sender, receiver):
            if endpoint in self.cluster.endpoints:
                self.cluster.close(endpoint)

    def _small_talk(self, sender: Endpoint, receiver: Endpoint, partner: Partner) -> None:
        way = Direction(self.cell, sender, receiver, partner)
        way.fill([0, 129])
        way.post()

        def over() -> bool:
            way.take()
            return way.done and partner.unacked == 0

        self._until(over)
        way.finish()

    def _must_fail(self, endpoint: Endpoint, request: Request) -> None:
        status = self._ended(endpoint, request)
        if status is None or status.code not in ENDED_CODES:
            self.cell.wrong_ends.append(f"episode: {status and status.code}")

    def _ended(self, endpoint: Endpoint, request: Request) -> Status | None:
        """The status of a request when it has ended, or None if that takes too long."""
        found: list[Status] = []

        def ended() -> bool:
            status = endpoint.test(request)
            found.extend([status] if status is not None else [])
            return bool(found)

        return found[0] if self._until(ended) else None

    def _until(self, condition: Callable[[], object]) -> bool:
        end_ns = self.cluster.now_ns + LIMIT_NS
        while not condition():
            if self.cluster.now_ns > end_ns or not (self._step() or self._pass_time()):
                return False
        return True

    # -- the end -------------------------------------------------------------------

    def faults_counted(self) -> int:
        name = COUNTED_AS.get(self.cell.fault, "reordered")
        return sum(self.cluster.nic_counters(node)[f"link_{name}"] for node in (0, 1))

    def finish(self) -> None:
        cell, cluster = self.cell, self.cluster
        if not cell.bad:
            cluster.advance(50 * MILLISECOND)  # what was late or doubled comes now
        for way in self.ways:
            way.finish()
        for endpoint in list(cluster.endpoints):
            cell.resent += endpoint.counters()["resent_messages"]
            cluster.close(endpoint)
        for node in (0, 1):
            counters = cluster.control.agent_counters(node)
            cell.resent += (
                sum(
                    counters[f"pull_timeout_handler_{which}_block"]
                    for which in ("first", "nonfirst")
                )
                + counters["pull_request_notonlyfirst_blocks"]
            )
