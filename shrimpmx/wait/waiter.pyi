from collections.abc import Callable, Sequence
from typing import Literal, Self

from shrimpmx.shared.control import Control
from shrimpmx.shared.host import Host

RESULTS: dict[int, str]

class Strategy:
    failure: BaseException | None
    @classmethod
    def from_limit(cls, spin_ns: int) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def sleeps(self) -> bool: ...
    @property
    def stands(self) -> bool: ...

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

class RecordedGate:
    def __init__(self, waiter: Waiter, at_enable: Callable[[], object] | None = None) -> None: ...
    def calls(self) -> list[str]: ...
