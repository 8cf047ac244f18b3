"""What a rank's process does: opens its endpoint, connects, meets the others, works, reports."""

from __future__ import annotations

import contextlib

from shrimpmx.cluster.engine import vmmc_rank
from shrimpmx.cluster.engine.agents import agent_numbers
from shrimpmx.cluster.engine.moving import Mover, run_on
from shrimpmx.cluster.engine.parts import RunParts
from shrimpmx.cluster.engine.rank_steps import announce, linger, measure, meet, meter_of
from shrimpmx.cluster.engine.vmmc_workloads import VMMC_WORKLOADS
from shrimpmx.cluster.engine.workloads import CONNECT_LIMIT_NS, WORKLOADS, RankContext, Samples
from shrimpmx.cluster.place.placement import ProcessPlan
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import InputError
from shrimpmx.host import endpoint as driver
from shrimpmx.host.busy_poll import BusyPoll
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.shared.geometry import BUSY_POLLS
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.node import Node
from shrimpmx.vmmc import closing
from shrimpmx.wait.waiter import Waiter


def check_ranks(spec: ClusterSpec) -> None:
    """InputError if a rank's workload is none of those that its NIC's library has."""
    table = VMMC_WORKLOADS if spec.nic.nic_kind == "vmmc" else WORKLOADS
    for rank in spec.ranks:
        if rank.workload not in table:
            raise InputError(
                f"there is no workload {rank.workload!r} with nic {spec.nic.nic_kind!r}; there "
                f"are {', '.join(sorted(table)) or 'none'}"
            )


def close_dead(spec: ClusterSpec, node: Node, endpoint: int) -> None:
    """Close the endpoint of a rank that has died; its peers learn of it from the protocol."""
    if spec.nic.nic_kind == "vmmc":
        closing.close_dead(node, endpoint)
    else:
        driver.close_dead(node, endpoint)


def run_rank(parts: RunParts, plan: ProcessPlan, index: int, waiter: Waiter) -> None:
    """The life of the rank process `index`; reports "ready", then "done" with its figures."""
    if parts.spec.nic.nic_kind == "vmmc":
        vmmc_rank.run_rank(parts, plan, index, waiter)
    else:
        _run_rank(parts, plan, index, waiter)


def _run_rank(parts: RunParts, plan: ProcessPlan, index: int, waiter: Waiter) -> None:
    number = plan.agents[0].number
    rank = parts.spec.ranks[number]
    control, node = parts.memory.control, parts.memory.nodes[rank.node]
    agent = agent_numbers(parts.placement)[plan.agents[0].name]
    cores = parts.spec.home_cores(number)
    if cores != (rank.core,):
        run_on(parts, index, rank.node, cores)
    with Endpoint(
        node,
        parts.spec.endpoints[number],
        index,
        waiter=waiter,
        parameters=parts.spec.mx,
        agent=agent,
        busy_poll=_busy_poll(parts, number, cores[0]),
    ) as endpoint:
        endpoint.process_core = cores[0] if len(cores) == 1 else None
        if parts.memory.trace is not None:
            endpoint.use_trace(parts.memory.trace, agent)
        announce(parts, plan, index)
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
                Mover(parts, index, number, cores[0], endpoint),
            )
            meet(parts, index, endpoint.progress)
            measure(parts, plan, meter_of(parts, plan, index), lambda: _work(parts, context))
        linger(control, endpoint.progress)


def _busy_poll(parts: RunParts, number: int, core: int) -> BusyPoll | None:
    """What a rank on `core` polls the rx ring of its endpoint's queue with, if ranks do so under
    the run's strategy.
    """
    if parts.spec.nic.coalescing not in BUSY_POLLS:
        return None
    host, node = parts.spec.host, parts.memory.nodes[parts.spec.ranks[number].node]
    queue = parts.spec.endpoints[number] % node.vectors_count
    return BusyPoll(node, core, host.irq_suspend_timeout_ns, host.packet_cost_ns, queue)


def _connect(parts: RunParts, number: int, endpoint: Endpoint) -> dict[int, Partner]:
    """Connect to the rank's peer, or to the generator."""
    spec = parts.spec
    if spec.ranks[number].workload == "invalid":
        return {}  # to connect is to let the packets come: they are counted from the first on
    if spec.mode == "generator":
        if spec.ranks[number].workload == "idle":
            return {}  # the generator sends to who connected last
        return {1: endpoint.connect(1, 0, timeout_ns=CONNECT_LIMIT_NS)}
    wanted = spec.ranks[number].options.get("peer", number ^ 1)
    if not 0 <= wanted < len(spec.ranks):
        raise InputError(
            f"rank {number} has no peer {wanted}; ranks are 0 to {len(spec.ranks) - 1}"
        )
    peer = spec.ranks[wanted]
    partner = endpoint.connect(peer.node, spec.endpoints[wanted], timeout_ns=CONNECT_LIMIT_NS)
    return {wanted: partner}


def _work(parts: RunParts, context: RankContext) -> Samples:
    with _heap_for_arrays(parts, context.number):
        return WORKLOADS[parts.spec.ranks[context.number].workload](context)


def _heap_for_arrays(parts: RunParts, number: int) -> contextlib.AbstractContextManager[object]:
    """The workload's arrays lie where handlers can write into them, unless that is not wanted."""
    if parts.spec.mx.memory not in ("auto", "heap"):
        return contextlib.nullcontext()
    node = parts.memory.nodes[parts.spec.ranks[number].node]
    return Heap.of_process(node, parts.spec.endpoints[number]).use_for_numpy()
