from collections.abc import Callable

from shrimpmx.wait.waiter import Waiter

class RecordedGate:
    def __init__(self, waiter: Waiter, at_enable: Callable[[], object] | None = None) -> None: ...
    def calls(self) -> list[str]: ...
