"""A process that dies with an endpoint's lock in its hands, or anywhere else in a send."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import forked
from support.conditions import patient
from support.deaths import (
    die_holding_the_lock,
    in_child,
    lock_of,
    stop_holding_the_lock,
    take_lock,
)
from support.host_node import NIC, SESSION, HostNode, frame
from support.virtual_cluster import MILLISECOND, VirtualCluster, pattern

from shrimpmx.host import pull, regions
from shrimpmx.host.endpoint import close_dead
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.settings.mx import MxParameters

UNEXPECTED_NEXT_AT = 104  # of layout.h
MX = MxParameters(zombies_max=8)
START_LIMIT_S = patient(30.0)
HANG_LIMIT_S = round(patient(30))
LENGTHS = (0, 30, 100, 1452, 4096)
# Sent in turn.
MESSAGES = [pattern(LENGTHS[number % len(LENGTHS)], number) for number in range(40)]


def test_the_next_handler_goes_on() -> None:
    host = HostNode.make()
    host.receive(frame("tiny", data=b"before"))
    die_holding_the_lock(host)
    host.receive(frame("tiny", data=b"after"), frame("small", data=bytes(100)))
    assert [event["type"] for event in host.events()] == ["tiny", "tiny", "small"]
    die_holding_the_lock(host)
    assert pull.active(host.node, 0) == 0
    host.receive(frame("tiny", data=b"again"))
    assert len(host.events()) == 1


def test_the_next_local_sender_goes_on() -> None:
    host = HostNode.make()
    host.endpoints[1].open(77)
    host.endpoints[1].shared = True
    die_holding_the_lock(host)
    assert host.endpoints[1].command("tiny", 0, 0, session=host.endpoint.session, data=b"x") == 1
    assert len(host.events()) == 1


def test_the_owner_and_the_supervisor_can_close_it() -> None:
    host = HostNode.make()
    die_holding_the_lock(host)
    host.endpoint.close()
    host.endpoint.open(78)
    die_holding_the_lock(host)
    close_dead(host.node, 0)
    assert not host.endpoint.is_open


def test_a_lock_that_a_stopped_process_holds_is_not_waited_for() -> None:
    host = HostNode.make()
    pid = stop_holding_the_lock(host)
    try:
        assert not close_dead(host.node, 0)
        assert host.endpoint.is_open
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert close_dead(host.node, 0)
    assert not host.endpoint.is_open


def test_a_thread_that_takes_it_twice_is_told() -> None:
    host = HostNode.make()

    def is_told() -> bool:
        signal.alarm(HANG_LIMIT_S)
        results = [take_lock(host.node, host.layout) for _ in range(2)]
        return results == [0, errno.EDEADLK]

    assert forked.in_child(is_told)


def test_a_lock_that_a_stray_write_has_hit_is_refused() -> None:
    host = HostNode.make()
    # The number of a thread that no kernel gives.
    ctypes.c_uint32.from_buffer(lock_of(host.node, host.layout)).value = 0x3FFFFFFE

    def is_refused() -> bool:
        signal.alarm(HANG_LIMIT_S)
        host.receive(frame("tiny"))
        return not host.events()

    assert forked.in_child(is_refused)
    assert not close_dead(host.node, 0)


def test_sleepers_that_the_dead_left_asleep_are_woken() -> None:
    """The dead one had disarmed their slots, and was killed before it woke them."""
    host = HostNode.make()
    slots = [host.wait_slot(runner) for runner in range(host.control.runners_count)]
    words = [slot.arm() for slot in slots]
    hears, tells = os.pipe()

    def is_woken() -> bool:
        seen = slots[NIC].arm()
        os.write(tells, b"armed")
        return slots[NIC].sleep(seen, HANG_LIMIT_S * 10**9) == 0

    with ThreadPoolExecutor(1) as pool:
        sleeper = pool.submit(forked.in_child, is_woken)
        os.read(hears, 5)
        for slot in slots:
            slot.disarm()
        close_dead(host.node, 0)
        assert sleeper.result()
    os.close(hears)
    os.close(tells)
    # A word that has changed ends a sleep, an unchanged one would be a time-out.
    assert [slot.sleep(seen, 0) for slot, seen in zip(slots, words, strict=True)] == [0] * 4


def count_of_events(host: HostNode) -> memoryview:
    place = host.layout.endpoints_offset + UNEXPECTED_NEXT_AT
    memory: memoryview = host.node.segment.view()
    return memory[place : place + 4].cast("I")


def begin_a_pull(host: HostNode) -> None:
    pull.start(host.endpoint, 1, 0, length=1000, region=0)


def make_a_region(host: HostNode) -> None:
    regions.create(host.endpoint, bytearray(100), "process")


def destroy_a_region(host: HostNode) -> None:
    regions.destroy(host.endpoint, 0)


def pull_locally(host: HostNode) -> None:
    host.endpoint.shared = True
    pull.start(host.endpoint, 0, 1, length=1000, region=0)


def be_sent_to_locally(host: HostNode) -> None:
    host.endpoints[1].shared = True
    host.endpoints[1].command("tiny", 0, 0, session=SESSION + 1)  # which is refused


@pytest.mark.parametrize(
    "take_first",
    [begin_a_pull, make_a_region, destroy_a_region, pull_locally, be_sent_to_locally],
)
def test_whoever_takes_the_lock_first_repairs(take_first: Callable[[HostNode], None]) -> None:
    """A holder dies between publishing an event and counting it."""
    host = HostNode.make()
    host.receive(frame("tiny", data=b"published"))
    count_of_events(host)[0] -= 1
    die_holding_the_lock(host)
    take_first(host)
    host.receive(frame("tiny", data=b"next"))
    assert [bytes(event["data"])[:9] for event in host.events()] == [b"published", b"next"]


def test_of_a_dead_rank_neither_regions_nor_pulls_are_left() -> None:
    host = HostNode.make()
    number, _ = regions.create(host.endpoint, bytearray(1000), "process")
    assert pull.start(host.endpoint, 1, 0, length=1000, region=number) == 1
    assert pull.active(host.node, 0) == 1
    close_dead(host.node, 0)
    assert pull.active(host.node, 0) == 0
    assert regions.read(host.endpoint, number, 0, 1) is None
    host.receive(frame("tiny"))
    assert host.events() == []
    with pytest.raises(IndexError, match="no endpoint 2"):
        close_dead(host.node, 2)


def send_for_ever(cluster: VirtualCluster, match: int) -> None:
    """The life of a rank that sends to endpoint 1 of its node until it is killed."""
    sender = cluster.open(0, 0, MX)
    connect = sender.iconnect(0, 1)
    while (status := sender.test(connect)) is None:
        pass
    number = 0
    while True:
        assert status.source is not None
        request = sender.isend(MESSAGES[number % len(MESSAGES)], status.source, match)
        while sender.test(request) is None:
            pass
        number += 1


class Listener:
    """Takes the messages of such a rank, and checks them."""

    def __init__(self, cluster: VirtualCluster, receiver: Endpoint) -> None:
        self.cluster = cluster
        self.receiver = receiver
        self.count = 0
        self.buffer = bytearray(max(LENGTHS))
        self.receive = receiver.irecv(self.buffer, 1)

    def take_messages(self, number: int) -> None:
        """Wait until that many have come."""
        end = time.monotonic() + START_LIMIT_S
        while self.count < number:
            assert time.monotonic() < end, f"of {number} messages {self.count} came"
            self.take(0.001)
            self.cluster.advance(MILLISECOND)  # delayed acknowledgements

    def take(self, seconds: float) -> None:
        """What comes within that time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status = self.receiver.test(self.receive)
            if status is None:
                continue
            assert status.code == "success"
            assert self.buffer[: status.length] == MESSAGES[self.count % len(MESSAGES)]
            self.count += 1
            self.receive = self.receiver.irecv(self.buffer, 1)


