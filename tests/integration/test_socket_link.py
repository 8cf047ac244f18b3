"""Two processes, each with a node, a NIC and an endpoint that the other one has not mapped."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable

from support.conditions import patient
from support.socket_link import Side, socket_pair
from support.virtual_cluster import pattern

from shrimpmx.mx.handles import Request, Status
from shrimpmx.settings.nic import NicParameters

SIZES = (0, 32, 100, 1000, 30_000, 400_000)
LIMIT_S = patient(60.0)
POLL_NS = 20_000


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
    side = Side(index, end, NicParameters(), clock="monotonic", poll_ns=POLL_NS)
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
