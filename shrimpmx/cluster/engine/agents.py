"""Makes the agents that a process drives, in that process, from its plan."""

from __future__ import annotations

from functools import partial

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.nics.kind import Charges, NicOrder
from shrimpmx.cluster.place.placement import AgentPlan, Placement, ProcessPlan
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.costs.meter import Prices
from shrimpmx.host.copy_offload import CopyAgent
from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.native.drawing import seed_of
from shrimpmx.nic.generator import TrafficGenerator
from shrimpmx.nic.lent import Lending
from shrimpmx.shared.agent import Agent
from shrimpmx.workloads.hog import Hog, Spinner


def charges_of(spec: ClusterSpec) -> Charges:
    """What the handlers of real processes pay."""
    return Charges(Prices({**vars(spec.host), **vars(spec.mx)}))


def make_agents(
    spec: ClusterSpec,
    placement: Placement,
    plan: ProcessPlan,
    memory: RunMemory,
    charges: Charges,
) -> list[Agent]:
    """The step machines of one process, whose handlers have those `charges`; ranks are not agents
    of a runner, and a record of a NIC is no step machine.
    """
    agents = []
    for wanted in plan.agents:
        if wanted.role in spec.kind.records:
            continue
        number, _ = placement.records[wanted.name]
        agent = _make(spec, wanted, number, memory, placement.lends, charges)
        if memory.trace is not None:
            agent.use_trace(memory.trace, number)
        if memory.capture is not None:
            end = spec.nodes + wanted.number if wanted.role == "switch" else wanted.node
            agent.use_capture(memory.capture, end)
        agents.append(agent)
    return agents


def _make(
    spec: ClusterSpec,
    plan: AgentPlan,
    number: int,
    memory: RunMemory,
    lends: bool,
    charges: Charges,
) -> Agent:
    node = memory.nodes[plan.node] if plan.node < len(memory.nodes) else memory.nodes[0]
    if plan.role == "nic":
        return spec.kind.make_nic(_nic_order(spec, plan, memory, lends))
    if plan.role == "generator":
        return _make_generator(spec, plan, memory)
    if plan.role == "irq":
        return spec.kind.make_handler(node, plan.number, number, spec.groups, charges)
    if plan.role == "switch":
        return memory.switch(plan.number)
    if plan.role == "dma":
        return CopyAgent(node, number, charges.prices)
    if plan.role == "hog":
        return Hog(memory.control, number)
    if plan.role == "spinner":
        return Spinner(memory.control, number)
    raise ValueError(f"no agent can be made for {plan.name}, whose role is {plan.role!r}")


def _make_links(spec: ClusterSpec, plan: AgentPlan, memory: RunMemory) -> tuple[Egress, Ingress]:
    """The ends of a node's links."""
    egress, ingress = memory.links(spec, plan.node)
    if plan.role == "generator" or spec.kind.frame_gaps:
        gap_ns = spec.nic.tx_gap_ns
        if plan.role == "generator":  # its host has no CPU that could pay
            gap_ns = max(gap_ns, spec.mx.send_cost_ns)
        seed = seed_of("gaps", spec.seed, plan.node)
        egress.use_gap(gap_ns, spec.nic.tx_gap_jitter, seed)
    return egress, ingress


def _make_generator(spec: ClusterSpec, plan: AgentPlan, memory: RunMemory) -> Agent:
    wanted = spec.generator
    return TrafficGenerator(
        memory.nodes[plan.node],
        *_make_links(spec, plan, memory),
        size=wanted.size_bytes,
        count=wanted.count,
        window=wanted.window,
        match=wanted.match,
        resend_delay_ns=wanted.resend_delay_ns,
        frames=wanted.frames,
        other_rate=wanted.other_rate,
        other_bytes=wanted.other_bytes,
        other_window=wanted.other_window,
    )


def _nic_order(spec: ClusterSpec, plan: AgentPlan, memory: RunMemory, lends: bool) -> NicOrder:
    return NicOrder(
        memory.nodes[plan.node],
        *_make_links(spec, plan, memory),
        spec.nic,
        # Policies have state: one is made for each rx queue.
        partial(spec.policy, plan.node) if spec.policy is not None else None,
        spec.dilation,
        Lending(memory.nodes) if lends else None,
        spec.seed,
    )
