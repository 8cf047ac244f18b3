from collections.abc import Sequence

from shrimpmx.link.ends import Ingress
from shrimpmx.link.line import EmulatedLine
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node

class RingEgress(EmulatedLine):
    def add_node(self, node: Node) -> None: ...

class RingIngress(Ingress):
    def __init__(self, node: Node) -> None: ...

def ring_links(
    nodes: Sequence[Node], index: int, parameters: NicParameters, faults: LinkFaults | None = None
) -> tuple[RingEgress, RingIngress]: ...
