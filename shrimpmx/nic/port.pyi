from collections.abc import Sequence

from shrimpmx.settings.parameters import LinkFaults, NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node
from shrimpmx.wire.link import LinkEgress

class Port(Agent):
    node: Node
    egress: LinkEgress
    def __init__(
        self,
        nodes: Sequence[Node],
        index: int,
        parameters: NicParameters,
        faults: LinkFaults | None = None,
    ) -> None: ...
