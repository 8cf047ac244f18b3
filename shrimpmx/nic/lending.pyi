from collections.abc import Sequence

from shrimpmx.shared.node import Node

class Lending:
    def __init__(self, nodes: Sequence[Node]) -> None: ...
