from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shrimpmx.vmmc.process import VmmcProcess

class Peer:
    def __init__(
        self,
        process: VmmcProcess,
        node: int,
        endpoint: int,
        length: int = 4096,
        offsets: Sequence[int] = (0,),
    ) -> None: ...

def pingpong(
    peer: Peer,
    initiator: bool,
    iterations: int,
    warmup: int,
    delay_ns: int = 0,
    delay_max_ns: int = 0,
    seed: int = 1,
) -> NDArray[np.int64]: ...
