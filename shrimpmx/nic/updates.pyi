from shrimpmx.shared.node import Node

class PageInterrupts:
    node: Node
    def __init__(self, node: Node, agent: int, watchdog_ns: int) -> None: ...
