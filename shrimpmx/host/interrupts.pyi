from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node
from shrimpmx.shared.prices import Prices

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
        interrupt_time_ns: int = 0,
        packet_cost_ns: int = 0,
        send_cost_ns: int = 0,
        defer_hard_irqs: int = 0,
        flush_timeout_ns: int = 0,
    ) -> None: ...
    @property
    def occupancy_ns(self) -> int: ...
    def use_occupancy(self, occupancy_ns: int) -> None: ...
    def keep_polls_whole(self) -> None: ...
    def use_call_costs(self, here_ns: int, other_ns: int) -> None: ...
    def use_prices(self, prices: Prices) -> None: ...
    @property
    def scheduled_vectors(self) -> int: ...
