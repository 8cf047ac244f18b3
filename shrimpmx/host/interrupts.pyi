from shrimpmx.costs.meter import Prices
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class InterruptAgent(Agent):
    node: Node
    core: int
    def __init__(
        self,
        node: Node,
        core: int,
        agent: int,
        budget: int,
        demote_after: int,
        prices: Prices | None = None,
        delivery_ns: int = 0,
        is_process: bool = False,
        defer_hard_irqs: int = 0,
        flush_timeout_ns: int = 0,
    ) -> None: ...
    @property
    def occupancy_ns(self) -> int: ...
    @property
    def scheduled_vectors(self) -> int: ...

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
