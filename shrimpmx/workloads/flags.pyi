import numpy as np
from numpy.typing import NDArray

from shrimpmx.workloads.vmmc_pingpong import Peer

FLAGS_BYTES: int

def flag_offsets(count: int) -> list[int]: ...
def any_of_flags(
    peer: Peer,
    initiator: bool,
    count: int,
    iterations: int,
    warmup: int,
    delay_ns: int = 0,
    seed: int = 1,
) -> dict[str, NDArray[np.int64]]: ...
