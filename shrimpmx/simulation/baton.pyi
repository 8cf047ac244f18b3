from collections.abc import Callable, Iterable
from pathlib import Path

from shrimpmx.shared.node import Node
from shrimpmx.simulation.host import SimulatedHost

class Baton:
    def __init__(
        self,
        node: Node,
        directory: Path,
        name: str,
        cpus: Iterable[int],
        look_ns: int,
        events: int,
        attend: Callable[[int], bool],
        note_threads: Callable[[], None],
        note_used: Callable[[], None],
    ) -> None: ...
    def fileno(self) -> int: ...
    def knocked(self) -> bool: ...
    def close(self) -> None: ...
    def joins(self) -> bool: ...
    def serve(self, host: SimulatedHost) -> None: ...
