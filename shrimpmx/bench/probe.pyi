from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Literal

import numpy as np
import numpy.typing as npt

HANDLER_PRIORITY: int

class Shared:
    def samples(self) -> npt.NDArray[np.float64]: ...

def child(
    shared: Shared, cpu: int, function: Callable[[Shared], None], priority: int = ...
) -> AbstractContextManager[None]: ...
def pinned(cpu: int) -> AbstractContextManager[None]: ...

State = Literal["near", "far", "mixed", "unknown"]

NEAR_BELOW_NS: float
MIXED_SHARE: float
PROBE_NS: int

def round_trips(cpu_a: int, cpu_b: int, budget_ns: int = ...) -> npt.NDArray[np.float64]: ...
def classify(batches: npt.ArrayLike) -> State: ...
def probe(cpus: Iterable[int], budget_ns: int = ...) -> tuple[State, float | None]: ...
