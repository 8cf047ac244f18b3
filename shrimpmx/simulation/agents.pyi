from collections.abc import Sequence

from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control

class HandlerCpu: ...

class Agents:
    nodes: int
    def __init__(
        self,
        control: Control,
        seated: Sequence[tuple[Agent, int, HandlerCpu | None]],
        nodes: int,
    ) -> None: ...
    def worked_ns(self) -> list[int]: ...
