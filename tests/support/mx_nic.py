"""Nodes with native MX's NIC and MX endpoints in one process, under a virtual clock."""

from __future__ import annotations

from typing import Any

from shrimpmx.link.rings import ring_links
from shrimpmx.nic.mx import MxFirmware
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters
from support.virtual_cluster import MILLISECOND, VirtualCluster


class MxCluster(VirtualCluster):
    """Real firmware and links; only the NICs handle frames. Node i's handler counts in
    agent record i.
    """

    def __init__(
        self,
        parameters: NicParameters | None = None,
        faults: LinkFaults | None = None,
        nodes: int = 2,
        **more: Any,
    ) -> None:
        parameters = parameters or NicParameters(nic_kind="mx")
        more = {"rx_ring_entries": 16, "link_ring_entries": 256, **more}
        super().__init__(nodes, mtu=parameters.mtu, **more)
        self.handlers = []
        self.nics = [
            MxFirmware(node, *ring_links(self.nodes, i, parameters, faults), parameters)
            for i, node in enumerate(self.nodes)
        ]

    def carry(self) -> int:
        nics = self.nics[:]
        self.rng.shuffle(nics)
        return sum(nic.step_at(self.now_ns) for nic in nics)

    def next_due_ns(self) -> int | None:
        due = [super().next_due_ns(), *(nic.due_ns for nic in self.nics)]
        return min((ns for ns in due if ns is not None), default=None)

    def nic_counters(self, node: int) -> dict[str, int]:
        return self.control.agent_counters(len(self.nodes) + node)

    def handled(self, node: int) -> dict[str, int]:
        """What the NIC's handler has counted, without what is 0."""
        counters = self.control.agent_counters(node)
        return {name: n for name, n in counters.items() if n}

    def settle(self) -> None:
        """Pass ten milliseconds: what is on the way arrives, no delayed ack is due."""
        self.advance(10 * MILLISECOND)
