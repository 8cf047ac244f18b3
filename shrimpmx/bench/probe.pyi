from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

State = Literal["near", "far", "mixed", "unknown"]

NEAR_BELOW_NS: float
MIXED_SHARE: float
PROBE_NS: int

def round_trips(cpu_a: int, cpu_b: int, budget_ns: int = ...) -> npt.NDArray[np.float64]: ...
def classify(batches: npt.ArrayLike) -> State: ...
def probe(cpus: Iterable[int], budget_ns: int = ...) -> tuple[State, float | None]: ...
