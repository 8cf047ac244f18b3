"""A link written in Python joins two nodes that share no memory and no clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from support.nic import PLAIN, Nodes, frame
from support.socket_link import NIC, Side, SocketEgress, SocketIngress, socket_pair
from support.virtual_cluster import pattern

from shrimpmx.link.line import PythonEgress, PythonIngress
from shrimpmx.mx.handles import Partner, Request, Status
from shrimpmx.native.segment import SEGMENT_TRACE, Segment
from shrimpmx.native.trace import Trace
from shrimpmx.nic.firmware import Firmware
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node, put_frame, take_frames

# What the clocks of the two sides say when the test begins.
ORIGINS_NS = (1_000_000, 77_000_000_000_123)
# Tiny, small, medium of one fragment and of several, large: pulled by one block and by several.
SIZES = (0, 32, 100, 1000, 30_000, 40_000, 400_000)
LIMIT_NS = 300_000_000_000


class Sides:
    """Both sides under virtual clocks, which go on together."""

    def __init__(
        self, parameters: NicParameters, faults: LinkFaults | None = None, seed: int = 1
    ) -> None:
        self.ends = socket_pair()
        self.sides = [Side(i, end, parameters, faults) for i, end in enumerate(self.ends)]
        self.rng = random.Random(seed)
        self.elapsed_ns = 0
        self.set_clocks(0)

    def set_clocks(self, elapsed_ns: int) -> None:
        self.elapsed_ns = elapsed_ns
        for side, origin_ns in zip(self.sides, ORIGINS_NS, strict=True):
            side.control.set_virtual_ns(origin_ns + elapsed_ns)

    def step(self) -> bool:
        self.rng.shuffle(order := self.sides[:])
        return sum(side.step() for side in order) > 0

    def until(self, condition: Callable[[], object]) -> None:
        """Step both sides and let time pass until the condition holds."""
        while not condition():
            if self.step():
                continue
            due = [
                due_ns - origin_ns
                for side, origin_ns in zip(self.sides, ORIGINS_NS, strict=True)
                if (due_ns := side.due_ns()) is not None
            ]
            assert due, "nothing is left to happen"
            assert min(due) <= LIMIT_NS
            self.set_clocks(max(min(due), self.elapsed_ns + 1))

    def wait(self, side: int, request: Request) -> Status:
        done: list[Status] = []

        def test() -> bool:
            status = self.sides[side].endpoint.test(request)
            if status is not None:
                done.append(status)
            return bool(done)

        self.until(test)
        return done[0]

    def connect(self, side: int) -> Partner:
        status = self.wait(side, self.sides[side].endpoint.iconnect(1 - side, 0))
        assert status.code == "success"
        assert status.source is not None
        return status.source

    def all_arrived(self) -> bool:
        """Whether both NICs have received as many packets as the other one has sent."""
        one, other = (side.counters() for side in self.sides)
        return (one["tx_packets"], other["tx_packets"]) == (
            other["rx_packets"],
            one["rx_packets"],
        )

    def close(self) -> None:
        for end in self.ends:
            end.close()


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("nic_kind", ["ethernet", "mx"])
@pytest.mark.parametrize(
    "faults",
    [None, LinkFaults(loss=0.02, duplicate=0.02, corrupt=0.02, reorder=0.05, seed=3)],
    ids=["perfect", "faulty"],
)
def test_messages_of_every_size_go_both_ways(
    nic_kind: str, faults: LinkFaults | None, closing: ExitStack
) -> None:
    sides = Sides(NicParameters(nic_kind=nic_kind), faults)  # type: ignore[arg-type]
    closing.callback(sides.close)
    partners = [sides.connect(0), sides.connect(1)]
    requests, buffers = [], []
    for number, size in enumerate(SIZES):
        for source in (0, 1):
            buffer = bytearray(size)
            receive = sides.sides[1 - source].endpoint.irecv(buffer, number)
            send = sides.sides[source].endpoint.isend(
                pattern(size, number + source), partners[source], number
            )
            requests += [(source, send, size), (1 - source, receive, size)]
            buffers.append((buffer, pattern(size, number + source)))
    for side, request, size in requests:
        status = sides.wait(side, request)
        assert (status.code, status.length) == ("success", size)
    for buffer, expected in buffers:
        assert buffer == expected
    if faults is None:
        sides.until(sides.all_arrived)
    else:
        counters = [side.counters() for side in sides.sides]
        assert all(each["link_lost"] > 0 and each["rx_bad_fcs"] > 0 for each in counters)


def test_each_end_tells_the_time_by_its_own_clock(closing: ExitStack) -> None:
    """Sent at one time since the clocks began, a frame arrives the link's delay later."""
    sides = Sides(PLAIN)
    closing.callback(sides.close)
    traces = []
    for side in sides.sides:
        segment = Segment.anonymous(Trace.size_bytes(2, 64), SEGMENT_TRACE)
        traces.append(Trace.create(segment, 2, 64))
        side.nic.use_trace(traces[-1], NIC)
    sides.set_clocks(5_000)
    sides.connect(0)
    [sent] = [r.time_ns for r in traces[0].records() if r.kind == "tx_frame"][:1]
    [arrived] = [r.time_ns for r in traces[1].records() if r.kind == "rx_frame"][:1]
    assert sent - ORIGINS_NS[0] == 5_000
    assert arrived - ORIGINS_NS[1] == 5_000 + PLAIN.link_delay_ns


