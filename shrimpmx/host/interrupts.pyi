from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class InterruptAgent(Agent):
    node: Node
    core: int
    budget: int
    demote_after: int
    wants_demotion: bool
    def __init__(
        self, node: Node, core: int, agent: int, budget: int = 64, demote_after: int = 10
    ) -> None: ...
    @property
    def scheduled_vectors(self) -> int: ...
