from collections.abc import Callable
from typing import Any, Self

from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.native.trace import Trace
from shrimpmx.settings.mx import MxParameters
from shrimpmx.shared.control import Control
from shrimpmx.shared.host import Host
from shrimpmx.shared.node import Node
from shrimpmx.wait.waiter import Waiter

class EndpointCore:
    node: Node
    control: Control
    host: Host
    waiter: Waiter | None
    index: int
    def __init__(
        self,
        node: Node,
        index: int,
        runner: int,
        waiter: Waiter | None = None,
        parameters: MxParameters | None = None,
        key: int = 0,
        agent: int | None = None,
        session_id: int | None = None,
        first_seqnum: int = 1,
        busy_poll: BusyPoll | None = None,
        host: Host | None = None,
    ) -> None: ...
    def use_trace(self, trace: Trace, number: int) -> None: ...

class ProgressionCalls(EndpointCore):
    @property
    def session(self) -> int: ...
    def counters(self) -> dict[str, int]: ...
    def progress(self) -> int: ...
    def wakeup(self) -> None: ...
    def disable_progression(self) -> None: ...
    def reenable_progression(self) -> None: ...
    def set_error_handler(self, handler: Callable[[str, str], Any] | None) -> None: ...
    @property
    def next_timer_ns(self) -> int | None: ...
    def drain(self, timeout_ns: int | None = None) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
