"""The workloads of Open-MX's ranks, by the names that scenarios use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.shared.control import Control
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.anatomy import Messages, receive_messages, send_messages
from shrimpmx.workloads.invalid_packets import await_invalid_packets
from shrimpmx.workloads.pingpong import pingpong
from shrimpmx.workloads.soak import Plan, Reporter, Soak
from shrimpmx.workloads.stream import receive_stream, send_stream

Samples = dict[str, NDArray[np.int64]]

CONNECT_LIMIT_NS = 20_000_000_000


@dataclass
class RankContext:
    """What a workload gets: its rank, its open endpoint and its partners by rank.

    In generator mode (`generated`) the generator is partner 1. `options` are the rank's own;
    `move` moves its process to another core.
    """

    number: int
    ranks_count: int
    endpoint: Endpoint
    partners: dict[int, Partner]
    waiter: Waiter
    control: Control
    options: Mapping[str, Any]
    seed: int
    generated: bool = False
    move: Callable[[], None] | None = None

    @property
    def peer(self) -> int:
        """The rank it talks to: option `peer`, or its neighbour in pairs 0-1, 2-3, ..."""
        return int(self.options.get("peer", self.number ^ 1))

    @property
    def partner(self) -> Partner:
        """The partner to send to that rank."""
        return self.partners[self.peer]


Workload = Callable[[RankContext], Samples]


def _pingpong(context: RankContext) -> Samples:
    """Options: size_bytes 0, iterations 1000, warmup 100, delay_ns 0, move_every 0 (round trips
    after which both ranks move to their next cores); the lower rank begins.
    """
    options = context.options
    half_ns = pingpong(
        context.endpoint,
        context.partner,
        context.number < context.peer,
        options.get("size_bytes", 0),
        options.get("iterations", 1000),
        options.get("warmup", 100),
        options.get("delay_ns", 0),
        context.move,
        options.get("move_every", 0),
    )
    return {"half_round_trip_ns": half_ns}


def _stream(context: RankContext) -> Samples:
    """Options: size_bytes 0, count 10000, window 64; the lower rank sends.

    In generator mode the generator sends, and its data is not checked.
    """
    options = context.options
    size_bytes, count = options.get("size_bytes", 0), options.get("count", 10_000)
    window = options.get("window", 64)
    if context.number < context.peer and not context.generated:
        figures = send_stream(context.endpoint, context.partner, size_bytes, count, window)
    else:
        figures = receive_stream(
            context.endpoint,
            size_bytes,
            count,
            window,
            verify=not context.generated,
            partner=context.partner,
        )
    return {name: np.atleast_1d(np.asarray(value, np.int64)) for name, value in figures.items()}


def _anatomy(context: RankContext) -> Samples:
    """Options: size_bytes 0, iterations 1000, warmup 100, delay_ns 0; the lower rank sends.

    The quiet after a message lasts from delay_ns to half as long again.
    """
    options = context.options
    messages = Messages(
        options.get("size_bytes", 0),
        options.get("iterations", 1000),
        options.get("warmup", 100),
        options.get("delay_ns", 0),
        context.seed,
    )
    if context.number < context.peer:
        return send_messages(context.endpoint, context.partner, messages, context.control)
    return receive_messages(context.endpoint, messages, context.control)


def _soak(context: RankContext) -> Samples:
    """Options: messages 10000 (each way), window 16, report_s 0: between rank 0's reports."""
    options = context.options
    plan = Plan(
        (context.seed - context.number) * 1000 + min(context.number, context.peer),
        options.get("messages", 10_000),
        options.get("window", 16),
    )
    soak = Soak(context.endpoint, context.partner, int(context.number > context.peer), plan)
    report = None
    if options.get("report_s") and context.number == 0:
        total = plan.messages * context.ranks_count
        report = Reporter(lambda: _received(context.control), total, options["report_s"])
    soak.run(report)
    return {"messages": np.array([soak.received]), "bytes": np.array([soak.bytes_received])}


def _received(control: Control) -> int:
    """Messages that all ranks have received."""
    return sum(
        control.agent_counters(number).get("recv_messages", 0)
        for number in range(control.agents_count)
    )


def _invalid(context: RankContext) -> Samples:
    """Options: count 10000, warmup 0; the generator sends, from when we connect."""
    options = context.options

    def begin() -> None:
        context.endpoint.connect(1, 0, timeout_ns=CONNECT_LIMIT_NS)

    count, warmup = options.get("count", 10_000), options.get("warmup", 0)
    return await_invalid_packets(context.control, begin, count, warmup)


def _idle(context: RankContext) -> Samples:
    """Does nothing; for the cost of launching and ending."""
    return {}


# By the name that scenarios use.
WORKLOADS: dict[str, Workload] = {
    "pingpong": _pingpong,
    "stream": _stream,
    "anatomy": _anatomy,
    "soak": _soak,
    "invalid": _invalid,
    "idle": _idle,
}
