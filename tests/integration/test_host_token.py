"""NIC and irq agent in two processes: no packet is left behind, however they interleave."""

from __future__ import annotations

import os
import time

import pytest
from support.conditions import patient
from support.host_node import CORE0, NIC, HostNode, frame

from shrimpmx.link.rings import ring_links
from shrimpmx.nic.firmware import Firmware
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import put_frame

COUNT = 4000
LIMIT_S = patient(50.0)


def serve_interrupts(host: HostNode) -> None:
    """The irq agent's process: steps, sleeps never, ends on stop."""
    try:
        irq = host.irq()
        while host.control.stop_state() == "no":
            irq.step_at(0)
            host.endpoint.discard(1024)
            os.sched_yield()  # both processes may have to share one CPU
    finally:
        os._exit(0)


def play_nic(host: HostNode, coalescing: str) -> None:
    """Frames arrive in ones and twos, about when the handler is done with the ones before."""
    parameters = NicParameters.model_validate({"coalescing": coalescing, "rx_usecs": 1})
    firmware = Firmware(host.node, *ring_links([host.node], 0, parameters), parameters)
    packet = frame("tiny", peer=0, marked=True)
    handled = host.count(CORE0, "recv_packets")
    now_ns = sent = 0
    limit = time.monotonic() + LIMIT_S
    while handled.value < COUNT:
        if sent < COUNT and sent - handled.value < 2:
            assert put_frame(host.node, "link", 0, packet, now_ns)
            sent += 1
        now_ns += 700
        firmware.step_at(now_ns)
        os.sched_yield()
        assert time.monotonic() < limit, f"{host.counters()} {host.counters(NIC)}"


@pytest.mark.parametrize("coalescing", ["disabled", "open-mx", "timeout"])
def test_no_packet_is_left_behind(coalescing: str) -> None:
    host = HostNode.make(
        nodes_count=1, cores=1, core_runners=[1], core_agents=[1], event_ring_entries=1024
    )
    child = os.fork()
    if child == 0:
        serve_interrupts(host)
    try:
        play_nic(host, coalescing)
    finally:
        host.control.set_stop("finish")
        os.waitpid(child, 0)
    nic, irq = host.control.agent_counters(NIC), host.control.agent_counters(CORE0)
    assert irq["recv_packets"] == nic["rx_packets"] == COUNT
    assert 0 <= nic["irq_raised"] - irq["interrupts"] <= 1  # one may be on its way at the end
    remembered = nic["irq_wished"] - nic["irq_raised"] - nic["irq_absorbed"]
    assert remembered in (0, 1)
