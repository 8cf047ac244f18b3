from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class CopyAgent(Agent):
    node: Node
    def __init__(self, node: Node, agent: int) -> None: ...
    def use_rate(self, bytes_per_second: float) -> None: ...
