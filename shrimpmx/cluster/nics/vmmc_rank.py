"""A rank on SHRIMP's NIC: a process of VMMC."""

from __future__ import annotations

from typing import Self

from shrimpmx.cluster.nics.rank import Rank
from shrimpmx.link.links import links_of
from shrimpmx.nic.lent import LentNic
from shrimpmx.vmmc.process import VmmcProcess


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
