from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import numpy.typing as npt

HANDLER_PRIORITY: int

class Shared:
    def samples(self) -> npt.NDArray[np.float64]: ...

def child(
    shared: Shared, cpu: int, function: Callable[[Shared], None], priority: int = ...
) -> AbstractContextManager[None]: ...
def pinned(cpu: int) -> AbstractContextManager[None]: ...
