"""The workloads of Open-MX's ranks, by the names that scenarios use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.rank import CONNECT_LIMIT_NS, RankSamples
from shrimpmx.shared.control import Control
from shrimpmx.workloads.anatomy import Messages, receive_messages, send_messages
from shrimpmx.workloads.invalid_packets import await_invalid_packets
from shrimpmx.workloads.messages import pingpong, receive_stream, send_stream
from shrimpmx.workloads.soak import Plan, Reporter, Soak

Workload = Callable[[MxRank], RankSamples]


def _pingpong(rank: MxRank) -> RankSamples:
    """Options: size_bytes, iterations, warmup, delay_ns, move_every (round trips
    after which both ranks move to their next cores); the lower rank begins.
    """
    options = rank.options
    half_ns = pingpong(
        rank.endpoint,
        rank.partner,
        rank.number < rank.peer,
        options["size_bytes"],
        options["iterations"],
        options["warmup"],
        options["delay_ns"],
        rank.move,
        options["move_every"],
    )
    return {"half_round_trip_ns": half_ns}


def _stream(rank: MxRank) -> RankSamples:
    """Options: size_bytes, iterations and warmup (messages), window; the lower rank sends.

    In generator mode the generator sends, and its data is not checked.
    """
    options = rank.options
    size_bytes, window = options["size_bytes"], options["window"]
    count = options["iterations"] + options["warmup"]
    if rank.number < rank.peer and not rank.generated:
        figures = send_stream(rank.endpoint, rank.partner, size_bytes, count, window)
    else:
        figures = receive_stream(
            rank.endpoint,
            size_bytes,
            count,
            window,
            verify=not rank.generated,
            partner=rank.partner,
        )
    return {name: np.atleast_1d(np.asarray(value, np.int64)) for name, value in figures.items()}


def _anatomy(rank: MxRank) -> RankSamples:
    """Options: size_bytes, iterations, warmup, delay_ns; the lower rank sends.

    The quiet after a message lasts from delay_ns to half as long again.
    """
    options = rank.options
    messages = Messages(
        options["size_bytes"],
        options["iterations"],
        options["warmup"],
        options["delay_ns"],
        rank.seed_of("quiet", min(rank.number, rank.peer)),
    )
    if rank.number < rank.peer:
        return send_messages(rank.endpoint, rank.partner, messages, rank.control)
    return receive_messages(rank.endpoint, rank.partner, messages)


def _soak(rank: MxRank) -> RankSamples:
    """Options: iterations (messages each way), window, report_s 0: between rank 0's reports."""
    options = rank.options
    plan = Plan(
        rank.seed_of("messages", min(rank.number, rank.peer)),
        options["iterations"],
        options["window"],
    )
    soak = Soak(rank.endpoint, rank.partner, int(rank.number > rank.peer), plan)
    report = None
    if options.get("report_s") and rank.number == 0:
        total = plan.messages * rank.size
        received = partial(_received, rank.control)
        report = Reporter(rank.host, received, total, options["report_s"])
    soak.run(report)
    return {"messages": np.array([soak.received]), "bytes": np.array([soak.bytes_received])}


def _received(control: Control) -> int:
    """Messages that all ranks have received."""
    return sum(counters.get("recv_messages", 0) for counters in control.counters().values())


def _invalid(rank: MxRank) -> RankSamples:
    """Options: iterations, warmup (packets); the generator sends, from when we connect."""
    options = rank.options

    def begin() -> None:
        rank.endpoint.connect(1, 0, timeout_ns=CONNECT_LIMIT_NS)

    warmup = options["warmup"]
    return await_invalid_packets(rank.host, begin, warmup + options["iterations"], warmup)


def _idle(rank: MxRank) -> RankSamples:
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
