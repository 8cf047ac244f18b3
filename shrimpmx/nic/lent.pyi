from collections.abc import Sequence

from shrimpmx.link.ends import Egress
from shrimpmx.native.trace import Capture, Trace
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node

class Lending:
    def __init__(self, nodes: Sequence[Node]) -> None: ...

class LentNic:
    node: Node
    def __init__(
        self,
        nodes: Sequence[Node],
        index: int,
        endpoint: int,
        egress: Egress,
        parameters: NicParameters,
    ) -> None: ...
    def use_trace(self, trace: Trace) -> None: ...
    def use_capture(self, capture: Capture) -> None: ...
