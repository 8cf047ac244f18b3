from shrimpmx.costs.meter import Prices
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class CopyAgent(Agent):
    node: Node
    def __init__(self, node: Node, agent: int, prices: Prices | None = None) -> None: ...
