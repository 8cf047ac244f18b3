from shrimpmx.costs.meter import Prices
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class VmmcInterruptAgent(Agent):
    node: Node
    core: int
    occupancy_ns: int
    def __init__(
        self,
        node: Node,
        core: int,
        agent: int,
        prices: Prices | None = None,
        delivery_ns: int = 0,
    ) -> None: ...
