from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner

def draw_delays(low_ns: int, high_ns: int, seed: int, count: int) -> NDArray[np.int64]: ...
def draw_arrivals(
    arrivals: str, mean_ns: int, limit_ns: int, seed: int, count: int
) -> NDArray[np.int64]: ...
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
def send_stream(
    endpoint: Endpoint,
    partner: Partner,
    size_bytes: int,
    count: int,
    window: int = 64,
    match: int = 0,
) -> dict[str, int]: ...
def receive_stream(
    endpoint: Endpoint,
    size_bytes: int,
    count: int,
    window: int = 64,
    match: int = 0,
    verify: bool = True,
    partner: Partner | None = None,
) -> dict[str, Any]: ...
