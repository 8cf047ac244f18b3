from collections.abc import Callable

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
        are_nics: bool = False,
    ) -> None: ...
    def run(self) -> None: ...

class PythonAgent(Agent):
    def __init__(self, name: str, function: Callable[[int], tuple[int, int | None]]) -> None: ...
