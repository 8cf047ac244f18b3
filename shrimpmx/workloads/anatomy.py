"""Single messages, each on a quiet network, with everything that one of them moves counted.

The coalescing paper looks at one large message so (IV-C3, Table II): how long it takes, and how
many interrupts it raises on both hosts. After each message both ranks keep quiet, so that its
delayed acknowledgement (16 ms) and the coalescing timer belong to it and not to the next. For how
long is drawn anew each time: a NIC's timer that runs on meanwhile would else meet each message
in the same phase.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shrimpmx.errors import InputError, MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Status
from shrimpmx.shared.control import Control
from shrimpmx.shared.counter_texts import LONGEST
from shrimpmx.workloads.silence import PATIENCE_NS, ask

MATCH = 0x616E6174
# Between two looks at an agent's work while the network is quiet, ns (ours).
LOOK_NS = 200_000
# Counters that go on while nothing happens.
IDLE_COUNTERS = frozenset({"steps", "progress_calls", "timer_ticks", "loops"})
# What the name of a counted array begins with; the agent and the counter follow.
COUNTED = "counted"

Arrays = dict[str, NDArray[np.int64]]
Counters = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Messages:
    """`warmup` + `iterations` messages of `size_bytes`, and quiet after each, by `seed`.

    The quiet lasts from `quiet_ns` to half as long again.
    """

    size_bytes: int
    iterations: int
    warmup: int
    quiet_ns: int
    seed: int = 1

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.warmup < 0 or self.quiet_ns < 0:
            raise InputError(
                "an anatomy needs iterations of at least 1, and warmup and quiet_ns of at least 0, "
                f"not {self.iterations}, {self.warmup} and {self.quiet_ns}"
            )

    @property
    def count(self) -> int:
        """All messages."""
        return self.warmup + self.iterations


def send_messages(
    endpoint: Endpoint, partner: Partner, messages: Messages, control: Control
) -> Arrays:
    """Send them one at a time.

    Returns "sent_ns" and "acknowledged_ns" (int64, run clock, one per message behind the warm-up:
    just before the send, and when its request was done), and for every counter of an agent that
    moved "counted:AGENT:COUNTER", by how much for each message.
    """
    data = pattern(messages.size_bytes)
    draw = random.Random(messages.seed)
    sent, done = (np.zeros(messages.count, dtype=np.int64) for _ in range(2))
    tables: list[Counters] = []
    keep_quiet(endpoint, messages.quiet_ns)
    before = control.counters()
    for number in range(messages.count):
        stamp(data, number)
        sent[number] = endpoint.host.now_ns()
        _check(endpoint.wait(endpoint.isend(data, partner, MATCH)), number)
        done[number] = endpoint.host.now_ns()
        keep_quiet(endpoint, round(messages.quiet_ns * draw.uniform(1.0, 1.5)))
        after = control.counters()
        tables.append(moved(before, after))
        before = after
    skip = messages.warmup
    return {"sent_ns": sent[skip:], "acknowledged_ns": done[skip:], **counted(tables[skip:])}


def receive_messages(endpoint: Endpoint, partner: Partner, messages: Messages) -> Arrays:
    """Receive them, each posted before it is sent, and check every byte.

    Returns "received_ns": when each receive was done (int64, run clock). MxError if `partner`,
    which sends them, dies.
    """
    expected = pattern(messages.size_bytes)
    buffers = [np.zeros(max(1, messages.size_bytes), dtype=np.uint8) for _ in range(2)]
    received = np.zeros(messages.count, dtype=np.int64)
    request = endpoint.irecv(_part(buffers[0], messages), MATCH)
    for number in range(messages.count):
        status = endpoint.wait(request, PATIENCE_NS + messages.quiet_ns)
        while status is None:
            ask(endpoint, partner)
            status = endpoint.wait(request, PATIENCE_NS)
        _check(status, number)
        received[number] = endpoint.host.now_ns()
        if number + 1 < messages.count:
            request = endpoint.irecv(_part(buffers[(number + 1) % 2], messages), MATCH)
        stamp(expected, number)
        here = _part(buffers[number % 2], messages)
        if status.length != messages.size_bytes or not np.array_equal(here, expected):
            raise MxError(f"message {number} was received damaged", "corrupted")
    return {"received_ns": received[messages.warmup :]}


def _part(buffer: NDArray[np.uint8], messages: Messages) -> NDArray[np.uint8]:
    return buffer[: messages.size_bytes]


def _check(status: Status | None, number: int) -> None:
    if status is None or status.code != "success":
        raise MxError(f"message {number} ended with {status}", "failed")


def pattern(size_bytes: int) -> NDArray[np.uint8]:
    """Bytes that differ by place, so that a packet in another's place is seen."""
    place = np.arange(size_bytes, dtype=np.uint32)
    return (place * 37 + place // 1468 * 11).astype(np.uint8)


def stamp(data: NDArray[np.uint8], number: int) -> None:
    """Write a message's number at its start, as far as it has room."""
    words = np.frombuffer(number.to_bytes(8, "little"), dtype=np.uint8)
    room = min(data.size, words.size)
    data[:room] = words[:room]


def keep_quiet(endpoint: Endpoint, quiet_ns: int) -> None:
    """Answer what comes, but send nothing of one's own for `quiet_ns`."""
    until_ns = endpoint.host.now_ns() + quiet_ns
    while endpoint.host.now_ns() < until_ns:
        endpoint.progress()
        endpoint.host.sleep(LOOK_NS)


def moved(before: Mapping[str, Mapping[str, int]], after: Counters) -> Counters:
    """By how much each counter went on; without those that stayed, never stay or do not add up."""
    found: Counters = {}
    for agent, values in after.items():
        for name, value in values.items():
            step = value - before[agent][name]
            if step and name not in IDLE_COUNTERS and not name.endswith(LONGEST):
                found.setdefault(agent, {})[name] = step
    return found


def counted(tables: list[Counters]) -> Arrays:
    """One array per agent and counter, with an entry for each table."""
    keys = sorted({(agent, name) for table in tables for agent in table for name in table[agent]})
    return {
        f"{COUNTED}:{agent}:{name}": np.array(
            [table.get(agent, {}).get(name, 0) for table in tables], dtype=np.int64
        )
        for agent, name in keys
    }
