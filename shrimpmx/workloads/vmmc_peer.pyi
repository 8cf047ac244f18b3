from collections.abc import Sequence

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