def test_a_full_link_is_tried_again(closing: ExitStack) -> None:
    """The socket takes no more: frames wait in the tx ring, in order, and none is lost."""
    nodes, (near, far) = Nodes(tx_ring_entries=1024), socket_pair()
    closing.callback(near.close)
    closing.callback(far.close)
    links = SocketEgress(nodes[1], 0, near, PLAIN), SocketIngress(0, near)
    sender = Firmware(nodes[1], *links, PLAIN)
    sent = 0
    while put_frame(nodes[1], "core_tx", 0, frame(sent % 256)):
        sent += 1
    now_ns = 0
    while sender.step_at(now_ns):
        pass
    assert sender.due_ns == now_ns + 5_000
    assert take_frames(nodes[0], "link", 1) == []
    receiver = SocketIngress(1, far)
    came: list[bytes] = []
    while len(came) < sent:
        came += [data for _, _, data, _ in receiver.arrivals(now_ns)]
        now_ns += 5_000
        sender.step_at(now_ns)
    assert came == [frame(number % 256) for number in range(sent)]


class Broken(PythonEgress):
    def reaches(self, node: int) -> bool:
        return True

    def carry(self, destination: int, frame: bytes, arrival_ns: int, bad_fcs: bool) -> None:
        raise ValueError("no carrier")


class Shrinking(PythonEgress):
    """Has the room that it is given, one answer after the other, and raises after the last."""

    def __init__(self, node: Node, faults: LinkFaults, answers: list[int]) -> None:
        super().__init__(node, 0, 0, faults)
        self.answers = answers
        self.carried: list[bytes] = []

    def reaches(self, node: int) -> bool:
        return True

    def room(self, destination: int) -> int:
        if not self.answers:
            raise ValueError("no room")
        return self.answers.pop(0)

    def carry(self, destination: int, frame: bytes, arrival_ns: int, bad_fcs: bool) -> None:
        self.carried.append(frame)


class BrokenIngress(PythonIngress):
    calls = 0

    def arrivals(self, now_ns: int) -> list[tuple[int, int, bytes, bool]]:
        self.calls += 1
        raise ValueError("no carrier")


def test_an_exception_of_a_link_ends_the_run() -> None:
    nodes = Nodes()
    nic = Firmware(nodes[1], Broken(nodes[1], 0, 0), PythonIngress(), PLAIN)
    put_frame(nodes[1], "core_tx", 0, frame())
    with pytest.raises(ValueError, match="no carrier"):
        nic.step_at(0)
    ingress = BrokenIngress()
    nic = Firmware(nodes[0], Broken(nodes[0], 0, 0), ingress, PLAIN)
    for _ in range(2):
        with pytest.raises(ValueError, match="no carrier"):
            nic.step_at(0)
    assert ingress.calls == 1, "it was called again after it had failed"


# Frames are doubled; are held until others overtake them; and both.
FAULTS = {
    "duplicate": LinkFaults(duplicate=1.0),
    "reorder": LinkFaults(reorder=1.0, reorder_degree=1),
    "both": LinkFaults(duplicate=1.0, reorder=0.5, reorder_degree=1),
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_a_link_that_fails_under_faults_ends_the_run(faults: LinkFaults) -> None:
    nodes = Nodes()
    nic = Firmware(nodes[1], Broken(nodes[1], 0, 0, faults), PythonIngress(), PLAIN)
    for number in range(4):
        put_frame(nodes[1], "core_tx", 0, frame(number))

    def steps() -> None:
        for now_ns in range(0, 400_000, 100_000):
            nic.step_at(now_ns)

    with pytest.raises(ValueError, match="no carrier"):
        steps()


def test_room_that_fails_between_the_frames_ends_the_run() -> None:
    nodes = Nodes()
    egress = Shrinking(nodes[1], LinkFaults(duplicate=1.0), [2])
    nic = Firmware(nodes[1], egress, PythonIngress(), PLAIN)
    for number in range(2):
        put_frame(nodes[1], "core_tx", 0, frame(number))
    with pytest.raises(ValueError, match="no room"):
        nic.step_at(0)
    assert egress.carried == [frame(0)] * 2


def test_a_frame_that_was_given_room_keeps_it() -> None:
    """The link has room for a frame and its copy, and none by the time that they are sent."""
    nodes = Nodes()
    egress = Shrinking(nodes[1], LinkFaults(duplicate=1.0), [2, 0, 0, 0])
    assert egress.send(0, 0, frame(1))
    assert egress.carried == [frame(1)] * 2
    assert not egress.send(0, 0, frame(2))
    assert egress.carried == [frame(1)] * 2
    assert egress.failure is None


def test_a_held_frame_waits_for_room() -> None:
    nodes = Nodes()
    egress = Shrinking(nodes[1], LinkFaults(reorder=1.0), [2, 0, 0, 1])
    assert egress.send(0, 0, frame(1))
    assert egress.flush_at(100_000) == 100_000 + 5_000  # due, and no room
    assert egress.flush_at(105_000) == 105_000 + 5_000
    assert egress.carried == []
    assert egress.flush_at(110_000) is None
    assert egress.carried == [frame(1)]