@pytest.mark.parametrize("event_ring", ["lock-free", "reset"])
def test_a_sender_killed_at_any_instruction_harms_no_other(event_ring: str) -> None:
    """Again and again a local sender dies in full flight; its target hears others as before."""
    draw = random.Random(2)
    for _ in range(12):
        cluster = VirtualCluster(endpoints=3, event_ring=event_ring, event_ring_entries=64)
        listener = Listener(cluster, cluster.open(0, 1, MX))
        pid = in_child(lambda made=cluster: send_for_ever(made, 1))  # type: ignore[misc]
        try:
            listener.take_messages(draw.randint(1, 40))
            listener.take(draw.uniform(0.0, 0.02))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        listener.take(0.001)
        close_dead(cluster.nodes[0], 0)  # as the supervisor does
        hears(cluster, listener.receiver)


def hears(cluster: VirtualCluster, receiver: Endpoint) -> None:
    """A third rank's messages arrive."""
    other = cluster.open(0, 2, MX)
    partner = cluster.connect(other, 0, 1)
    for message in MESSAGES * 2:
        buffer = bytearray(max(LENGTHS))
        receive = receiver.irecv(buffer, 2)
        other.isend(message, partner, 2)
        assert cluster.wait(receiver, receive).length == len(message)
        assert buffer[: len(message)] == message
