import numpy as np
from numpy.typing import NDArray

from shrimpmx.workloads.vmmc_peer import Peer

def pingpong(
    peer: Peer,
    initiator: bool,
    iterations: int,
    warmup: int,
    delay_ns: int = 0,
    delay_max_ns: int = 0,
    seed: int = 1,
) -> NDArray[np.int64]: ...
