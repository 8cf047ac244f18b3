import numpy as np
from numpy.typing import NDArray

from shrimpmx.workloads.vmmc_pingpong import Peer

def send_arrivals(
    peer: Peer, arrivals: str, mean_ns: int, limit_ns: int, count: int, seed: int = 1
) -> None: ...
def await_arrivals(peer: Peer, iterations: int, warmup: int) -> dict[str, NDArray[np.int64]]: ...
