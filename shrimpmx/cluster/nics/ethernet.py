"""Open-MX on a NIC that interrupts: firmware, queues, irq agents, the MX library."""

from __future__ import annotations

from shrimpmx.cluster.nics.kind import Charges, Groups, NicKind, NicOrder
from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.host import endpoint as driver
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.nic.firmware import Firmware, Port
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node


class Ethernet(NicKind):
    """The coalescing and multiqueue papers' NIC."""

    name = "ethernet"
    has_queues = True
    workloads_in = "shrimpmx.cluster.nics.mx_workloads:WORKLOADS"
    ranks = MxRank

    def make_nic(self, order: NicOrder) -> Port:
        """Its firmware, with a coalescing policy for each rx queue."""
        return Firmware(
            order.node,
            order.egress,
            order.ingress,
            order.nic,
            order.policy,
            dilation=order.dilation,
            seed=order.seed,
        )

    def make_handler(
        self, node: Node, core: int, agent: int, groups: Groups, charges: Charges
    ) -> Agent:
        """An interrupt handler that polls rx rings."""
        host = groups.host
        deferral = host.napi_defer_hard_irqs, host.gro_flush_timeout_ns
        return InterruptAgent(
            node,
            core,
            agent,
            host.irq_budget,
            host.irq_demote_after,
            charges.prices,
            charges.delivery_ns,
            charges.are_processes,
            *(deferral if groups.nic.coalescing_row.defers else ()),
        )

    def close_dead(self, node: Node, endpoint: int) -> bool:
        """Close the endpoint of a rank that has died; its partners are told by nacks."""
        return driver.close_dead(node, endpoint)
