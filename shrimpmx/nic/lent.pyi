from collections.abc import Sequence

from shrimpmx.native.trace import Trace
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node
from shrimpmx.wire.link import Egress

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
