"""What a rank's process does: opens its endpoint, connects, meets the others, works, reports."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shrimpmx.cluster.agents import agent_numbers
from shrimpmx.cluster.parts import RunParts
from shrimpmx.cluster.placement import ProcessPlan
from shrimpmx.errors import AbortedError, AgentError, InputError
from shrimpmx.host.busy_poll import BusyPoll
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.native.perf import usage
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import BUSY_POLLS
from shrimpmx.shared.heap import Heap
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.anatomy import Messages, receive_messages, send_messages
from shrimpmx.workloads.invalid_packets import await_invalid_packets
from shrimpmx.workloads.pingpong import pingpong
from shrimpmx.workloads.soak import Plan, Reporter, Soak
from shrimpmx.workloads.stream import receive_stream, send_stream

Samples = dict[str, NDArray[np.int64]]

# How long ranks wait for each other at the start; a machine that swaps needs a while.
MEETING_LIMIT_S = 30.0
CONNECT_LIMIT_NS = 20_000_000_000
# Between two looks at the other ranks while there is nothing to measure.
LOOK_S = 0.0002
# The same while others still measure.
LINGER_LOOK_S = 0.001


@dataclass
class RankContext:
    """What a workload gets: its rank, its open endpoint and its partners by rank.

    In generator mode (`generated`) the generator is partner 1. `options` are the rank's own.
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
    """Options: size_bytes 0, iterations 1000, warmup 100, delay_ns 0; the lower rank begins."""
    options = context.options
    half_ns = pingpong(
        context.endpoint,
        context.partner,
        context.number < context.peer,
        options.get("size_bytes", 0),
        options.get("iterations", 1000),
        options.get("warmup", 100),
        options.get("delay_ns", 0),
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


def workload(name: str) -> Workload:
    """The workload called `name`; InputError naming those there are."""
    if name not in WORKLOADS:
        known = ", ".join(sorted(WORKLOADS)) or "none"
        raise InputError(f"there is no workload {name!r}; there are {known}")
    return WORKLOADS[name]


def run_rank(parts: RunParts, plan: ProcessPlan, index: int, waiter: Waiter) -> None:
    """The life of the rank process `index`; reports "ready", then "done" with its figures."""
    number = plan.agents[0].number
    rank = parts.spec.ranks[number]
    control = parts.memory.control
    work = workload(rank.workload)
    agent = agent_numbers(parts.placement)[plan.agents[0].name]
    with Endpoint(
        parts.memory.nodes[rank.node],
        parts.spec.endpoints[number],
        index,
        waiter=waiter,
        parameters=parts.spec.mx,
        agent=agent,
        busy_poll=_busy_poll(parts, number),
    ) as endpoint:
        if parts.memory.trace is not None:
            endpoint.use_trace(parts.memory.trace, agent)
        control.set_runner_state(index, "ready")
        parts.channel.send(plan.name, "ready")
        if not control.wait_started(MEETING_LIMIT_S):
            raise AgentError(f"{plan.name} was not started within {MEETING_LIMIT_S} s")
        with waiter:
            context = RankContext(
                number,
                len(parts.spec.ranks),
                endpoint,
                _connect(parts, number, endpoint),
                waiter,
                control,
                rank.options,
                parts.spec.seed + number,
                parts.spec.mode == "generator",
            )
            _meet(parts, index, endpoint)
            _work(parts, plan, index, work, context)
        _linger(control, endpoint)


def _busy_poll(parts: RunParts, number: int) -> BusyPoll | None:
    """What the rank polls its node's rx ring with, if ranks do so under the run's strategy."""
    if parts.spec.nic.coalescing not in BUSY_POLLS:
        return None
    rank, host = parts.spec.ranks[number], parts.spec.host
    node = parts.memory.nodes[rank.node]
    return BusyPoll(node, rank.core, host.irq_suspend_timeout_ns, host.packet_cost_ns)


def _connect(parts: RunParts, number: int, endpoint: Endpoint) -> dict[int, Partner]:
    """Connect to the rank's peer, or to the generator."""
    spec = parts.spec
    if spec.ranks[number].workload == "invalid":
        return {}  # to connect is to let the packets come: they are counted from the first on
    if spec.mode == "generator":
        return {1: endpoint.connect(1, 0, timeout_ns=CONNECT_LIMIT_NS)}
    wanted = spec.ranks[number].options.get("peer", number ^ 1)
    if not 0 <= wanted < len(spec.ranks):
        raise InputError(
            f"rank {number} has no peer {wanted}; ranks are 0 to {len(spec.ranks) - 1}"
        )
    peer = spec.ranks[wanted]
    partner = endpoint.connect(peer.node, spec.endpoints[wanted], timeout_ns=CONNECT_LIMIT_NS)
    return {wanted: partner}


def _meet(parts: RunParts, index: int, endpoint: Endpoint) -> None:
    """Wait until every rank is connected. Others may still need this one's answer."""
    control = parts.memory.control
    control.set_runner_state(index, "running")
    ranks = [i for i, plan in enumerate(parts.placement.processes) if plan.role == "rank"]
    until = time.monotonic() + MEETING_LIMIT_S
    while any(control.runner_info(other)["state"] in ("starting", "ready") for other in ranks):
        if control.stop_state() != "no":
            raise AbortedError("the run was stopped before its ranks had met")
        if time.monotonic() > until:
            raise AgentError(f"the ranks did not meet within {MEETING_LIMIT_S} s")
        endpoint.progress()
        time.sleep(LOOK_S)


def _work(
    parts: RunParts, plan: ProcessPlan, index: int, work: Workload, context: RankContext
) -> None:
    control = parts.memory.control
    if context.number == 0:
        _write_counters(control, parts.directory / COUNTERS_BEFORE)
    account_before, usage_before = control.runner_account(index), usage()
    start_ns = control.now_ns()
    with _heap_for_arrays(parts, context.number):
        samples = work(context)
    elapsed_ns = control.now_ns() - start_ns
    used = {name: value - usage_before[name] for name, value in usage().items()}
    account = {
        name: value - account_before[name] for name, value in control.runner_account(index).items()
    }
    np.savez(parts.directory / f"{plan.name}.npz", allow_pickle=False, **samples)
    parts.channel.send(plan.name, "done", usage=used, account=account, elapsed_ns=elapsed_ns)


def _heap_for_arrays(parts: RunParts, number: int) -> contextlib.AbstractContextManager[object]:
    """The workload's arrays lie where handlers can write into them, unless that is not wanted."""
    if parts.spec.mx.memory not in ("auto", "heap"):
        return contextlib.nullcontext()
    node = parts.memory.nodes[parts.spec.ranks[number].node]
    return Heap.of_process(node, parts.spec.endpoints[number]).use_for_numpy()


def _linger(control: Control, endpoint: Endpoint) -> None:
    """Go on answering until every rank is done: what was lost may have to be sent again."""
    while control.stop_state() == "no":
        endpoint.progress()
        time.sleep(LINGER_LOOK_S)


COUNTERS_BEFORE = "counters-before.json"


def _write_counters(control: Control, path: Path) -> None:
    """Every agent's counters as they are when the work begins."""
    counters = {
        control.agent_info(number)["name"]: control.agent_counters(number)
        for number in range(control.agents_count)
    }
    path.write_text(json.dumps(counters))
