"""Agents with the parameters' defaults, where a test does not say otherwise."""

from __future__ import annotations

from typing import Any

from shrimpmx.costs.meter import Prices
from shrimpmx.costs.table import COSTS
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.nic.generator import TrafficGenerator
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.workload import WorkloadParameters
from shrimpmx.shared.node import Node

HOST, WORK = HostParameters(), WorkloadParameters()
POLLS = {"budget": HOST.irq_budget, "demote_after": HOST.irq_demote_after}
GENERATES = {
    "window": WORK.window,
    "other_bytes": WORK.other_bytes,
    "resend_delay_ns": MxParameters().resend_delay_ns,
}


def make_irq(node: Node, core: int, agent: int, **options: int) -> InterruptAgent:
    """One that pays the costs among the options."""
    costs = {name: options.pop(name) for name in COSTS.keys() & options.keys()}
    return InterruptAgent(node, core, agent, prices=Prices(costs), **(POLLS | options))


def make_generator(
    node: Node, egress: Egress, ingress: Ingress, **options: Any
) -> TrafficGenerator:
    return TrafficGenerator(node, egress, ingress, **(GENERATES | options))
