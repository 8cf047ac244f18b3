"""A rank that polls the rx ring and is killed at any instruction."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest
from support.agents import make_irq
from support.conditions import wait_until
from support.host_node import CORE0, RANK, SESSION, HostNode, frame

from shrimpmx.host.endpoint import close_dead
from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.shared.node import put_frame

FREE, OF_RANK = 1, 65536 + RANK  # tokens
WATCHDOG, SUSPEND = 1, 2  # enum busy_poll
SUSPEND_NS, FLUSH_NS, DEFERS = 1_000_000, 20_000, 10
RUNS, RUNS_MAX = 20, 400


def poll_for_ever(host: HostNode) -> None:
    """Eight frames come, a pass takes them, and so on."""
    tiny = frame("tiny")
    with Endpoint(
        host.node, 0, RANK, agent=RANK, session_id=SESSION,
        busy_poll=BusyPoll(host.node, 0, SUSPEND_NS),
    ) as endpoint:  # fmt: skip
        while True:
            for _ in range(8):
                put_frame(host.node, "rx", 0, tiny)
            endpoint.progress()


def killed_while_polling(how: int, seconds: float) -> HostNode:
    """A node whose only rank was killed some time after it had begun to poll."""
    host = HostNode.make(
        opened=False, busy_poll=how, event_ring_entries=1024, rx_ring_entries=1024,
        tx_ring_entries=1024,
    )  # fmt: skip
    pid = os.fork()
    if pid == 0:
        try:
            poll_for_ever(host)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    wait_until(lambda: host.counters().get("busy_polls", 0) > 0, "the rank polls")
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return host


@pytest.mark.parametrize("how", [WATCHDOG, SUSPEND])
def test_no_frame_is_left_and_interrupts_are_on_again(how: int) -> None:
    draw = random.Random(5)
    in_poll = runs = 0
    while runs < RUNS or (in_poll == 0 and runs < RUNS_MAX):
        runs += 1
        host = killed_while_polling(how, draw.uniform(0.0, 0.002))
        in_poll += host.token() == OF_RANK
        close_dead(host.node, 0)
        put_frame(host.node, "rx", 0, frame("tiny"))
        if host.token() == FREE:
            host.raise_interrupt()  # as the NIC does for frames that are not taken
        irq = make_irq(host.node, 0, CORE0, defer_hard_irqs=DEFERS, flush_timeout_ns=FLUSH_NS)
        for now_ns in range(0, SUSPEND_NS + 4 * DEFERS * FLUSH_NS, FLUSH_NS):
            irq.step_at(now_ns)
        assert (host.node.ring_depths()["rx", 0], host.token()) == (0, FREE)
    assert in_poll > 0, "none was caught in the middle of a poll"
