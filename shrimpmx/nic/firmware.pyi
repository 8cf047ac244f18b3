from collections.abc import Callable

from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.nic.names import AnyPolicy
from shrimpmx.nic.port import Port
from shrimpmx.nic.rx_queue import RxQueue
from shrimpmx.nic.steering import Steering
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node

class Firmware(Port):
    queues: tuple[RxQueue, ...]
    steering: Steering
    def __init__(
        self,
        node: Node,
        egress: Egress,
        ingress: Ingress,
        parameters: NicParameters,
        policy: AnyPolicy | Callable[[], AnyPolicy] | None = None,
        dilation: float = 1.0,
        seed: int | None = None,
    ) -> None: ...
