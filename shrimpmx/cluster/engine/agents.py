"""Makes the agents that a process drives, in that process, from its plan."""

from __future__ import annotations

from functools import partial

from shrimpmx.cluster.engine.lending import senders_lend
from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.nics.kind import NicOrder, gap_seed, use_gap
from shrimpmx.cluster.place.placement import AgentPlan, Placement, ProcessPlan
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.host.copy_offload import CopyAgent
from shrimpmx.nic.generator import TrafficGenerator
from shrimpmx.shared.agent import Agent
from shrimpmx.workloads.hog import Hog, Spinner


def agent_numbers(placement: Placement) -> dict[str, int]:
    """The index of each agent's record in the control segment, by its name."""
    return {agent.name: number for number, (agent, _) in enumerate(placement.agents())}


def make_agents(
    spec: ClusterSpec, placement: Placement, plan: ProcessPlan, memory: RunMemory
) -> list[Agent]:
    """The step machines of one process; ranks are not agents of a runner, and what the handler of
    a native MX NIC counts is a record of its own but no step machine.
    """
    numbers, lends = agent_numbers(placement), senders_lend(spec, placement)
    agents = []
    for wanted in plan.agents:
        if wanted.role == "mx":
            continue
        agent = _make(spec, wanted, numbers[wanted.name], memory, lends)
        if memory.trace is not None:
            agent.use_trace(memory.trace, numbers[wanted.name])
        agents.append(agent)
    return agents


def _make(spec: ClusterSpec, plan: AgentPlan, number: int, memory: RunMemory, lends: bool) -> Agent:
    node = memory.nodes[plan.node] if plan.node < len(memory.nodes) else memory.nodes[0]
    if plan.role == "nic":
        return spec.kind.make_nic(_nic_order(spec, plan, memory, lends))
    if plan.role == "generator":
        return _make_generator(spec, plan, memory)
    if plan.role == "irq":
        return spec.kind.make_handler(node, plan.number, number, spec.groups)
    if plan.role == "dma":
        return CopyAgent(node, number)
    if plan.role == "hog":
        return Hog(memory.control, number)
    if plan.role == "spinner":
        return Spinner(memory.control, number)
    raise ValueError(f"{plan.name} has no step machine; role {plan.role!r}")


def _make_generator(spec: ClusterSpec, plan: AgentPlan, memory: RunMemory) -> Agent:
    wanted = spec.generator
    generator = TrafficGenerator(
        memory.nodes,
        plan.node,
        spec.nic,
        size=wanted.size_bytes,
        count=wanted.count,
        window=wanted.window,
        match=wanted.match,
        resend_delay_ns=wanted.resend_delay_ns,
        faults=spec.link_faults,
        frames=wanted.frames,
        other_rate=wanted.other_rate,
        other_bytes=wanted.other_bytes,
    )
    use_gap(generator.egress, _nic_order(spec, plan, memory, lends=False))
    return generator


def _nic_order(spec: ClusterSpec, plan: AgentPlan, memory: RunMemory, lends: bool) -> NicOrder:
    return NicOrder(
        memory.nodes,
        plan.node,
        spec.nic,
        spec.link_faults,
        # Policies have state: one is made for each rx queue.
        partial(spec.policy, plan.node) if spec.policy is not None else None,
        spec.dilation,
        lends,
        gap_seed(spec.seed, spec.nodes, plan.node),
    )
