from collections.abc import Callable

from shrimpmx.shared.agent import Agent

class PythonAgent(Agent):
    def __init__(self, name: str, function: Callable[[int], tuple[int, int | None]]) -> None: ...
