"""A switch under the virtual clock: queues, drops, pauses and turns, to the nanosecond."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from support.capture import new_capture
from support.memory import make_control
from support.packets import node_address

from shrimpmx.errors import InputError
from shrimpmx.link.ends import Egress
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import take_frames
from shrimpmx.shared.private import private_node
from shrimpmx.simulation.switch import Switch, switch_links

# With 24 bytes between frames one takes 100 ns on a link, and 50 to the other end.
FRAME_BYTES, FRAME_NS, LINK_NS = 76, 100, 50
SWITCH_NS = 30
FLIGHT_NS = 2 * (FRAME_NS + LINK_NS) + SWITCH_NS


def plain(**more: object) -> NicParameters:
    values = {
        "link_bits_per_second": 8_000_000_000,
        "link_delay_ns": LINK_NS,
        "network": "switch",
        "switch_delay_ns": SWITCH_NS,
        **more,
    }
    return NicParameters.model_validate(values)


def frame(source: int, destination: int) -> bytes:
    head = node_address(destination) + node_address(source) + b"\x86\xdf"
    return head.ljust(FRAME_BYTES, b"\0")


@dataclass
class Arrival:
    time_ns: int
    source: int


class Star:
    """Nodes at a switch, or at two that are joined, the even ones at the first."""

    def __init__(
        self,
        count: int,
        parameters: NicParameters,
        switches: int = 1,
        faults: LinkFaults | None = None,
    ) -> None:
        names = [f"switch{number}" for number in range(switches)]
        agents = [(f"node{i}.nic", "nic", 0) for i in range(count)]
        agents += [(name, "switch", 2) for name in names] + [("irq", "irq", 1)]
        control = make_control(["nic", "irq", "switches"], agents, count)
        layouts = [
            NodeLayout.from_parameters(
                parameters,
                HostParameters(),
                index=i,
                nodes_count=count,
                nic_agent=i,
                core_runners=[1],
                core_agents=[count + switches],
            )
            for i in range(count)
        ]
        self.control, self.count = control, count
        self.nodes = [private_node(control, layout.place()) for layout in layouts]
        slot_bytes = layouts[0].frame_slot_bytes
        self.switches = [
            Switch(control, count + number, parameters, slot_bytes, count, count + 1)
            for number in range(switches)
        ]
        self.links: list[Egress] = []
        for node in self.nodes:
            switch = self.switches[node.index % switches]
            port = switch.attach(node)
            self.links.append(switch_links(node, switch, port, parameters, faults)[0])
        if switches == 2:
            here, there = self.switches[0].join(self.switches[1])
            self.switches[0].route_up(here)
            self.switches[1].route_up(there)

    def send(self, source: int, destination: int, now_ns: int = 0) -> bool:
        return self.links[source].send(now_ns, destination, frame(source, destination))

    def run(self, until_ns: int = 10**9) -> None:
        """Ring the switches' doorbells, and step each one when it is due."""
        for link in self.links:
            link.flush_at(0)
        now_ns = 0
        while now_ns <= until_ns:
            for switch in self.switches:
                switch.step_at(now_ns)
            due = [switch.due_ns for switch in self.switches if switch.due_ns is not None]
            if not due:
                return
            now_ns = max(now_ns, min(due))

    def arrivals(self, node: int) -> list[Arrival]:
        taken = take_frames(self.nodes[node], "link", 0)
        return [Arrival(time_ns, data[11]) for time_ns, data in taken]

    def counted(self, switch: int = 0) -> dict[str, int]:
        return self.control.agent_counters(self.count + switch)


def sources(arrivals: list[Arrival]) -> list[int]:
    return [each.source for each in arrivals]


def times(arrivals: list[Arrival]) -> list[int]:
    return [each.time_ns for each in arrivals]


def test_a_frame_is_stored_and_forwarded() -> None:
    star = Star(2, plain())
    assert star.send(0, 1)
    star.run()
    assert star.arrivals(1) == [Arrival(FLIGHT_NS, 0)]
    counted = star.counted()
    assert (counted["switch_packets"], counted["switch_bytes"]) == (1, FRAME_BYTES)


def test_two_switches_take_twice_as_long() -> None:
    star = Star(2, plain(), switches=2)
    assert star.send(0, 1)
    star.run()
    assert times(star.arrivals(1)) == [FLIGHT_NS + SWITCH_NS + FRAME_NS + LINK_NS]


def test_frames_for_one_output_queue_and_others_pass() -> None:
    star = Star(4, plain())
    for source, destination in ((0, 3), (1, 3), (2, 1)):
        assert star.send(source, destination)
    star.run()
    assert times(star.arrivals(3)) == [FLIGHT_NS, FLIGHT_NS + FRAME_NS]
    assert times(star.arrivals(1)) == [FLIGHT_NS]


