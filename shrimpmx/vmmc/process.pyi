from collections.abc import Iterable, Sequence
from typing import Any

from shrimpmx.nic.lent import LentNic
from shrimpmx.shared.control import Control
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.host import Host
from shrimpmx.shared.node import Node
from shrimpmx.vmmc.buffers import Export, Flag, Import, MapRequest
from shrimpmx.wait.waiter import Strategy, Waiter

def close_dead(node: Node, endpoint: int) -> bool: ...

class VmmcProcess:
    node: Node
    control: Control
    host: Host
    waiter: Waiter | None
    heap: Heap
    index: int
    opened: bool
    def __init__(
        self,
        node: Node,
        endpoint: int,
        runner: int,
        *,
        waiter: Waiter | None = None,
        core: int = 0,
        agent: int | None = None,
        lent: LentNic | None = None,
        host: Host | None = None,
    ) -> None: ...
    def open(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> VmmcProcess: ...
    def __exit__(self, *exception: object) -> None: ...
    def export(
        self, length: int, interrupts: bool = True, allowed_node: int | None = None
    ) -> Export: ...
    def map_start(self, node: int, endpoint: int, export_index: int) -> MapRequest: ...
    def map(
        self, node: int, endpoint: int, export_index: int, timeout_ns: int | None = None
    ) -> Import: ...
    def wait(
        self,
        flags: Sequence[Flag],
        timeout_ns: int | None = None,
        strategy: Strategy | None = None,
        peers: Iterable[Import] = (),
    ) -> list[Flag]: ...
    def letter(
        self,
        node: int,
        endpoint: int,
        kind: int,
        data: bytes = b"",
        *,
        port: int = 0,
        tag: int = 0,
        status: int = 0,
    ) -> None: ...
    def take_letter(self) -> dict[str, Any] | None: ...
    def take_port(self, port: int) -> bool: ...
    def give_port(self, port: int) -> None: ...
    def get_info(self) -> dict[str, int | None]: ...

class Tally:
    def __init__(self, process: VmmcProcess, name: str) -> None: ...
    def add(self, amount: int) -> None: ...
