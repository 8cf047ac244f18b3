"""Makes the agents that a process drives, in that process, from the plan."""

from __future__ import annotations

from functools import partial

from shrimpmx.cluster.engine.lending import senders_lend
from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.place.placement import AgentPlan, Placement, ProcessPlan
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.host.copy_offload import CopyAgent
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.host.vmmc_interrupts import VmmcInterruptAgent
from shrimpmx.nic.firmware import Firmware
from shrimpmx.nic.generator import TrafficGenerator
from shrimpmx.nic.mx import MxFirmware
from shrimpmx.nic.port import Port
from shrimpmx.nic.vmmc import VmmcFirmware
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node
from shrimpmx.wire.link import LinkEgress
from shrimpmx.workloads.hog import Hog, Spinner

# Strategies under which the handler defers interrupts (host.napi_defer_hard_irqs).
DEFERRING = ("napi-defer", "irq-suspend")


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


def defers(spec: ClusterSpec) -> bool:
    """Whether irq agents leave interrupts off for a while and poll by timer."""
    return spec.nic.coalescing in DEFERRING


def _make(spec: ClusterSpec, plan: AgentPlan, number: int, memory: RunMemory, lends: bool) -> Agent:
    node = memory.nodes[plan.node] if plan.node < len(memory.nodes) else memory.nodes[0]
    if plan.role == "nic":
        port = _make_nic(spec, plan, memory, lends)
        # Native MX's host hands whole messages over: its NIC cuts them into frames.
        if spec.nic.nic_kind != "mx":
            _use_gap(spec, plan, port.egress)
        return port
    if plan.role == "generator":
        return _make_generator(spec, plan, memory)
    if plan.role == "irq":
        return _make_handler(spec, plan, number, node)
    if plan.role == "dma":
        return CopyAgent(node, number)
    if plan.role == "hog":
        return Hog(memory.control, number)
    if plan.role == "spinner":
        return Spinner(memory.control, number)
    raise ValueError(f"{plan.name} has no step machine; role {plan.role!r}")


def _make_nic(spec: ClusterSpec, plan: AgentPlan, memory: RunMemory, lends: bool) -> Port:
    if spec.nic.nic_kind == "vmmc":
        return VmmcFirmware(memory.nodes, plan.node, spec.nic, spec.link_faults, lends)
    if spec.nic.nic_kind == "mx":
        return MxFirmware(memory.nodes, plan.node, spec.nic, spec.link_faults)
    # Policies have state: one is made for each rx queue.
    policy = partial(spec.policy, plan.node) if spec.policy is not None else None
    return Firmware(
        memory.nodes, plan.node, spec.nic, policy, spec.link_faults, dilation=spec.dilation
    )


def _make_handler(spec: ClusterSpec, plan: AgentPlan, number: int, node: Node) -> Agent:
    host = spec.host
    if spec.nic.nic_kind == "vmmc":
        return VmmcInterruptAgent(node, plan.number, number, host.interrupt_time_ns)
    return InterruptAgent(
        node,
        plan.number,
        number,
        host.irq_budget,
        host.irq_demote_after,
        host.interrupt_time_ns,
        host.packet_cost_ns,
        *((host.napi_defer_hard_irqs, host.gro_flush_timeout_ns) if defers(spec) else ()),
    )


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
    _use_gap(spec, plan, generator.egress)
    return generator


def _use_gap(spec: ClusterSpec, plan: AgentPlan, egress: LinkEgress) -> None:
    """What the host that sends there takes per packet; each run and node has its own sequence."""
    seed = (spec.seed * spec.nodes + plan.node) % 2**64
    egress.use_gap(spec.nic.tx_gap_ns, spec.nic.tx_gap_jitter, seed)
