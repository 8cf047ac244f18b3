from collections.abc import Sequence

from shrimpmx.settings.parameters import NicParameters
from shrimpmx.shared.node import Node

class LentNic:
    node: Node
    def __init__(
        self, nodes: Sequence[Node], index: int, endpoint: int, parameters: NicParameters
    ) -> None: ...