def test_a_frame_for_a_full_queue_is_dropped() -> None:
    star = Star(4, plain(switch_buffer_packets=2))
    for source in range(3):
        assert star.send(source, 3)
    star.run()
    assert len(star.arrivals(3)) == 2
    counted = star.counted()
    assert (counted["switch_packets"], counted["switch_dropped"]) == (2, 1)


def test_a_queue_has_room_again_when_a_frame_has_left() -> None:
    star = Star(3, plain(switch_buffer_packets=1))
    # The second one comes when the first has just left, the third in the middle of the second.
    for source, at_ns in ((0, 0), (1, FRAME_NS), (0, FRAME_NS + FRAME_NS // 2)):
        assert star.send(source, 2, at_ns)
    star.run()
    assert times(star.arrivals(2)) == [FLIGHT_NS, FLIGHT_NS + FRAME_NS]
    assert star.counted()["switch_dropped"] == 1


def test_a_frame_waits_for_room_where_the_switch_pauses() -> None:
    star = Star(4, plain(switch_buffer_packets=2, switch_when_full="pause"))
    for source in range(3):
        assert star.send(source, 3)
    star.run()
    assert times(star.arrivals(3)) == [FLIGHT_NS + turn * FRAME_NS for turn in range(3)]
    counted = star.counted()
    assert counted["switch_dropped"] == 0
    # From its entry until the first has left.
    assert (counted["switch_paused"], counted["switch_paused_ns"]) == (1, FRAME_NS)


def test_a_paused_link_takes_no_more_frames_and_loses_none() -> None:
    star = Star(3, plain(switch_buffer_packets=1, switch_when_full="pause", link_ring_entries=16))
    sent = 0
    for _ in range(20):
        sent += star.send(0, 2)
        sent += star.send(1, 2)
    assert sent == 32
    star.run(FLIGHT_NS + 10 * FRAME_NS)
    assert star.send(0, 2)
    arrived: list[Arrival] = []
    for _ in range(4):  # as the NIC makes room in its own ring
        star.run()
        arrived += star.arrivals(2)
    assert len(arrived) == 33
    assert times(arrived) == sorted(times(arrived))


def test_paused_senders_have_their_turns() -> None:
    star = Star(4, plain(switch_buffer_packets=1, switch_when_full="pause"))
    for _ in range(5):
        for source in range(3):
            assert star.send(source, 3)
    star.run()
    found = sources(star.arrivals(3))
    assert [sorted(found[turn : turn + 3]) for turn in range(0, 15, 3)] == [[0, 1, 2]] * 5


def test_senders_lose_alike_where_frames_are_dropped() -> None:
    star = Star(5, plain(switch_buffer_packets=1))
    for _ in range(40):
        for source in range(4):
            assert star.send(source, 4)
    star.run()
    found = Counter(sources(star.arrivals(4)))
    assert set(found) == {0, 1, 2, 3}
    assert max(found.values()) - min(found.values()) <= 1


def test_a_frame_to_no_node_is_dropped() -> None:
    star = Star(2, plain())
    strange = b"\x01\x02\x03\x04\x05\x06" + frame(0, 1)[6:]
    assert star.links[0].send(0, 1, strange)
    star.run()
    assert star.counted()["switch_dropped"] == 1


def test_a_damaged_frame_is_dropped_by_the_first_switch() -> None:
    star = Star(2, plain(), switches=2, faults=LinkFaults(corrupt=1.0, seed=1))
    for _ in range(3):
        assert star.send(0, 1)
    star.run()
    assert not star.arrivals(1)
    assert star.counted()["switch_dropped"] == 3
    assert star.counted(1)["switch_packets"] == 0


def test_a_switch_has_no_more_ways_up_than_ports() -> None:
    switch = Star(2, plain()).switches[0]
    for _ in range(3):
        switch.route_up(0)
    with pytest.raises(InputError, match="ports"):
        switch.route_up(0)
    with pytest.raises(InputError, match="port 7"):
        switch.route_up(7)


def test_a_capture_has_the_frames_that_a_switch_drops() -> None:
    star = Star(3, plain(switch_buffer_packets=1))
    capture = new_capture(ends=4)
    [switch] = star.switches
    switch.use_capture(capture, 3)
    for source in (0, 1):
        for _ in range(3):
            assert star.send(source, 2)
    star.run()
    dropped = star.counted()["switch_dropped"]
    kept = capture.frames_of(3)
    assert len(kept) == dropped > 0
    assert {each.data for each in kept} <= {frame(0, 2), frame(1, 2)}
    assert all(each.dropped is not None for each in kept)
