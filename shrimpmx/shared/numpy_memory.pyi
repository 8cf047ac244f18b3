from types import TracebackType

from shrimpmx.shared.heap import Heap

class NumpyMemory:
    heap: Heap
    def __init__(self, heap: Heap) -> None: ...
    def __enter__(self) -> Heap: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
