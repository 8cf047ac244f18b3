from collections.abc import Callable, Sequence
from typing import Literal

from shrimpmx.shared.control import Control
from shrimpmx.shared.host import Host
from shrimpmx.wait.strategy import Strategy

WaitOutcome = Literal["ready", "timed out", "stopped"]

class Waiter:
    control: Control
    host: Host
    runner_index: int
    strategy: Strategy
    def __init__(
        self,
        control: Control,
        runner_index: int,
        strategy: Strategy,
        host: Host | None = None,
    ) -> None: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...
    def __enter__(self) -> Waiter: ...
    def __exit__(self, *exception: object) -> None: ...
    def wait_words(
        self,
        watches: Sequence[tuple[int, int]],
        deadline_ns: int | None = None,
        strategy: Strategy | None = None,
    ) -> WaitOutcome: ...
    def wait_until(
        self,
        function: Callable[[], object],
        deadline_ns: int | None = None,
        strategy: Strategy | None = None,
    ) -> WaitOutcome: ...
    def account(self) -> dict[str, int]: ...
