from shrimpmx.shared.agent import Agent
from shrimpmx.wait.waiter import Waiter

class Runner:
    agents: list[Agent]
    waiter: Waiter
    early_wake_ns: int
    realtime: int
    def __init__(
        self,
        agents: list[Agent],
        waiter: Waiter,
        early_wake_ns: int = ...,
        realtime: int = 0,
        pass_ns: int = 0,
        frame_ns: int = 0,
        byte_ns: float = 0.0,
    ) -> None: ...
    def run(self) -> None: ...
