from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from shrimpmx.vmmc.process import VmmcProcess
from shrimpmx.wait.waiter import Strategy

class Export:
    memory: NDArray[np.uint8]
    index: int
    generation: int
    length: int
    interrupts: bool
    @property
    def exported(self) -> bool: ...
    def flag(self, offset: int) -> Flag: ...
    def withdraw(self) -> None: ...
    def forget(self) -> None: ...

class Flag:
    export: Export
    offset: int
    seen: int
    def __init__(self, export: Export, offset: int) -> None: ...
    @property
    def value(self) -> int: ...
    def changed(self) -> bool: ...
    def update(self) -> int: ...

class Import:
    node: int
    endpoint: int
    export_index: int
    length: int
    index: int
    @property
    def gone(self) -> bool: ...
    def update(self, data: Buffer, offset: int = 0, interrupt: bool = False) -> None: ...
    def set_flag(self, offset: int, value: int, interrupt: bool = True) -> None: ...
    def unmap(self) -> None: ...

class MapRequest:
    def __init__(
        self, process: VmmcProcess, node: int, endpoint: int, export_index: int
    ) -> None: ...
    def test(self) -> Import | None: ...
    def wait(self, timeout_ns: int | None = None) -> Import: ...
    def cancel(self) -> None: ...

def wait_for_flags(
    process: VmmcProcess,
    flags: Sequence[Flag],
    timeout_ns: int | None,
    strategy: Strategy | None,
    peers: Iterable[Import],
) -> list[Flag]: ...
