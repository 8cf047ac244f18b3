"""The switches between simulated nodes, by the parameter `network`."""

from __future__ import annotations

from collections.abc import Sequence

from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.link.ends import Ingress
from shrimpmx.link.line import EmulatedLine
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node
from shrimpmx.simulation.switch import Switch, switch_links


class Network:
    """One switch, or the leaf and spine switches of a two-level fat tree.

    A frame between nodes of two leaves goes by the spine switch that its destination's number
    says, modulo their count: routes are fixed, and frames stay in order. `agents` are the numbers
    of the switches' records.
    """

    def __init__(
        self, spec: ClusterSpec, control: Control, nodes: Sequence[Node], agents: Sequence[int]
    ) -> None:
        nic = spec.nic
        self._spec, self._nodes = spec, nodes
        self._at_leaf = nic.nodes_of_switch(spec.nodes)
        slot_bytes = NodeLayout(mtu=nic.mtu).frame_slot_bytes
        leaves = -(-spec.nodes // self._at_leaf)
        ports = self._at_leaf + len(agents) - leaves
        self.switches = [
            Switch(control, agent, nic, slot_bytes, spec.nodes, ports if index < leaves else leaves)
            for index, agent in enumerate(agents)
        ]
        self._leaves, self._spines = self.switches[:leaves], self.switches[leaves:]
        self._ports = [self._leaf(node).attach(nodes[node]) for node in range(spec.nodes)]
        self._join()

    def _leaf(self, node: int) -> Switch:
        return self._leaves[node // self._at_leaf]

    def _join(self) -> None:
        """Each leaf with each spine, and the ways of all frames."""
        for spine in self._spines:
            for index, leaf in enumerate(self._leaves):
                up, down = leaf.join(spine)
                leaf.route_up(up)
                first = index * self._at_leaf
                for node in range(first, min(first + self._at_leaf, self._spec.nodes)):
                    spine.route(node, down)

    def links(self, node: int) -> tuple[EmulatedLine, Ingress]:
        """The ends of a node's links."""
        spec = self._spec
        leaf, port = self._leaf(node), self._ports[node]
        return switch_links(self._nodes[node], leaf, port, spec.nic, spec.link_faults)
