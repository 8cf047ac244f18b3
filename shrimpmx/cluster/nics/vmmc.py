"""SHRIMP's NIC: it deposits data into exported memory and interrupts for chosen pages only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from shrimpmx.cluster.nics.kind import Charges, Groups, NicKind, NicOrder
from shrimpmx.cluster.nics.rank import Rank
from shrimpmx.host.interrupts import VmmcInterruptAgent
from shrimpmx.link.links import links_of
from shrimpmx.nic.firmware import Port
from shrimpmx.nic.lent import LentNic
from shrimpmx.nic.vmmc import VmmcFirmware
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node
from shrimpmx.vmmc import process
from shrimpmx.vmmc.process import VmmcProcess

# -- A rank on SHRIMP's NIC: a process of VMMC.


class VmmcRank(Rank):
    """A rank with an open process of VMMC. Connections are its workload's business."""

    process: VmmcProcess

    def __enter__(self) -> Self:
        plan = self.seat.plan
        self.process = VmmcProcess(
            self.seat.nodes[self.node],
            plan.endpoint,
            plan.runner,
            waiter=self.waiter,
            core=plan.core,
            agent=plan.agent,
            lent=self._lent_nic(),
        )
        self.process.open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.close()

    def _lent_nic(self) -> LentNic | None:
        """The means to send with, if it lends its NIC the CPU."""
        run, plan = self.seat.run, self.seat.plan
        if not run.lends:
            return None
        nodes = [self.seat.nodes[index] for index in range(run.nodes)]
        egress, _ = links_of(run.link, nodes, plan.node, run.nic)
        lent = LentNic(nodes, plan.node, plan.endpoint, egress, run.nic)
        if self.seat.trace is not None:
            lent.use_trace(self.seat.trace)
        if self.seat.capture is not None:
            lent.use_capture(self.seat.capture)
        return lent

    @property
    def peer_node(self) -> int:
        """The node of the rank that it talks to."""
        return self.place_of(self.peer)[0]

    @property
    def peer_endpoint(self) -> int:
        """The endpoint of that rank on its node."""
        return self.place_of(self.peer)[1]


class Vmmc(NicKind):
    """The waiting paper's NIC (2.1)."""

    name = "vmmc"
    binds = False
    vmmc = True
    workloads_in = "shrimpmx.cluster.nics.vmmc_workloads:WORKLOADS"

    def make_nic(self, order: NicOrder) -> Port:
        """Its firmware; with `lending` it leaves short updates to their senders."""
        return VmmcFirmware(order.node, order.egress, order.ingress, order.nic, order.lending)

    def make_handler(
        self, node: Node, core: int, agent: int, groups: Groups, charges: Charges
    ) -> Agent:
        """An interrupt handler that wakes the processes that wait for pages."""
        return VmmcInterruptAgent(node, core, agent, charges.prices, charges.delivery_ns)

    def close_dead(self, node: Node, endpoint: int) -> bool:
        """Close the process of a rank that has died; its peers get letters."""
        return process.close_dead(node, endpoint)

    def problems(self, groups: Groups) -> Iterator[str]:
        """Also those about the network, which repairs nothing, and about the MX library."""
        yield from super().problems(groups)
        if groups.nic.wire_format == "compatible":
            yield "wire_format 'compatible' is the MX firmware's, not the vmmc NIC's"
        if groups.faults is not None and groups.faults.active:
            yield (
                "faults need nic 'ethernet': SHRIMP's network neither loses nor changes packets, "
                "so its protocol repairs nothing"
            )
        if groups.mx.process_binding != "none":
            yield (
                "process_binding belongs to the Open-MX library, which does not run on a vmmc NIC: "
                "use rank_core"
            )
