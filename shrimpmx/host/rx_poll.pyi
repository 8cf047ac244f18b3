from shrimpmx.native.trace import Capture
from shrimpmx.shared.node import Node

class BusyPoll:
    node: Node
    suspend_timeout_ns: int
    found: bool
    def __init__(
        self,
        node: Node,
        core: int,
        suspend_timeout_ns: int = 0,
        vector: int = 0,
    ) -> None: ...
    def use_capture(self, capture: Capture, end: int) -> None: ...
    def look_at(self, now_ns: int) -> int: ...
    def is_ready(self) -> bool: ...
