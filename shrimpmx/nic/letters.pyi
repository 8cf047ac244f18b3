from shrimpmx.shared.node import Node

class NicLetters:
    node: Node
    def __init__(self, node: Node, agent: int) -> None: ...
