from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class VmmcInterruptAgent(Agent):
    node: Node
    core: int
    interrupt_time_ns: int
    occupancy_ns: int
    def __init__(self, node: Node, core: int, agent: int, interrupt_time_ns: int = 0) -> None: ...
    def use_occupancy(self, occupancy_ns: int) -> None: ...
