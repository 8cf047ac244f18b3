from collections.abc import Callable, Sequence

from shrimpmx.nic.names import AnyPolicy
from shrimpmx.nic.port import Port
from shrimpmx.nic.rx_queue import RxQueue
from shrimpmx.nic.steering import Steering
from shrimpmx.settings.parameters import LinkFaults, NicParameters
from shrimpmx.shared.node import Node

class Firmware(Port):
    queues: tuple[RxQueue, ...]
    steering: Steering
    def __init__(
        self,
        nodes: Sequence[Node],
        index: int,
        parameters: NicParameters,
        policy: AnyPolicy | Callable[[], AnyPolicy] | None = None,
        faults: LinkFaults | None = None,
        dilation: float = 1.0,
    ) -> None: ...
