"""Two processes, each with a node, a NIC and an endpoint that the other one has not mapped."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.clusters import on_both_engines, pingpong_pair, run
from support.conditions import patient
from support.socket_link import LOOK_EVERY_NS, Side, socket_link, socket_pair
from support.virtual_cluster import pattern
from support.vmmc_programs import cluster, flag_pingpong

from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.errors import InputError
from shrimpmx.mx.handles import Request, Status
from shrimpmx.settings.nic import NicParameters

SIZES = (0, 32, 100, 1000, 30_000, 400_000)
LIMIT_S = patient(60.0)


def step_until(side: Side, condition: Callable[[], object]) -> None:
    """Step a side on the real clock until the condition holds."""
    end_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end_s, "the other side does not answer"
        if not side.step():
            os.sched_yield()


def wait(side: Side, request: Request) -> Status:
    done: list[Status | None] = [None]

    def test() -> bool:
        done[0] = side.endpoint.test(request)
        return done[0] is not None

    step_until(side, test)
    assert done[0] is not None
    return done[0]


def exchange(index: int, end: socket.socket) -> Side:
    """Send a message of each size and receive one; both sides run this."""
    side = Side(index, end, NicParameters(), clock="monotonic", look_every_ns=LOOK_EVERY_NS)
    # The other side may not be there yet: the request is sent again until it is.
    partner = wait(side, side.endpoint.iconnect(1 - index, 0)).source
    assert partner is not None
    for number, size in enumerate(SIZES):
        buffer = bytearray(size)
        receive = side.endpoint.irecv(buffer, number)
        send = side.endpoint.isend(pattern(size, number + index), partner, number)
        for request in (receive, send):
            status = wait(side, request)
            assert (status.code, status.length) == ("success", size)
        assert buffer == pattern(size, number + 1 - index)
    return side


def other_side(end: socket.socket, told: int, ended: int) -> None:
    side = exchange(1, end)
    os.write(told, b"done")
    # What it sent last is acknowledged, and acknowledged to the other side.
    step_until(side, lambda: select.select([ended], [], [], 0)[0])


def test_two_processes_exchange_messages_of_every_size() -> None:
    near, far = socket_pair()
    done, tell = os.pipe()
    ended, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(end)
            other_side(far, tell, ended)
            status = 0
        finally:
            os._exit(status)
    try:
        os.close(tell)
        side = exchange(0, near)
        step_until(side, lambda: select.select([done], [], [], 0)[0])
        assert os.read(done, 4) == b"done"
        assert side.nic.due_ns is not None, "a NIC without a doorbell would not look again"
    finally:
        os.close(end)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        for descriptor in (done, ended):
            os.close(descriptor)
        near.close()
        far.close()


@on_both_engines
def test_a_run_goes_over_a_link_that_its_row_alone_describes() -> None:
    with socket_link() as name:
        result = run(pingpong_pair(2, 40_000, 1, link=name))
    for rank in ("rank0", "rank1"):
        assert result.counters[rank]["recv_messages"] == 3
    assert result.counters["node0.nic"]["rx_packets"] > 3


def test_no_sender_acts_for_a_nic_whose_node_it_has_not_mapped() -> None:
    spec, cpus = cluster(flag_pingpong(1)), Topology.from_synthetic("core:2 pu:1")
    assert place(spec, cpus).lends
    with socket_link() as name:
        assert not place(replace(spec, link=name), cpus).lends


def test_a_link_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="there is no link 'ring'; there are rings; did you"):
        pingpong_pair(link="ring")
