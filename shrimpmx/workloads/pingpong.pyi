from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner

def pingpong(
    endpoint: Endpoint,
    partner: Partner,
    initiator: bool,
    size_bytes: int,
    iterations: int,
    warmup: int,
    delay_ns: int = 0,
    move: Callable[[], object] | None = None,
    move_every: int = 0,
) -> NDArray[np.int64]: ...
