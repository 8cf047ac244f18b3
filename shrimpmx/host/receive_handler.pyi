from shrimpmx.shared.node import Node

class ReceiveHandler:
    node: Node
    core: int
    def __init__(self, node: Node, core: int, agent: int) -> None: ...
    def handle_frame(self, frame: bytes, finish: bool = True) -> None: ...
